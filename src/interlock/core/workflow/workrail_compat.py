"""What workflow files of other origin write differently, folded into our form.

WorkRail's files (schema 0.3) load as they are wherever what they say has a meaning here. What has
none is named in a warning; nothing is dropped in silence.
"""

from typing import Any, cast

from interlock.core.workflow.problems import Problem, warning

_IGNORED_FIELDS = {
    "metricsProfile": "Interlock asks no agent for metrics",
    "$schema": "",  # for editors; nobody need be told
}
_IGNORED_STEP_FIELDS = {
    "hasValidation": "it follows from `validationCriteria`",
}
_IGNORED_LOOP_FIELDS = {
    "prompt": "a loop is not shown; its body is",
    "agentRole": "a loop is not shown; its body is",
    "guidance": "a loop is not shown; its body is",
    "requireConfirmation": "put it on a step of the body",
    "notesOptional": "a loop takes no notes; its body does",
    "outputContract": "put it on a step of the body",
}
_RENAMED_PREFERENCES = {"recommendedAutonomy": "autonomy", "recommendedRiskPolicy": "riskPolicy"}


class NormalisationReport:
    """A file in our form, with what was found on the way."""

    def __init__(self) -> None:
        self.warnings: list[Problem] = []
        self.original_pointers: dict[str, str] = {}
        """For each pointer that is not the file's own: the one that is."""


def normalise_foreign(document: dict[str, Any], report: NormalisationReport) -> dict[str, Any]:
    document = _without_ignored_fields(document, _IGNORED_FIELDS, "", report)
    preferences = document.get("recommendedPreferences")
    if isinstance(preferences, dict):
        given = cast("dict[str, Any]", preferences)
        document["recommendedPreferences"] = {
            name
            if _RENAMED_PREFERENCES.get(name) in given
            else _RENAMED_PREFERENCES.get(name, name): value
            for name, value in given.items()
        }
        here = "/recommendedPreferences"
        report.original_pointers |= {
            f"{here}/{new}": f"{here}/{old}" for old, new in _RENAMED_PREFERENCES.items()
        }
    document["steps"] = _normalise_steps(document.get("steps"), "/steps", report)
    return document if document["steps"] is not None else _without_steps(document)


def _without_steps(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "steps"}


def _normalise_steps(value: Any, at: str, report: NormalisationReport) -> Any:
    """Every step says of which type it is, at any depth; what is no list of steps is left alone."""
    if not isinstance(value, list):
        return value
    steps = cast("list[Any]", value)
    return [_normalise_step(step, f"{at}/{index}", report) for index, step in enumerate(steps)]


def _normalise_step(value: Any, at: str, report: NormalisationReport) -> Any:
    if not isinstance(value, dict):
        return value
    step = cast("dict[str, Any]", value)
    kind = step.get("type", "template_call" if "templateCall" in step else "standard")
    no_meaning = _IGNORED_STEP_FIELDS | (_IGNORED_LOOP_FIELDS if kind == "loop" else {})
    step = {"type": kind, **_without_ignored_fields(step, no_meaning, at, report)}
    if kind == "loop" and isinstance(step.get("body"), list):
        step["body"] = _normalise_steps(step["body"], f"{at}/body", report)
    return step


def _without_ignored_fields(
    value: dict[str, Any], ignored_fields: dict[str, str], at: str, report: NormalisationReport
) -> dict[str, Any]:
    for name in ignored_fields.keys() & value.keys():
        if why := ignored_fields[name]:
            found = warning("no-meaning", f"{at}/{name}", f"`{name}` has no meaning here: {why}")
            report.warnings.append(found)
    return {name: item for name, item in value.items() if name not in ignored_fields}
