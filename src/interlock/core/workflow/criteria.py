"""Criteria: what a workflow author demands of a step's output (`validationCriteria`), as data.

Four rules, and three ways to join them; a bare list means `and`:

    {"type": "contains", "value": "…"}               the notes contain the text
    {"type": "regex", "pattern": "…", "flags": "i"}  it is found in the notes (flags: i, m, s)
    {"type": "length", "min": 40, "max": 400}        of the notes, in characters
    {"type": "schema", "schema": {…}}                at least one artifact satisfies it (2020-12)
    {"and": […]}  {"or": […]}  {"not": …}

A rule may carry a `message`: the author's words, which then stand before ours; and a `condition`:
where that does not hold, the rule does not count, as if it were not written. Capitals count in
`contains`, as they always did in these files; a regex with the flag `i` does not mind them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import conditions, schemas
from interlock.core.workflow.conditions import Condition, Flaw, Trouble
from interlock.core.workflow.operators import clip, quote
from interlock.core.workflow.patterns import compile_pattern

TEXT_LENGTH_MAX = 1_000
BYTES_MAX = 256 * 1024
COUNT_MAX = 100
NESTING_MAX = 16
LINES_MAX = 8

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LENGTH_MAX)]
Size = Annotated[int, msgspec.Meta(ge=1)]


class _Rule(
    msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, omit_defaults=True
):
    pass


class Contains(_Rule, frozen=True, tag="contains"):
    value: Text
    message: Text | None = None


class Regex(_Rule, frozen=True, tag="regex"):
    pattern: Text
    flags: Annotated[str, msgspec.Meta(pattern="^i?m?s?$")] = ""
    message: Text | None = None


class Length(_Rule, frozen=True, tag="length"):
    min: Size | None = None
    max: Size | None = None
    message: Text | None = None


class Schema(_Rule, frozen=True, tag="schema"):
    schema: dict[str, Any]
    message: Text | None = None


Rule: TypeAlias = Contains | Regex | Length | Schema


class When(msgspec.Struct, frozen=True):
    """A rule that counts only where its condition holds."""

    condition: Condition
    rule: Rule


class And(msgspec.Struct, frozen=True):
    parts: "tuple[Criterion, ...]"


class Or(msgspec.Struct, frozen=True):
    parts: "tuple[Criterion, ...]"


class Not(msgspec.Struct, frozen=True):
    part: "Criterion"


Criterion: TypeAlias = Rule | When | And | Or | Not


class Issue(msgspec.Struct, frozen=True):
    """One demand that is not met. `pointer` is its place in the criteria as `to_json` has them."""

    rule: Literal["contains", "regex", "length", "schema", "or", "not", "condition"]
    pointer: str
    message: str
    suggestion: str


class _Handed(msgspec.Struct, frozen=True):
    """What criteria are held against. `artifacts` have canonical forms."""

    notes: str
    artifacts: Sequence[Json]
    context: Mapping[str, Json]


def parse(value: Json, pointer: str = "") -> Criterion | tuple[Flaw, ...]:
    """The criteria, or everything that is wrong with them. `pointer` is where they stand."""
    read = schemas.plain(value, pointer, bytes_max=BYTES_MAX)
    if isinstance(read, Flaw):
        return (read,)
    reading = _Reading()
    criterion = _read(read[0], pointer, reading)
    if len(reading.rules) > COUNT_MAX:
        reading.refuse(pointer, f"more than {COUNT_MAX} rules")
    for at, rule in reading.rules[:COUNT_MAX]:
        _weigh(rule, at, reading)
        if reading.refuse_excess(at):
            break
    if criterion is None or reading.flaws:
        return tuple(dict.fromkeys(reading.flaws))
    return criterion


def unpack(content: bytes | msgspec.Raw) -> Criterion:
    """Criteria that `parse` took before; they are not weighed again."""
    reading = _Reading(is_known=True)
    criterion = _read(msgspec.json.decode(content), "", reading)
    assert not reading.flaws, f"these criteria were never taken: {reading.flaws}"
    return cast("Criterion", criterion)


def to_json(criterion: Criterion) -> Json:
    """The one form of the criteria that is hashed, whichever way they were written."""
    match criterion:
        case And(parts):
            return {"and": [to_json(part) for part in parts]}
        case Or(parts):
            return {"or": [to_json(part) for part in parts]}
        case Not(part):
            return {"not": to_json(part)}
        case When(condition, rule):
            written = cast("dict[str, Json]", to_json(rule))
            return {**written, "condition": conditions.to_json(condition)}
        case _:
            return msgspec.json.decode(msgspec.json.encode(criterion))


def check(
    criterion: Criterion,
    *,
    notes: str,
    artifacts: Sequence[Json],
    context: Mapping[str, Json] = {},
    pointer: str = "",
) -> tuple[Issue, ...]:
    """What of `criterion` is not met; nothing if all of it is. `artifacts` have canonical forms."""
    return _check(criterion, _Handed(notes, artifacts, context), pointer) or ()


def _check(criterion: Criterion, handed: _Handed, at: str) -> tuple[Issue, ...] | None:
    """The issues, or None for what does not count.

    Where all issues are troubles with a condition, nobody knows whether the criterion is met.
    """
    match criterion:
        case When(condition, rule):
            answer = conditions.evaluate(condition, handed.context)
            if isinstance(answer, Trouble):
                return (_troubled(answer, at),)
            return _check(rule, handed, at) if answer else None
        case And(parts):
            found = _counted(parts, handed, f"{at}/and")
            return tuple(issue for issues in found for issue in issues) if found else None
        case Or(parts):
            found = _counted(parts, handed, f"{at}/or")
            return _none_met(found, at) if found else None
        case Not(part):
            issues = _check(part, handed, f"{at}/not")
            if issues is None or (issues and all(map(_is_trouble, issues))):
                return issues
            message = f"This is so and must not be: {_words(part)}"
            todo = f"Make a change, so that this is not so: {_words(part)}."
            return () if issues else (Issue("not", at, message, todo),)
        case _:
            wrong = _wrong(criterion, handed.notes, handed.artifacts)
            kind: Any = criterion.__struct_config__.tag
            return (Issue(kind, at, *wrong),) if wrong else ()


def _counted(parts: Sequence[Criterion], handed: _Handed, at: str) -> list[tuple[Issue, ...]]:
    found = [_check(part, handed, f"{at}/{index}") for index, part in enumerate(parts)]
    return [issues for issues in found if issues is not None]


def _none_met(found: list[tuple[Issue, ...]], at: str) -> tuple[Issue, ...]:
    """Of alternatives that count: nothing, if one is met."""
    if not all(found):
        return ()
    if unknown := [issues for issues in found if all(map(_is_trouble, issues))]:
        return tuple(issue for issues in unknown for issue in issues)
    nearest = min(found, key=len)
    message = clip("; nor: ".join(issues[0].message for issues in found), 1_000)
    message = f"None of the {len(found)} alternatives is met: {message}"
    return (Issue("or", at, message, " ".join(issue.suggestion for issue in nearest)),)


def _troubled(trouble: Trouble, at: str) -> Issue:
    message = f"Whether this rule counts cannot be said: {trouble.message}"
    todo = f"Set `{trouble.var}` in the context to a value that can be compared."
    return Issue("condition", f"{at}/condition{trouble.pointer}", message, todo)


def _is_trouble(issue: Issue) -> bool:
    return issue.rule == "condition"


def requirements(criterion: Criterion) -> tuple[str, ...]:
    """What is demanded, in a few lines for the one who has to meet it."""
    parts = criterion.parts if isinstance(criterion, And) else (criterion,)
    lines = [clip(_words(part), 500) for part in parts]
    if len(lines) > LINES_MAX:
        left = len(lines) - LINES_MAX + 1
        lines[LINES_MAX - 1 :] = [f"and {left} more; you will be told which of them are not met"]
    return tuple(line[0].upper() + line[1:] for line in lines)


class _Reading(schemas.Weighing):
    """What was found so far."""

    rules: list[tuple[str, Rule | When]] = msgspec.field(
        default_factory=list[tuple[str, Rule | When]]
    )
    is_known: bool = False
    """These were read and weighed before."""


def _read(value: Any, at: str, reading: _Reading, depth: int = 0) -> Criterion | None:
    if depth > NESTING_MAX:
        return reading.refuse(at, f"nested more than {NESTING_MAX} deep")
    match value:
        case [_, *_]:
            return And(_read_parts(value, at, reading, depth))
        case {"and": [_, *_] as parts, **rest} if not rest:
            return And(_read_parts(parts, f"{at}/and", reading, depth))
        case {"or": [_, *_] as parts, **rest} if not rest:
            return Or(_read_parts(parts, f"{at}/or", reading, depth))
        case {"not": inner, **rest} if not rest:
            part = _read(inner, f"{at}/not", reading, depth + 1)
            return Not(part) if part else None
        case {"type": "contains" | "regex" | "length" | "schema"}:
            return _read_rule(value, at, reading)
        case _:
            what = "wants a `type` (contains, regex, length or schema), or just one of"
            return reading.refuse(
                at, f"{what} `and`, `or` (with a list that is not empty) and `not`"
            )


def _read_parts(
    parts: Sequence[Any], at: str, reading: _Reading, depth: int
) -> tuple[Criterion, ...]:
    read = [_read(part, f"{at}/{i}", reading, depth + 1) for i, part in enumerate(parts)]
    return tuple(part for part in read if part)


def _read_rule(value: dict[str, Any], at: str, reading: _Reading) -> Rule | When | None:
    condition = _read_condition(value.get("condition"), f"{at}/condition", reading)
    try:
        rule = msgspec.convert({key: value[key] for key in value if key != "condition"}, Rule)
    except msgspec.ValidationError as error:
        # msgspec says "…what… - at `$.value`"; the place is left out when it is the whole rule.
        what, _, place = str(error).partition(" - at `$")
        return reading.refuse(at + place.rstrip("`").replace(".", "/"), what)
    read = When(condition, rule) if condition else rule
    reading.rules.append((at, read))
    return read


def _read_condition(value: Json, at: str, reading: _Reading) -> Condition | None:
    if value is None or reading.is_known:
        return None if value is None else conditions.unpack(msgspec.json.encode(value))
    parsed = conditions.parse(value, at)
    if not isinstance(parsed, tuple):
        return parsed
    for flaw in parsed:
        reading.refuse(flaw.pointer, flaw.message)
    return None


def _weigh(rule: Rule | When, at: str, reading: _Reading) -> None:
    """Refuse what makes no sense, and add up the work of the rest."""
    match rule:
        case When(condition, inner):
            for pattern in _patterns(conditions.to_json(condition)):
                schemas.weigh_pattern(pattern, f"{at}/condition", reading)
            _weigh(inner, at, reading)
        case Regex(pattern, flags):
            schemas.weigh_pattern(pattern, f"{at}/pattern", reading, flags)
        case Length(None, None):
            reading.refuse(at, "wants `min` or `max`")
        case Length(int(least), int(most)) if least > most:
            reading.refuse(at, f"no text has at least {least} and at most {most} characters")
        case Schema(schema):
            schemas.weigh(schema, f"{at}/schema", reading)
        case _:
            pass


def _patterns(condition: Json) -> Iterator[str]:
    """All patterns in a condition, as `conditions.to_json` has it."""
    match condition:
        case {"and": list(parts)} | {"or": list(parts)}:
            for part in parts:
                yield from _patterns(part)
        case {"not": part}:
            yield from _patterns(part)
        case {"matches": str(pattern)}:
            yield pattern
        case _:
            pass


def _wrong(rule: Rule, notes: str, artifacts: Sequence[Json]) -> tuple[str, str] | None:
    """What is wrong, and what to do about it."""
    size, text = len(notes), notes.encode(errors="replace")
    match rule:
        case Contains(value) if value not in notes:
            near = " with these capitals" if value.lower() in notes.lower() else ""
            wrong = f"The notes do not contain {quote(value, BYTES_MAX)}{near}"
            todo = f"Write this in the notes: {quote(value, BYTES_MAX)}"
        case Regex(pattern, flags) if not compile_pattern(pattern, flags).search(text):
            wrong = f"Nothing in the notes matches /{pattern}/{flags}"
            todo = f"Write something in the notes that matches /{pattern}/{flags}"
        case Length(int(least)) if size < least:
            wrong = f"The notes have {size} characters; at least {least} are wanted"
            todo = f"Add at least {least - size} characters."
        case Length(_, int(most)) if size > most:
            wrong = f"The notes have {size} characters; at most {most} are wanted"
            todo = f"Remove at least {size - most} characters."
        case Schema(schema) if not any(map(schemas.validator(schema), artifacts)):
            wrong = _why_none_fits(schema, artifacts)
            todo = f"Hand in an artifact that satisfies this schema: {quote(schema, 2_000)}"
        case _:
            return None
    return (f"{rule.message.rstrip('.')}: {wrong}" if rule.message else wrong), todo


def _why_none_fits(schema: dict[str, Any], artifacts: Sequence[Json]) -> str:
    if not artifacts:
        return "There is no artifact; one is wanted that satisfies the schema"
    which = "The artifact" if len(artifacts) == 1 else f"The first of {len(artifacts)} artifacts"
    error = schemas.first_error(schema, artifacts[0])
    if error is None:
        return f"{which} does not satisfy the schema"
    place = f" at {error.pointer}" if error.pointer else ""
    return f"{which} does not satisfy the schema{place}: {error.message}"


def _words(criterion: Criterion) -> str:
    """What is demanded, as a clause."""
    match criterion:
        case And(parts):
            return f"all of these: ({'; and '.join(map(_words, parts))})"
        case Or(parts):
            return f"one of these: ({'; or '.join(map(_words, parts))})"
        case Not(part):
            return f"this is not so: ({_words(part)})"
        case When(condition, rule):
            return f"if {conditions.words(condition)}: {_words(rule)}"
        case Contains(value):
            said = f"the notes contain {quote(value, BYTES_MAX)}"
        case Regex(pattern, flags):
            said = f"something in the notes matches /{pattern}/{flags}"
        case Length(least, most):
            bounds = [f"at {word} {n}" for word, n in (("least", least), ("most", most)) if n]
            said = f"the notes have {' and '.join(bounds)} characters"
        case Schema(schema):
            said = f"an artifact satisfies the JSON Schema {quote(schema, 300)}"
    return f"{criterion.message.rstrip('.')} ({said})" if criterion.message else said
