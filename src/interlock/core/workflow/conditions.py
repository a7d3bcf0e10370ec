"""Conditions: questions that a workflow asks about the context, as data.

    {"var": "a.b", OPERATOR: value}       see `operators`; a variable that is not set is null
    {"var": "a.b"}                        it is set, and not false, 0, "" or empty
    {"and": […]}  {"or": […]}  {"not": …}

A question that makes no sense for the value of its variable has no answer (`UnusableValue`), and
that is not a no.

Conditions come from foreign files, so `parse` checks what they may cost before it accepts them. It
goes from cheap to costly: the size of the JSON, its canonical form, its structure and operands, and
last the patterns, whose compiled instructions are counted. From the structure on, all flaws are
collected, up to `FLAWS_MAX`. The compiler stores an accepted condition as canonical JSON
(`to_json`); `unpack` reads that again and checks no costs. `evaluate` answers for a context and
stops at the first part that decides.
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
"""The limit for one condition: each value counts as one, and each character of keys and texts."""
COUNT_MAX = 100
NESTING_MAX = 16
INSTRUCTIONS_MAX = 1_500
"""The limit for all compiled patterns of one condition together."""
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
    """The question whether a variable is set, and not false, 0, "" or empty."""

    var: str


class Join(msgspec.Struct, frozen=True):
    connective: Literal["and", "or"]
    parts: "tuple[Condition, ...]"


class Negation(msgspec.Struct, frozen=True):
    part: "Condition"


Condition: TypeAlias = Comparison | TruthTest | Join | Negation


class Flaw(msgspec.Struct, frozen=True):
    """One thing that is wrong with a condition as it is written, and its JSON pointer."""

    pointer: str
    message: str


class UnusableValue(msgspec.Struct, frozen=True):
    """A comparison that has no answer. `pointer` is its place in the condition's JSON."""

    var: str
    pointer: str
    message: str


def parse(value: Json, pointer: str = "") -> Condition | tuple[Flaw, ...]:
    """Return the condition, or everything that is wrong with it. `pointer` is its place."""
    state = _ConditionParseState()
    if not _is_small_enough(value, pointer, state):
        return (Flaw(pointer, f"has more than {SIZE_MAX} values and characters"),)
    try:
        decoded = msgspec.json.decode(canonical.encode(value))
        canonical.encode(decoded)  # 1e20 became an integer, which is refused when it is read again
    except NotCanonical as error:
        return (Flaw(pointer + error.pointer, error.reason),)
    condition = _read_condition(decoded, pointer, state)
    if state.count > COUNT_MAX:
        state.refuse(pointer, f"has more than {COUNT_MAX} comparisons")
    _refuse_costly_patterns(state)
    if condition is None or state.flaws:
        return tuple(dict.fromkeys(state.flaws))
    return condition


@lru_cache(maxsize=256)  # a loop asks the same question again and again
def unpack(content: str | bytes) -> Condition:
    """Return a condition that `parse` accepted before; it is not checked again."""
    state = _ConditionParseState()
    condition = _read_condition(msgspec.json.decode(content), "", state)
    assert not state.flaws, f"this condition was never taken: {state.flaws}"
    return cast("Condition", condition)


def to_json(condition: Condition) -> Json:
    """Return the one form of the condition that is hashed."""
    match condition:
        case Join(connective, parts):
            return {connective: [to_json(part) for part in parts]}
        case Negation(part):
            return {"not": to_json(part)}
        case TruthTest(var):
            return {"var": var}
        case Comparison(var, operator, value):
            return {"var": var, operator: value}


def evaluate(
    condition: Condition,
    context: Mapping[str, Json],
    pointer: str = "",
    *,
    is_lenient: bool = False,
) -> bool | UnusableValue:
    """Whether the condition holds. Parts are evaluated from left to right, as far as needed.

    `is_lenient`: a comparison with a value of another kind does not hold, as in foreign files.
    """
    match condition:
        case Join(connective, parts):
            deciding_answer = connective == "or"
            for index, part in enumerate(parts):
                at = f"{pointer}/{connective}/{index}"
                answer = evaluate(part, context, at, is_lenient=is_lenient)
                if isinstance(answer, UnusableValue) or answer is deciding_answer:
                    return answer
            return not deciding_answer
        case Negation(part):
            answer = evaluate(part, context, f"{pointer}/not", is_lenient=is_lenient)
            return answer if isinstance(answer, UnusableValue) else not answer
        case TruthTest(var):
            return bool(look_up(context, var))
        case Comparison(var, operator, operand):
            value = look_up(context, var)
            answer = operators.compare(value, operator, operand)
            if answer is None and not is_lenient:
                return _unusable_value(condition, value, pointer)
            return bool(answer)


def describe(condition: Condition) -> str:
    """Return the condition as a clause."""
    return clip(_describe(condition))


def variables(condition: Condition) -> tuple[str, ...]:
    """Return the context paths that the condition reads."""
    match condition:
        case Join(_, parts):
            return tuple(dict.fromkeys(var for part in parts for var in variables(part)))
        case Negation(part):
            return variables(part)
        case TruthTest(var) | Comparison(var):
            return (var,)


def unset_variables(condition: Condition, context: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the context paths that the condition reads and that are not set."""
    return tuple(var for var in variables(condition) if look_up(context, var) is None)


def look_up(context: Mapping[str, Json], path: str) -> Json:
    """Return the value at a dotted path; null if there is none.

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
    """The flaws, patterns and comparisons so far."""

    flaws: list[Flaw] = []
    patterns: list[tuple[str, str]] = []
    count: int = 0

    def refuse(self, at: str, message: str) -> None:
        if len(self.flaws) < FLAWS_MAX:
            self.flaws.append(Flaw(at, message))


def _is_small_enough(root: Json, pointer: str, state: _ConditionParseState) -> bool:
    """Whether the value is small enough to be read at all; refuse texts that are too long."""
    # Not recursive, and no deeper than what has a canonical form: this may be anyone's JSON.
    pending: list[tuple[str, int, Json]] = [(pointer, 0, root)]
    size = 1
    while pending:
        at, depth, value = pending.pop()
        texts = list(value) if isinstance(value, dict) else [value]
        for text in texts:
            if isinstance(text, str):
                size += len(text)
                if len(text) > TEXT_LENGTH_MAX:
                    state.refuse(at, f"has a text of more than {TEXT_LENGTH_MAX} characters")
        if isinstance(value, dict | list):
            size += len(value)
            if size <= SIZE_MAX and depth <= DEPTH_MAX:
                items = value.items() if isinstance(value, dict) else enumerate(value)
                pending += (
                    (f"{at}/{escape_pointer_part(str(key))}", depth + 1, item)
                    for key, item in items
                )
        if size > SIZE_MAX:
            return False
    return True


def _read_condition(
    value: Json, at: str, state: _ConditionParseState, depth: int = 0
) -> Condition | None:
    if len(state.flaws) == FLAWS_MAX:
        return None
    if depth > NESTING_MAX:
        return state.refuse(at, f"nested more than {NESTING_MAX} deep")
    if not isinstance(value, dict):
        return state.refuse(at, "wants an object with `var`, or with one of `and`, `or`, `not`")
    joins = [name for name in _JOINS if name in value]
    if not joins:
        return _read_comparison(value, at, state)
    if len(value) > 1:
        state.refuse(at, f"`{joins[0]}` must stand alone; join it to the rest with `and` or `or`")
    parsed_joins = [_read_join(name, value[name], f"{at}/{name}", state, depth) for name in joins]
    return parsed_joins[0]


def _read_join(
    name: str, value: Json, at: str, state: _ConditionParseState, depth: int
) -> Condition | None:
    if name == "not":
        part = _read_condition(value, at, state, depth + 1)
        return Negation(part) if part else None
    if not isinstance(value, list) or not value:
        return state.refuse(at, "wants a list that is not empty")
    parsed_parts = [
        _read_condition(part, f"{at}/{i}", state, depth + 1) for i, part in enumerate(value)
    ]
    return Join("and" if name == "and" else "or", tuple(part for part in parsed_parts if part))


def _read_comparison(
    value: dict[str, Json], at: str, state: _ConditionParseState
) -> Condition | None:
    state.count += 1
    flaw_count, var = len(state.flaws), value.get("var")
    if "var" not in value:
        state.refuse(at, "wants `var`, or one of `and`, `or`, `not`")
    elif not isinstance(var, str) or not _PATH.fullmatch(var):
        message = "is not the path of a variable: use names or numbers with dots between them, "
        state.refuse(f"{at}/var", f"{message}at most 8, the first a name")
    for name in [name for name in value if name not in ("var", *OPERATORS)][:FLAWS_MAX]:
        state.refuse(f"{at}/{escape_pointer_part(name)}", _unknown_key_message(name))
    used_operators: list[Operator] = [operator for operator in OPERATORS if operator in value]
    for operator in used_operators:
        if expected := operators.expected_operand(operator, value[operator]):
            state.refuse(f"{at}/{operator}", f"wants {expected}")
        elif operator == "matches":
            state.patterns.append((f"{at}/matches", cast("str", value["matches"])))
    if len(used_operators) > 1:
        names = ", ".join(f"`{name}`" for name in used_operators)
        state.refuse(at, f"has {names}; write a comparison for each and join them with `and`")
    if len(state.flaws) > flaw_count or not isinstance(var, str):
        return None
    return (
        Comparison(var, used_operators[0], value[used_operators[0]])
        if used_operators
        else TruthTest(var)
    )


def _unknown_key_message(name: str) -> str:
    import difflib  # noqa: PLC0415 (needed only after a mistake)

    name = clip(name, _SHOWN_LENGTH_MAX)
    known_words = {word.lower(): word for word in (*OPERATORS, *_JOINS, "var")}
    near = difflib.get_close_matches(name.lower(), known_words, n=1)
    hint = (
        f"did you mean `{known_words[near[0]]}`?" if near else f"use one of {', '.join(OPERATORS)}"
    )
    return f"`{name}` is not known here; {hint}"


def _refuse_costly_patterns(state: _ConditionParseState) -> None:
    total = 0
    for at, pattern in state.patterns[:COUNT_MAX]:
        if len(state.flaws) == FLAWS_MAX:
            break
        result = operators.instruction_count(pattern)
        if isinstance(result, str):
            state.refuse(at, f"cannot be searched for in linear time: {result}")
            continue
        total += result
        if total > INSTRUCTIONS_MAX:
            message = f"the patterns of a condition may have {INSTRUCTIONS_MAX} instructions in all"
            state.refuse(at, f"{message}, compiled; with this, they have more")
            break


def _unusable_value(comparison: Comparison, value: Json, at: str) -> UnusableValue:
    var, operator, operand = comparison.var, comparison.operator, comparison.value
    match value:
        case list():
            description = "a list"
        case dict():
            description = "an object"
        case _:
            description = quote(value, _SHOWN_LENGTH_MAX)
    needed_kind = operators.required_variable_kind(operator, operand)
    reason = f"only {needed_kind} can be asked whether it {operators.phrase(operator, operand)}"
    return UnusableValue(
        var, at, f"`{var}` is {description}, and {reason}. Set `{var}` to {needed_kind}."
    )


def _describe(condition: Condition) -> str:
    match condition:
        case Join(connective, parts):
            descriptions = (
                f"({_describe(part)})" if isinstance(part, Join) else _describe(part)
                for part in parts
            )
            return f" {connective} ".join(descriptions)
        case Negation(part):
            return f"not ({_describe(part)})"
        case TruthTest(var):
            return f"`{var}` is set and not false, 0 or empty"
        case Comparison(var, operator, operand):
            return f"`{var}` {operators.phrase(operator, operand)}"
