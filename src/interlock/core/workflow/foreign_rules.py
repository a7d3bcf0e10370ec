"""Normalise conditions and criteria that other engines allow and ours would refuse."""

import re
from typing import Any, cast

from interlock.core.workflow.operators import OPERATORS
from interlock.core.workflow.patterns import compile_pattern
from interlock.core.workflow.problems import Problem, warning

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


def _without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != name}
