"""What workflow files of other origin write differently, folded into our form.

WorkRail's files (schema 0.3) load as they are wherever what they say has a meaning here. What has
none is named in a warning; nothing is dropped in silence.
"""

from typing import Any, cast

from interlock.core.workflow.problems import Problem, warning

_NO_MEANING = {
    "metricsProfile": "Interlock asks no agent for metrics",
    "$schema": "",  # for editors; nobody need be told
}
_NO_MEANING_IN_STEP = {
    "hasValidation": "it follows from `validationCriteria`",
}
_NO_MEANING_IN_LOOP = {
    "prompt": "a loop is not shown; its body is",
    "agentRole": "a loop is not shown; its body is",
    "guidance": "a loop is not shown; its body is",
    "requireConfirmation": "put it on a step of the body",
    "notesOptional": "a loop takes no notes; its body does",
    "outputContract": "put it on a step of the body",
}
_RENAMED = {"recommendedAutonomy": "autonomy", "recommendedRiskPolicy": "riskPolicy"}


class Folded:
    """A file in our form, with what was found on the way."""

    def __init__(self) -> None:
        self.warnings: list[Problem] = []
        self.written_as: dict[str, str] = {}
        """For each pointer that is not the file's own: the one that is."""


def fold(document: dict[str, Any], folded: Folded) -> dict[str, Any]:
    document = _without(document, _NO_MEANING, "", folded)
    preferences = document.get("recommendedPreferences")
    if isinstance(preferences, dict):
        given = cast("dict[str, Any]", preferences)
        document["recommendedPreferences"] = {
            name if _RENAMED.get(name) in given else _RENAMED.get(name, name): value
            for name, value in given.items()
        }
        here = "/recommendedPreferences"
        folded.written_as |= {f"{here}/{new}": f"{here}/{old}" for old, new in _RENAMED.items()}
    document["steps"] = _steps(document.get("steps"), "/steps", folded)
    return document if document["steps"] is not None else _without_steps(document)


def _without_steps(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "steps"}


def _steps(value: Any, at: str, folded: Folded) -> Any:
    """Every step says of which type it is, at any depth; what is no list of steps is left alone."""
    if not isinstance(value, list):
        return value
    steps = cast("list[Any]", value)
    return [_step(step, f"{at}/{index}", folded) for index, step in enumerate(steps)]


def _step(value: Any, at: str, folded: Folded) -> Any:
    if not isinstance(value, dict):
        return value
    step = cast("dict[str, Any]", value)
    kind = step.get("type", "template_call" if "templateCall" in step else "standard")
    no_meaning = _NO_MEANING_IN_STEP | (_NO_MEANING_IN_LOOP if kind == "loop" else {})
    step = {"type": kind, **_without(step, no_meaning, at, folded)}
    if kind == "loop" and isinstance(step.get("body"), list):
        step["body"] = _steps(step["body"], f"{at}/body", folded)
    return step


def _without(
    value: dict[str, Any], no_meaning: dict[str, str], at: str, folded: Folded
) -> dict[str, Any]:
    for name in no_meaning.keys() & value.keys():
        if why := no_meaning[name]:
            found = warning("no-meaning", f"{at}/{name}", f"`{name}` has no meaning here: {why}")
            folded.warnings.append(found)
    return {name: item for name, item in value.items() if name not in no_meaning}
