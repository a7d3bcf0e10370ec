"""Criteria: what a workflow author demands of a step's output (`validationCriteria`), as data.

Four rules, and three ways to join them; a bare list means `and`:

    {"type": "contains", "value": "…"}               the notes contain the text
    {"type": "regex", "pattern": "…", "flags": "i"}  it is found in the notes (flags: i, m, s)
    {"type": "length", "min": 40, "max": 400}        of the notes, in characters
    {"type": "schema", "schema": {…}}                at least one artifact satisfies it (2020-12)
    {"and": […]}  {"or": […]}  {"not": …}

A rule may carry a `message`: the author's words, which then stand before ours. Capitals count in
`contains`, as they always did in these files; a regex with the flag `i` does not mind them.
Patterns and schemas are foreign programs: what they may cost is weighed before they are taken.
"""

import importlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import Json, NotCanonical, escape

TEXT_LENGTH_MAX = 1_000
SCHEMA_BYTES_MAX = 64 * 1024
BYTES_MAX = 256 * 1024
COUNT_MAX = 100
NESTING_MAX = 16
WORK_MAX = 1_500
"""For all patterns and schemas together: an instruction of a compiled pattern is one, and so is a
value in a schema, again for each `$ref` to it. At worst, one takes 0.5 ms for 64 KB of output."""
FLAWS_MAX = 20
LINES_MAX = 8
_EXPLAINED_MAX = 50_000  # work of a schema with alternatives times values in an artifact
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

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


class And(msgspec.Struct, frozen=True):
    parts: "tuple[Criterion, ...]" = msgspec.field(name="and")


class Or(msgspec.Struct, frozen=True):
    parts: "tuple[Criterion, ...]" = msgspec.field(name="or")


class Not(msgspec.Struct, frozen=True):
    part: "Criterion" = msgspec.field(name="not")


Rule: TypeAlias = Contains | Regex | Length | Schema
Criterion: TypeAlias = Rule | And | Or | Not


class Flaw(msgspec.Struct, frozen=True):
    """One thing that is wrong with criteria as they were written, and where (JSON pointer)."""

    pointer: str
    message: str


class Issue(msgspec.Struct, frozen=True):
    """One demand that is not met. `pointer` is its place in the criteria as `to_json` has them."""

    rule: Literal["contains", "regex", "length", "schema", "or", "not"]
    pointer: str
    message: str
    suggestion: str


def parse(value: Json, pointer: str = "") -> Criterion | tuple[Flaw, ...]:
    """The criteria, or everything that is wrong with them. `pointer` is where they stand."""
    try:
        content = canonical.encode(value)
        if len(content) > BYTES_MAX:
            return (Flaw(pointer, f"more than {BYTES_MAX} bytes"),)
        plain = msgspec.json.decode(content)
        canonical.encode(plain)  # 1e20 became an integer, which is not taken when it is read again
    except NotCanonical as refused:
        return (Flaw(pointer + refused.pointer, refused.reason),)
    reading = _Reading()
    criterion = _read(plain, pointer, reading)
    if len(reading.rules) > COUNT_MAX:
        reading.refuse(pointer, f"more than {COUNT_MAX} rules")
    for at, rule in reading.rules[:COUNT_MAX]:
        _weigh(rule, at, reading)
        if reading.work > WORK_MAX:
            what = f"patterns and schemas may cost {WORK_MAX} in all; with this, they cost more"
            reading.refuse(at, f"{what} (a schema that refers to itself has no end)")
            break
    if criterion is None or reading.flaws:
        return tuple(dict.fromkeys(reading.flaws))
    return criterion


def unpack(content: bytes | msgspec.Raw) -> Criterion:
    """Criteria that `parse` took before; they are not weighed again."""
    reading = _Reading()
    criterion = _read(msgspec.json.decode(content), "", reading)
    assert not reading.flaws, f"these criteria were never taken: {reading.flaws}"
    return cast("Criterion", criterion)


def to_json(criterion: Criterion) -> Json:
    """The one form of the criteria that is hashed, whichever way they were written."""
    return msgspec.json.decode(msgspec.json.encode(criterion))


def check(
    criterion: Criterion, *, notes: str, artifacts: Sequence[Json], pointer: str = ""
) -> tuple[Issue, ...]:
    """What of `criterion` is not met; nothing if all of it is. `artifacts` have canonical forms."""
    match criterion:
        case And(parts) | Or(parts):
            how = "and" if isinstance(criterion, And) else "or"
            found = [
                check(part, notes=notes, artifacts=artifacts, pointer=f"{pointer}/{how}/{index}")
                for index, part in enumerate(parts)
            ]
            if how == "and":
                return tuple(issue for issues in found for issue in issues)
            nearest = min(found, key=len)
            message = "; nor: ".join(issues[0].message for issues in found if issues)
            message = f"None of the {len(parts)} alternatives is met: {_clip(message, 1_000)}"
            todo = " ".join(issue.suggestion for issue in nearest)
            return (Issue("or", pointer, message, todo),) if nearest else ()
        case Not(part):
            is_met = not check(part, notes=notes, artifacts=artifacts)
            message = f"This is so and must not be: {_words(part)}"
            todo = f"Make a change, so that this is not so: {_words(part)}."
            return (Issue("not", pointer, message, todo),) if is_met else ()
        case _:
            wrong = _wrong(criterion, notes, artifacts)
            kind: Any = criterion.__struct_config__.tag
            return (Issue(kind, pointer, *wrong),) if wrong else ()


def requirements(criterion: Criterion) -> tuple[str, ...]:
    """What is demanded, in a few lines for the one who has to meet it."""
    parts = criterion.parts if isinstance(criterion, And) else (criterion,)
    lines = [_clip(_words(part), 500) for part in parts]
    if len(lines) > LINES_MAX:
        left = len(lines) - LINES_MAX + 1
        lines[LINES_MAX - 1 :] = [f"and {left} more; you will be told which of them are not met"]
    return tuple(line[0].upper() + line[1:] for line in lines)


class _Reading(msgspec.Struct):
    """What was found so far."""

    flaws: list[Flaw] = []
    rules: list[tuple[str, Rule]] = []
    work: int = 0

    def refuse(self, at: str, message: str) -> None:
        if len(self.flaws) < FLAWS_MAX:
            self.flaws.append(Flaw(at, message))


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


def _read_rule(value: dict[str, Any], at: str, reading: _Reading) -> Rule | None:
    try:
        rule = msgspec.convert(value, Rule)
    except msgspec.ValidationError as error:
        # msgspec says "…what… - at `$.value`"; the place is left out when it is the whole rule.
        what, _, place = str(error).partition(" - at `$")
        return reading.refuse(at + place.rstrip("`").replace(".", "/"), what)
    reading.rules.append((at, rule))
    return rule


def _weigh(rule: Rule, at: str, reading: _Reading) -> None:
    """Refuse what makes no sense, and add up the work of the rest."""
    match rule:
        case Regex(pattern, flags):
            _weigh_pattern(pattern, f"{at}/pattern", reading, flags)
        case Length(None, None):
            reading.refuse(at, "wants `min` or `max`")
        case Length(int(least), int(most)) if least > most:
            reading.refuse(at, f"no text has at least {least} and at most {most} characters")
        case Schema(schema):
            _weigh_schema(schema, f"{at}/schema", reading)
        case _:
            pass


def _compile(pattern: str, flags: str, memory: int = 2 * 1024 * 1024) -> Any:
    """The pattern, for an engine that takes linear time and comes without types."""
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # groups would keep it from its fast path
    options.max_mem = memory  # of each; the last 128 are kept
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except re2.error as refused:
        raise ValueError(refused.args[0].decode(errors="replace")) from None


def _weigh_pattern(pattern: str, at: str, reading: _Reading, flags: str = "") -> None:
    if len(reading.flaws) == FLAWS_MAX:
        return
    try:
        # With so little memory, a pattern that is far too large is refused at once.
        reading.work += _compile(pattern, flags, 128 * 1024).programsize
    except ValueError as refused:
        reading.refuse(at, f"cannot be searched for in linear time: {refused}")


def _validator(schema: dict[str, Any]) -> Any:
    """One that takes linear time for patterns, too, and never fetches anything."""
    import jsonschema_rs as engine  # noqa: PLC0415

    linear = engine.RegexOptions()
    return engine.Draft202012Validator(schema, pattern_options=linear, offline=True, mask="it")


def _weigh_schema(schema: dict[str, Json], base: str, reading: _Reading) -> None:
    if len(msgspec.json.encode(schema)) > SCHEMA_BYTES_MAX:
        return reading.refuse(base, f"more than {SCHEMA_BYTES_MAX} bytes")
    flaw_count, defs = len(reading.flaws), schema.get("$defs")
    waiting: list[tuple[str, Json]] = [(base, schema)]
    while waiting:
        for at, under, key, item in _pairs(*waiting.pop()):
            reading.work += 1
            if reading.work > WORK_MAX:
                return None  # a recursive schema ends here, too
            if under == "patternProperties":
                _weigh_pattern(key, at, reading)
            if key in ("unevaluatedItems", "unevaluatedProperties"):
                reading.refuse(at, f"`{key}` is not taken: it costs twice as much at each level")
            elif not isinstance(item, str):
                continue
            elif key == "pattern":
                _weigh_pattern(item, at, reading)
            elif key == "$ref":
                name = item.removeprefix("#/$defs/")
                is_local = name != item and not {*name} & {*"/~%"}  # what would be unescaped
                if is_local and isinstance(defs, dict) and name in defs:
                    waiting.append((f"{base}/$defs/{name}", defs[name]))
                else:
                    reading.refuse(at, "only #/$defs/name of the same schema is taken")
            elif key == "$schema" and item.rstrip("#") != _DIALECT:
                reading.refuse(at, f"only draft 2020-12 is taken: {_DIALECT}")
            elif key == "$dynamicRef" or (key == "$id" and at != f"{base}/$id"):
                reading.refuse(at, f"`{key}` is not taken here")
    if len(reading.flaws) == flaw_count and (flaw := _first_error(schema)):
        reading.refuse(base + flaw.pointer, flaw.message)
    return None


def _pairs(at: str, value: Json, under: str = "") -> Iterator[tuple[str, str, str, Json]]:
    """All that is in a value, at any depth: where, in what, under which key, and what it is."""
    items = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else items:
        here = f"{at}/{escape(str(key))}"
        yield here, under, str(key), item
        yield from _pairs(here, item, str(key))


def _first_error(schema: dict[str, Any], *artifacts: Json) -> Flaw | None:
    """What is wrong with the schema itself, or else with an artifact under it."""
    try:
        validator = _validator(schema)
        for artifact in artifacts:
            validator.validate(artifact)
    except ValueError as error:
        place = "".join(f"/{escape(str(step))}" for step in getattr(error, "instance_path", ()))
        found = _quote(getattr(error, "instance", None), 80)
        return Flaw(place, f"{_clip(getattr(error, 'message', str(error)), 200)} (found {found})")
    return None


def _wrong(rule: Rule, notes: str, artifacts: Sequence[Json]) -> tuple[str, str] | None:
    """What is wrong, and what to do about it."""
    size, text = len(notes), notes.encode(errors="replace")
    match rule:
        case Contains(value) if value not in notes:
            near = " with these capitals" if value.lower() in notes.lower() else ""
            wrong = f"The notes do not contain {_quote(value)}{near}"
            todo = f"Write this in the notes: {_quote(value)}"
        case Regex(pattern, flags) if not _compile(pattern, flags).search(text):
            wrong = f"Nothing in the notes matches /{pattern}/{flags}"
            todo = f"Write something in the notes that matches /{pattern}/{flags}"
        case Length(int(least)) if size < least:
            wrong = f"The notes have {size} characters; at least {least} are wanted"
            todo = f"Add at least {least - size} characters."
        case Length(_, int(most)) if size > most:
            wrong = f"The notes have {size} characters; at most {most} are wanted"
            todo = f"Remove at least {size - most} characters."
        case Schema(schema) if not any(map(_validator(schema).is_valid, artifacts)):
            wrong = _why_none_fits(schema, artifacts)
            todo = f"Hand in an artifact that satisfies this schema: {_quote(schema, 2_000)}"
        case _:
            return None
    return (f"{rule.message.rstrip('.')}: {wrong}" if rule.message else wrong), todo


def _why_none_fits(schema: dict[str, Any], artifacts: Sequence[Json]) -> str:
    if not artifacts:
        return "There is no artifact; one is wanted that satisfies the schema"
    which = "The artifact" if len(artifacts) == 1 else f"The first of {len(artifacts)} artifacts"
    if any(f'"{join}":' in _quote(schema) for join in ("anyOf", "oneOf")):
        # On the way to the first error, all errors in the alternatives are collected: 10 µs each.
        _weigh_schema(schema, "", reading := _Reading())
        if reading.work * (_quote(artifacts[0]).count(",") + 1) > _EXPLAINED_MAX:
            return f"{which} does not satisfy the schema"
    error = _first_error(schema, artifacts[0])
    assert error is not None, "it does not satisfy the schema"
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
        case Contains(value):
            said = f"the notes contain {_quote(value)}"
        case Regex(pattern, flags):
            said = f"something in the notes matches /{pattern}/{flags}"
        case Length(least, most):
            bounds = [f"at {word} {n}" for word, n in (("least", least), ("most", most)) if n]
            said = f"the notes have {' and '.join(bounds)} characters"
        case Schema(schema):
            said = f"an artifact satisfies the JSON Schema {_quote(schema, 300)}"
    return f"{criterion.message.rstrip('.')} ({said})" if criterion.message else said


def _quote(value: Any, length: int = SCHEMA_BYTES_MAX) -> str:
    return _clip(msgspec.json.encode(value).decode(), length)


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
