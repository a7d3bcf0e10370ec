"""Conditions: what a workflow asks of the context before it does something, as data.

    {"var": "a.b", OPERATOR: value}       see `operators`; a variable that is not set is null
    {"var": "a.b"}                        it is set, and not false, 0, "" or empty
    {"and": […]}  {"or": […]}  {"not": …}

A question that makes no sense for the value of its variable has no answer (`Trouble`), and that is
not a no. Conditions come from foreign files: what they may cost is weighed before they are taken.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias, cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import DEPTH_MAX, Json, NotCanonical, escape_pointer_part
from interlock.core.workflow import operators
from interlock.core.workflow.operators import OPERATORS, Operator, clip, quote

TEXT_LENGTH_MAX = 1_000
SIZE_MAX = 64 * 1024
"""Of one condition: each value in it is one, and each character of its keys and texts."""
COUNT_MAX = 100
NESTING_MAX = 16
INSTRUCTIONS_MAX = 1_500
"""Of all patterns of one condition, compiled."""
FLAWS_MAX = 20
_SHOWN_LENGTH_MAX = 80

_JOINS = ("and", "or", "not")
_PATH = re.compile(r"[A-Za-z_][\w-]*+(?:\.[\w-]++){0,7}+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class Comparison(msgspec.Struct, frozen=True):
    var: str
    operator: Operator
    value: Json


class TruthTest(msgspec.Struct, frozen=True):
    """Set, and not false, 0, "" or empty."""

    var: str


class Join(msgspec.Struct, frozen=True):
    connective: Literal["and", "or"]
    parts: "tuple[Condition, ...]"


class Negation(msgspec.Struct, frozen=True):
    part: "Condition"


Condition: TypeAlias = Comparison | TruthTest | Join | Negation


class Flaw(msgspec.Struct, frozen=True):
    """One thing that is wrong with a condition as it was written, and where (JSON pointer)."""

    pointer: str
    message: str


class UnusableValue(msgspec.Struct, frozen=True):
    """A comparison that has no answer. `pointer` is its place in the condition's JSON."""

    var: str
    pointer: str
    message: str


def parse(value: Json, pointer: str = "") -> Condition | tuple[Flaw, ...]:
    """The condition, or everything that is wrong with it. `pointer` is where it stands."""
    reading = _ConditionParseState()
    if not _is_small_enough(value, pointer, reading):
        return (Flaw(pointer, f"has more than {SIZE_MAX} values and characters"),)
    try:
        plain = msgspec.json.decode(canonical.encode(value))
        canonical.encode(plain)  # 1e20 became an integer, which is not taken when it is read again
    except NotCanonical as refused:
        return (Flaw(pointer + refused.pointer, refused.reason),)
    condition = _read_condition(plain, pointer, reading)
    if reading.count > COUNT_MAX:
        reading.refuse(pointer, f"has more than {COUNT_MAX} comparisons")
    _refuse_costly_patterns(reading)
    if condition is None or reading.flaws:
        return tuple(dict.fromkeys(reading.flaws))
    return condition


@lru_cache(maxsize=256)  # a loop asks the same again and again
def unpack(content: str | bytes) -> Condition:
    """A condition that `parse` took before; it is not weighed again."""
    reading = _ConditionParseState()
    condition = _read_condition(msgspec.json.decode(content), "", reading)
    assert not reading.flaws, f"this condition was never taken: {reading.flaws}"
    return cast("Condition", condition)


def to_json(condition: Condition) -> Json:
    """The one form of the condition that is hashed."""
    match condition:
        case Join(how, parts):
            return {how: [to_json(part) for part in parts]}
        case Negation(part):
            return {"not": to_json(part)}
        case TruthTest(var):
            return {"var": var}
        case Comparison(var, operator, value):
            return {"var": var, operator: value}


def evaluate(
    condition: Condition, context: Mapping[str, Json], pointer: str = ""
) -> bool | UnusableValue:
    """Whether it is so. Parts are asked from left to right, until the answer is known."""
    match condition:
        case Join(how, parts):
            decides = how == "or"
            for index, part in enumerate(parts):
                answer = evaluate(part, context, f"{pointer}/{how}/{index}")
                if isinstance(answer, UnusableValue) or answer is decides:
                    return answer
            return not decides
        case Negation(part):
            answer = evaluate(part, context, f"{pointer}/not")
            return answer if isinstance(answer, UnusableValue) else not answer
        case TruthTest(var):
            return bool(look_up(context, var))
        case Comparison(var, operator, wanted):
            value = look_up(context, var)
            answer = operators.compare(value, operator, wanted)
            return _unusable_value(condition, value, pointer) if answer is None else answer


def describe(condition: Condition) -> str:
    """What is asked, as a clause."""
    return clip(_describe(condition))


def variables(condition: Condition) -> tuple[str, ...]:
    """The context paths that it reads."""
    match condition:
        case Join(_, parts):
            return tuple(dict.fromkeys(var for part in parts for var in variables(part)))
        case Negation(part):
            return variables(part)
        case TruthTest(var) | Comparison(var):
            return (var,)


def look_up(context: Mapping[str, Json], path: str) -> Json:
    """What stands at a dotted path; null if nothing does.

    In a list a number is an index; `length` is that of a list or a text. In an object both are
    plain keys.
    """
    value: Json = cast("dict[str, Json]", context)
    for step in path.split("."):
        match value:
            case list() | str() if step == "length":
                value = len(value)
            case list() if _INDEX.fullmatch(step):
                value = value[int(step)] if int(step) < len(value) else None
            case Mapping():
                value = value.get(step)
            case _:
                return None
    return value


class _ConditionParseState(msgspec.Struct):
    """What was found so far."""

    flaws: list[Flaw] = []
    patterns: list[tuple[str, str]] = []
    count: int = 0

    def refuse(self, at: str, message: str) -> None:
        if len(self.flaws) < FLAWS_MAX:
            self.flaws.append(Flaw(at, message))


def _is_small_enough(root: Json, pointer: str, reading: _ConditionParseState) -> bool:
    """Whether this is small enough to be read at all; texts that are too long are refused."""
    # A loop and not recursion, and no deeper than what has a canonical form: it is anyone's JSON.
    waiting: list[tuple[str, int, Json]] = [(pointer, 0, root)]
    size = 1
    while waiting:
        at, depth, value = waiting.pop()
        texts = list(value) if isinstance(value, dict) else [value]
        for text in texts:
            if isinstance(text, str):
                size += len(text)
                if len(text) > TEXT_LENGTH_MAX:
                    reading.refuse(at, f"has a text of more than {TEXT_LENGTH_MAX} characters")
        if isinstance(value, dict | list):
            size += len(value)
            if size <= SIZE_MAX and depth <= DEPTH_MAX:
                items = value.items() if isinstance(value, dict) else enumerate(value)
                waiting += (
                    (f"{at}/{escape_pointer_part(str(key))}", depth + 1, item)
                    for key, item in items
                )
        if size > SIZE_MAX:
            return False
    return True


def _read_condition(
    value: Json, at: str, reading: _ConditionParseState, depth: int = 0
) -> Condition | None:
    if len(reading.flaws) == FLAWS_MAX:
        return None
    if depth > NESTING_MAX:
        return reading.refuse(at, f"nested more than {NESTING_MAX} deep")
    if not isinstance(value, dict):
        return reading.refuse(at, "wants an object with `var`, or with one of `and`, `or`, `not`")
    joins = [name for name in _JOINS if name in value]
    if not joins:
        return _read_comparison(value, at, reading)
    if len(value) > 1:
        reading.refuse(at, f"`{joins[0]}` must stand alone; join it to the rest with `and` or `or`")
    read = [_read_join(name, value[name], f"{at}/{name}", reading, depth) for name in joins]
    return read[0]


def _read_join(
    name: str, value: Json, at: str, reading: _ConditionParseState, depth: int
) -> Condition | None:
    if name == "not":
        part = _read_condition(value, at, reading, depth + 1)
        return Negation(part) if part else None
    if not isinstance(value, list) or not value:
        return reading.refuse(at, "wants a list that is not empty")
    read = [_read_condition(part, f"{at}/{i}", reading, depth + 1) for i, part in enumerate(value)]
    return Join("and" if name == "and" else "or", tuple(part for part in read if part))


def _read_comparison(
    value: dict[str, Json], at: str, reading: _ConditionParseState
) -> Condition | None:
    reading.count += 1
    flaw_count, var = len(reading.flaws), value.get("var")
    if "var" not in value:
        reading.refuse(at, "wants `var`, or one of `and`, `or`, `not`")
    elif not isinstance(var, str) or not _PATH.fullmatch(var):
        what = "is not the path of a variable: use names or numbers with dots between them, "
        reading.refuse(f"{at}/var", f"{what}at most 8, the first a name")
    for name in [name for name in value if name not in ("var", *OPERATORS)][:FLAWS_MAX]:
        reading.refuse(f"{at}/{escape_pointer_part(name)}", _unknown_key_message(name))
    asked: list[Operator] = [operator for operator in OPERATORS if operator in value]
    for operator in asked:
        if instead := operators.expected_operand(operator, value[operator]):
            reading.refuse(f"{at}/{operator}", f"wants {instead}")
        elif operator == "matches":
            reading.patterns.append((f"{at}/matches", cast("str", value["matches"])))
    if len(asked) > 1:
        several = ", ".join(f"`{name}`" for name in asked)
        reading.refuse(at, f"has {several}; write a comparison for each and join them with `and`")
    if len(reading.flaws) > flaw_count or not isinstance(var, str):
        return None
    return Comparison(var, asked[0], value[asked[0]]) if asked else TruthTest(var)


def _unknown_key_message(name: str) -> str:
    import difflib  # noqa: PLC0415 (only who has made a mistake needs it)

    name = clip(name, _SHOWN_LENGTH_MAX)
    known = {word.lower(): word for word in (*OPERATORS, *_JOINS, "var")}
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean `{known[near[0]]}`?" if near else f"use one of {', '.join(OPERATORS)}"
    return f"`{name}` is not known here; {hint}"


def _refuse_costly_patterns(reading: _ConditionParseState) -> None:
    total = 0
    for at, pattern in reading.patterns[:COUNT_MAX]:
        if len(reading.flaws) == FLAWS_MAX:
            break
        found = operators.instruction_count(pattern)
        if isinstance(found, str):
            reading.refuse(at, f"cannot be searched for in linear time: {found}")
            continue
        total += found
        if total > INSTRUCTIONS_MAX:
            what = f"the patterns of a condition may have {INSTRUCTIONS_MAX} instructions in all"
            reading.refuse(at, f"{what}, compiled; with this, they have more")
            break


def _unusable_value(comparison: Comparison, value: Json, at: str) -> UnusableValue:
    var, operator, wanted = comparison.var, comparison.operator, comparison.value
    match value:
        case list():
            shown = "a list"
        case dict():
            shown = "an object"
        case _:
            shown = quote(value, _SHOWN_LENGTH_MAX)
    need = operators.required_variable_kind(operator, wanted)
    why = f"only {need} can be asked whether it {operators.phrase(operator, wanted)}"
    return UnusableValue(var, at, f"`{var}` is {shown}, and {why}. Set `{var}` to {need}.")


def _describe(condition: Condition) -> str:
    match condition:
        case Join(how, parts):
            several = (
                f"({_describe(part)})" if isinstance(part, Join) else _describe(part)
                for part in parts
            )
            return f" {how} ".join(several)
        case Negation(part):
            return f"not ({_describe(part)})"
        case TruthTest(var):
            return f"`{var}` is set and not false, 0 or empty"
        case Comparison(var, operator, wanted):
            return f"`{var}` {operators.phrase(operator, wanted)}"
