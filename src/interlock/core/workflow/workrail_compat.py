"""Normalise workflow files of other origin into our form.

WorkRail's files (schema 0.3) load as they are wherever their fields have a meaning here. A field
that has none is named in a warning; nothing is dropped in silence.
"""

from typing import Any, cast

from interlock.core.workflow.problems import Problem, warning

_IGNORED_FIELDS = {
    "metricsProfile": "Interlock asks no agent for metrics",
    "$schema": "",  # for editors; needs no warning
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
    """The warnings about a file that was normalised, and the pointers that changed."""

    def __init__(self) -> None:
        self.warnings: list[Problem] = []
        self.original_pointers: dict[str, str] = {}
        """For each pointer that is not the file's own, the one that is."""


def normalise_foreign(document: dict[str, Any], report: NormalisationReport) -> dict[str, Any]:
    document = _without_ignored_fields(document, _IGNORED_FIELDS, "", report)
    preferences = document.get("recommendedPreferences")
    if isinstance(preferences, dict):
        written = cast("dict[str, Any]", preferences)
        document["recommendedPreferences"] = {
            name
            if _RENAMED_PREFERENCES.get(name) in written
            else _RENAMED_PREFERENCES.get(name, name): value
            for name, value in written.items()
        }
        pointer = "/recommendedPreferences"
        report.original_pointers |= {
            f"{pointer}/{new}": f"{pointer}/{old}" for old, new in _RENAMED_PREFERENCES.items()
        }
    document["steps"] = _normalise_steps(document.get("steps"), "/steps", report)
    return document if document["steps"] is not None else _without_steps(document)


def _without_steps(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "steps"}


def _normalise_steps(value: Any, at: str, report: NormalisationReport) -> Any:
    """Give every step its type, at any depth; leave alone anything that is not a list of steps."""
    if not isinstance(value, list):
        return value
    steps = cast("list[Any]", value)
    return [_normalise_step(step, f"{at}/{index}", report) for index, step in enumerate(steps)]


def _normalise_step(value: Any, at: str, report: NormalisationReport) -> Any:
    if not isinstance(value, dict):
        return value
    step = cast("dict[str, Any]", value)
    kind = step.get("type", "template_call" if "templateCall" in step else "standard")
    ignored_fields = _IGNORED_STEP_FIELDS | (_IGNORED_LOOP_FIELDS if kind == "loop" else {})
    step = {"type": kind, **_without_ignored_fields(step, ignored_fields, at, report)}
    if kind == "loop" and isinstance(step.get("body"), list):
        step["body"] = _normalise_steps(step["body"], f"{at}/body", report)
    return step


def _without_ignored_fields(
    value: dict[str, Any], ignored_fields: dict[str, str], at: str, report: NormalisationReport
) -> dict[str, Any]:
    for name in ignored_fields.keys() & value.keys():
        if reason := ignored_fields[name]:
            problem = warning(
                "no-meaning", f"{at}/{name}", f"`{name}` has no meaning here: {reason}"
            )
            report.warnings.append(problem)
    return {name: item for name, item in value.items() if name not in ignored_fields}
