"""Normalise workflow files of other origin into our form.

WorkRail's files (schema 0.3) load as they are wherever their fields have a meaning here. A field
that has none is named in a warning; nothing is dropped in silence.
"""

import re
from typing import Any, cast

import msgspec

from interlock.core.workflow.definition import Loop, Parallel, Step, TemplateCall
from interlock.core.workflow.operators import OPERATORS
from interlock.core.workflow.patterns import compile_pattern
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
    if str(document.get("id")).startswith("wr.routine-"):
        document.setdefault("kind", "routine")  # WorkRail recognises them by their ids alone
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


_JOINS = ("and", "or", "not")
_JOINS_SET = frozenset(_JOINS)
_RULE_FIELDS = {
    "contains": ("value",),
    "regex": ("pattern", "flags"),
    "length": ("min", "max"),
    "schema": ("schema",),
}
_IGNORED_FLAGS = "dguvy"  # they do not change whether something is found
_NOT_LINEAR = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\(\?P=")


def normalise_condition(value: Any, at: str, warnings: list[Problem]) -> Any:
    """Return a condition in which each part asks one question; None if it always holds."""
    if not isinstance(value, dict):
        return value
    condition = cast("dict[str, Any]", value)
    if (
        len(condition) == len(("var", "operator"))
        and "var" in condition
        and not condition.keys() & {*_JOINS}
    ):
        return condition  # as nearly all of them are
    if not condition or condition == {"and": []}:
        message = "an empty condition always holds: it is left out"
        warnings.append(warning("condition", at, message))
        return None
    parts = _questions(condition)
    if parts is None:
        return condition
    parts = [_normalise_join(part, at, warnings) for part in parts]
    if len(parts) == 1:
        return parts[0]
    message = "several questions in one condition: all of them must be answered with yes"
    hint = "Write a condition for each and join them with `and`."
    warnings.append(warning("condition", at, message, hint))
    return {"and": parts}


def _questions(condition: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the questions that a condition asks; None if it has something else in it."""
    operators = [name for name in condition if name in OPERATORS]
    joins = [name for name in condition if name in _JOINS]
    has_var = "var" in condition
    if len(operators) + len(joins) + has_var != len(condition) or (operators and not has_var):
        return None
    var = {"var": condition.get("var")}
    parts = [{**var, name: condition[name]} for name in operators]
    if has_var and not operators:
        parts.append(var)
    return [*parts, *({name: condition[name]} for name in joins)]


def _normalise_join(part: dict[str, Any], at: str, warnings: list[Problem]) -> dict[str, Any]:
    [(name, inner), *_] = part.items()
    if name == "not" and inner:
        return {name: normalise_condition(inner, f"{at}/{name}", warnings)}
    if name in ("and", "or") and isinstance(inner, list):
        inner_parts = cast("list[Any]", inner)
        return {
            name: [
                normalise_condition(item, f"{at}/{name}/{index}", warnings) if item else item
                for index, item in enumerate(inner_parts)
            ]
        }
    return part


class NormalisedCriteria:
    """Criteria that ours can check, and instructions for what they cannot."""

    def __init__(self, written: Any, at: str, warnings: list[Problem]) -> None:
        self._warnings = warnings
        self.instructions: list[str] = []
        self.criteria = self._normalise(written, at)

    def _normalise(self, value: Any, at: str) -> Any:
        """Return the criteria without what cannot be checked; None if nothing is left."""
        if isinstance(value, list):
            return self._normalise_parts(cast("list[Any]", value), at) or None
        if not isinstance(value, dict):
            return value
        criterion = cast("dict[str, Any]", value)
        if isinstance(criterion.get("and"), list) and len(criterion) == 1:
            parts = self._normalise_parts(criterion["and"], f"{at}/and")
            return {"and": parts} if parts or not criterion["and"] else None
        if criterion.get("type") in [*_RULE_FIELDS]:  # not hashed: it may be a list
            return self._normalise_rule(criterion, at)
        return self._normalise_alternatives(criterion, at)

    def _normalise_parts(self, parts: list[Any], at: str) -> list[Any]:
        normalised = (self._normalise(part, f"{at}/{index}") for index, part in enumerate(parts))
        return [part for part in normalised if part is not None]

    def _normalise_alternatives(self, criterion: dict[str, Any], at: str) -> Any:
        """Return `or` and `not` as they are; without a part that cannot be checked they would
        mean something else, so that with one they are left out.
        """
        for name in ("or", "not"):
            inner = criterion.get(name)
            if len(criterion) != 1 or inner is None:
                continue
            parts = cast("list[Any]", inner) if isinstance(inner, list) else [inner]
            normalised = self._normalise_parts(parts, f"{at}/{name}")
            if parts and len(normalised) < len(parts):
                message = "this cannot be checked without the part that cannot be checked"
                self._warnings.append(warning("criteria", at, message))
                return None
            return {name: normalised if isinstance(inner, list) else normalised[0]}
        return criterion

    def _normalise_rule(self, rule: dict[str, Any], at: str) -> dict[str, Any] | None:
        fields = _RULE_FIELDS[rule["type"]]
        for name in [name for names in _RULE_FIELDS.values() for name in names]:
            if name in rule and name not in fields:
                message = f"`{name}` has no meaning for `{rule['type']}`"
                self._warnings.append(warning("no-meaning", f"{at}/{name}", message))
                rule = _without(rule, name)
        if rule.get("message") == "":
            rule = _without(rule, "message")
        if rule.get("min") == 0:
            rule = _without(rule, "min")
        if isinstance(flags := rule.get("flags"), str):
            known_flags = "".join(sorted(set(flags) - set(_IGNORED_FLAGS)))
            rule = {**rule, "flags": known_flags}
        if "condition" in rule:
            condition = normalise_condition(rule["condition"], f"{at}/condition", self._warnings)
            rule = {
                **_without(rule, "condition"),
                **({"condition": condition} if condition else {}),
            }
        return None if self._is_left_out(rule, at) else rule

    def _is_left_out(self, rule: dict[str, Any], at: str) -> bool:
        """Whether nothing can be checked by the rule: it says so, and tells the agent instead."""
        if rule["type"] == "contains" and rule.get("value") == "":
            self._warnings.append(warning("criteria", at, "every text contains the empty text"))
            return True
        if rule["type"] == "length" and not rule.keys() & {"min", "max"}:
            self._warnings.append(warning("criteria", at, "every text is long enough"))
            return True
        pattern = rule.get("pattern")
        if not isinstance(pattern, str) or not _needs_backtracking(pattern):
            return False
        message = "look-around and back-references cannot be checked in linear time"
        hint = "It is left out; the agent is told to check it."
        self._warnings.append(warning("criteria", f"{at}/pattern", message, hint))
        self.instructions.append(
            f"Check yourself that your notes match /{pattern}/: nothing else does."
            + (f" {rule['message']}" if isinstance(rule.get("message"), str) else "")
        )
        return True


def _needs_backtracking(pattern: str) -> bool:
    """Whether it is a regular expression of which our engine has no equal."""
    if not _NOT_LINEAR.search(pattern):
        return False
    try:
        compile_pattern(pattern)
    except ValueError:
        return _is_well_formed(pattern)
    return False


def _is_well_formed(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
