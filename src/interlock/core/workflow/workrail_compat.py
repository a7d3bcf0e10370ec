"""Normalise workflow files of other origin into our form.

WorkRail's files (schema 0.3) load as they are wherever their fields have a meaning here. A field
that has none is named in a warning; nothing is dropped in silence.
"""

from typing import Any, cast

import msgspec

from interlock.core.workflow.definition import Loop, Parallel, Step, TemplateCall
from interlock.core.workflow.foreign_rules import NormalisedCriteria, normalise_condition
from interlock.core.workflow.problems import Problem, warning

_IGNORED_FIELDS = {
    "metricsProfile": "Interlock asks no agent for metrics",
    "$schema": "",  # for editors; needs no warning
}
_IGNORED_STEP_FIELDS = {
    "hasValidation": "it follows from `validationCriteria`",
}
_OTHER_KINDS: dict[str, tuple[type[msgspec.Struct], str]] = {
    "loop": (Loop, "a loop is not shown; put it on a step of its body"),
    "template_call": (TemplateCall, "the steps of the routine take the place of this one"),
    "parallel": (Parallel, "put it on a step of its own"),
}
"""Kinds of steps that have fewer fields than a standard one, and why."""
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
    return document if document["steps"] is not None else _without(document, "steps")


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
    step = {"type": kind, **_without_ignored_fields(step, _IGNORED_STEP_FIELDS, at, report)}
    if isinstance(kind, str) and kind in _OTHER_KINDS:
        step = _without_fields_of_others(step, *_OTHER_KINDS[kind], at, report)
    for name in ("runCondition", "requireConfirmation"):
        step = _with_condition(step, name, at, report)
    step = _with_conditions_of_parts(step, "promptFragments", "when", at, report)
    step = _with_conditions_of_parts(step, "parallelDelegations", "runCondition", at, report)
    step = _with_criteria(step, at, report)
    if kind == "loop":
        if isinstance(step.get("loop"), dict):
            step["loop"] = _normalise_loop(step["loop"], f"{at}/loop", report)
        if isinstance(step.get("body"), list):
            step["body"] = _normalise_steps(step["body"], f"{at}/body", report)
    return step


def _normalise_loop(rule: dict[str, Any], at: str, report: NormalisationReport) -> dict[str, Any]:
    rule = _with_condition(rule, "condition", at, report)
    source = _with_condition(
        rule.get("conditionSource"), "condition", f"{at}/conditionSource", report
    )
    return rule if source is None else {**rule, "conditionSource": source}


def _without_fields_of_others(
    step: dict[str, Any],
    struct: type[msgspec.Struct],
    reason: str,
    at: str,
    report: NormalisationReport,
) -> dict[str, Any]:
    """Return the step without fields that only a standard step has."""
    ignored_fields = dict.fromkeys(_field_names(Step) - _field_names(struct), reason)
    empty_fields = {name for name in ignored_fields.keys() & step.keys() if not step[name]}
    step = {name: item for name, item in step.items() if name not in empty_fields}
    return _without_ignored_fields(step, ignored_fields, at, report)


def _field_names(struct: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def _with_condition(value: Any, name: str, at: str, report: NormalisationReport) -> Any:
    """Return an object with its condition normalised, and left out if it always holds."""
    if not isinstance(value, dict):
        return value
    owner = cast("dict[str, Any]", value)
    if not isinstance(owner.get(name), dict):
        return owner
    if name == "requireConfirmation" and "kind" in owner[name]:
        return {**owner, name: _with_condition(owner[name], "condition", f"{at}/{name}", report)}
    condition = normalise_condition(owner[name], f"{at}/{name}", report.warnings)
    if condition is None and name == "requireConfirmation":
        return {**owner, name: True}
    return _without(owner, name) if condition is None else {**owner, name: condition}


def _with_conditions_of_parts(
    step: dict[str, Any], field: str, name: str, at: str, report: NormalisationReport
) -> dict[str, Any]:
    if not isinstance(step.get(field), list):
        return step
    parts = cast("list[Any]", step[field])
    return {
        **step,
        field: [
            _with_condition(part, name, f"{at}/{field}/{index}", report)
            for index, part in enumerate(parts)
        ],
    }


def _with_criteria(step: dict[str, Any], at: str, report: NormalisationReport) -> dict[str, Any]:
    written = step.get("validationCriteria")
    if written is None:
        return step
    normalised = NormalisedCriteria(written, f"{at}/validationCriteria", report.warnings)
    guidance = step.get("guidance", [])
    if normalised.instructions and isinstance(guidance, list):
        step = {**step, "guidance": [*cast("list[Any]", guidance), *normalised.instructions]}
    if normalised.criteria is None:
        return _without(step, "validationCriteria")
    return {**step, "validationCriteria": normalised.criteria}


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


def _without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != name}
