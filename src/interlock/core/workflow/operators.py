"""Operators of conditions: the operand that each takes, its answer for a value, and its wording.

An unset variable is null. `equals`, `not_equals`, `in`, and `contains` for a list, ignore case and
whether a number or a boolean is written as text; `equalsExactly` ignores neither. Numbers, and
texts that are numbers, are ordered as numbers; other texts as texts, ignoring case.
"""

import math
import re
from operator import ge, gt, le, lt
from typing import Literal, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow.patterns import compile_pattern, pattern_size

SHOWN_LENGTH_MAX = 500
_NUMBER_LENGTH_MAX = 40  # longer digits are an identifier, and Python balks at thousands of them

Order = Literal["gt", "gte", "lt", "lte"]
Search = Literal["contains", "startsWith", "endsWith", "matches"]
Operator = Literal["equals", "not_equals", "equalsExactly", "in", "exists"] | Order | Search

PHRASES: dict[Operator, str] = {
    "equals": "is",
    "not_equals": "is not",
    "equalsExactly": "is exactly",
    "gt": "is more than",
    "gte": "is at least",
    "lt": "is less than",
    "lte": "is at most",
    "contains": "contains",
    "startsWith": "starts with",
    "endsWith": "ends with",
    "matches": "matches",
    "in": "is one of",
    "exists": "is set",
}
OPERATORS: tuple[Operator, ...] = tuple(PHRASES)
_ORDERS = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
# As JSON has it: 007 is a name.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def expected_operand(operator: Operator, value: Json) -> str | None:
    """Return the kind of operand that the operator takes, if `value` is not of that kind."""
    match operator:
        case "exists":
            return None if isinstance(value, bool) else "true or false"
        case "in":
            return None if isinstance(value, list) else "a list"
        case "startsWith" | "endsWith" | "matches":
            return None if isinstance(value, str) else "a text"
        case "gt" | "gte" | "lt" | "lte":
            return "a number or a text" if _order_key(value) is None else None
        case _:
            return None


def instruction_count(pattern: str) -> int | str:
    """Return the number of instructions of the compiled pattern, or the reason for a refusal."""
    try:
        return pattern_size(pattern)
    except ValueError as error:
        return str(error)


def compare(value: Json, operator: Operator, operand: Json) -> bool | None:
    """Return the answer for the value of a variable; None if the question makes no sense for it."""
    match operator:
        case "equals" | "not_equals":
            return _is_same(_fold_value(value), _fold_value(operand)) == (operator == "equals")
        case "equalsExactly":
            return _is_same(value, operand)
        case "in":
            folded = _fold_value(value)
            return any(_is_same(folded, _fold_value(item)) for item in cast("list[Json]", operand))
        case "exists":
            return (value is not None) == operand
        case _ if value is None:
            return False
        case "gt" | "gte" | "lt" | "lte":
            left, right = _order_key(value), _order_key(operand)
            if left is None or right is None or isinstance(left, str) != isinstance(right, str):
                return None
            return _ORDERS[operator](left, right)
        case "contains" if isinstance(value, list):
            folded = _fold_value(operand)
            return any(_is_same(_fold_value(item), folded) for item in value)
        case _ if not isinstance(value, str) or not isinstance(operand, str):
            return None
        case "contains":
            return operand.casefold() in value.casefold()
        case "startsWith":
            return value.casefold().startswith(operand.casefold())
        case "endsWith":
            return value.casefold().endswith(operand.casefold())
        case "matches":
            return bool(compile_pattern(operand).search(value.encode(errors="replace")))


def required_variable_kind(operator: Operator, operand: Json) -> str:
    """Return the kind of variable for which the question makes sense."""
    match operator:
        case "gt" | "gte" | "lt" | "lte":
            return (
                "a text that is no number" if isinstance(_order_key(operand), str) else "a number"
            )
        case "contains":
            return "a text or a list" if isinstance(operand, str) else "a list"
        case _:
            return "a text"


def phrase(operator: Operator, operand: Json) -> str:
    """Return the predicate of a clause about the variable: `is at least 5`."""
    match operator, operand:
        case "exists", _:
            return "is set" if operand else "is not set"
        case "in", list():
            operand_text = ", ".join(map(quote, operand)) or "nothing"
        case "matches", str() if operand.isprintable():
            operand_text = f"/{operand}/"
        case _:
            operand_text = quote(operand)
    return f"{PHRASES[operator]} {clip(operand_text)}"


def quote(value: Json, length: int = SHOWN_LENGTH_MAX) -> str:
    return clip(msgspec.json.encode(value).decode(), length)


def clip(text: str, length: int = SHOWN_LENGTH_MAX) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _fold_value(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    if (number := _parse_number(value)) is not None:
        return number
    folded = value.casefold()
    return folded == "true" if folded in ("true", "false") else folded


def _order_key(value: Json) -> int | float | str | None:
    """Return the value by which it is ordered; None if it is not ordered."""
    match value:
        case bool():
            return None
        case int() | float():
            return value
        case str():
            number = _parse_number(value)
            return value.casefold() if number is None else number
        case _:
            return None


def _parse_number(text: str) -> int | float | None:
    if len(text) > _NUMBER_LENGTH_MAX or not (match := _NUMBER.fullmatch(text)):
        return None
    # An integer stays one: as a double it would equal its neighbours.
    number = float(text) if match.lastindex else int(text)
    return number if math.isfinite(number) else None


def _is_same(left: Json, right: Json) -> bool:
    """Whether both are the same JSON value; for Python, true is 1."""
    match left, right:
        case (bool(), _) | (_, bool()):
            return left is right
        case list(), list():
            return len(left) == len(right) and all(map(_is_same, left, right))
        case dict(), dict():
            return left.keys() == right.keys() and all(
                _is_same(left[key], right[key]) for key in left
            )
        case _:
            return left == right
