"""Foreign JSON Schemas (2020-12): what one may cost, what is wrong with a value, what it declares.

Patterns and schemas are programs of strangers: what they may cost is weighed before they are taken,
patterns are searched for in linear time, and nothing is ever fetched.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias, cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import Json, NotCanonical, escape_pointer_part
from interlock.core.workflow.conditions import Flaw
from interlock.core.workflow.operators import clip, quote
from interlock.core.workflow.patterns import compile_pattern, pattern_size

BYTES_MAX = 64 * 1024
WORK_MAX = 1_500
"""For all patterns and schemas together: an instruction of a compiled pattern is one, and so is a
value in a schema, again for each `$ref` to it. At worst, one takes 0.5 ms for 64 KB of output."""
FLAWS_MAX = 20
ERRORS_MAX = 20
_EXPLAINED_WORK_MAX = (
    50_000  # work of a schema times values: at worst so many errors, of 10 µs each
)
_COPIED_MAX = 1_000_000  # with each error goes a copy of what is wrong: 0.1 µs and 100 bytes each
_VISITED_MAX = 10_000
_REFS_MAX = 16
_INDEX_MAX = 10  # digits of an index
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
ANNOTATION_KEYWORDS = frozenset(
    ("$schema", "$id", "$defs", "$comment", "title", "description", "default", "examples")
)
"""Keywords that demand nothing."""
_AMBIGUOUS_KEYWORDS = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "additionalProperties")
)

SchemaNode: TypeAlias = dict[str, Any]


class SchemaError(msgspec.Struct, frozen=True):
    """One thing that a value lacks, and where (JSON pointer; of a missing field, its own)."""

    pointer: str
    message: str


class CostTally(msgspec.Struct):
    """What patterns and schemas cost together so far, and what is wrong with them."""

    flaws: list[Flaw] = []
    work: int = 0

    def refuse(self, at: str, message: str) -> None:
        if len(self.flaws) < FLAWS_MAX:
            self.flaws.append(Flaw(at, message))

    def refuse_excess(self, at: str) -> bool:
        """Whether all of it costs too much, with what stands at `at` as the last straw."""
        if self.work > WORK_MAX:
            what = f"patterns and schemas may cost {WORK_MAX} in all; with this, they cost more"
            self.refuse(at, f"{what} (a schema that refers to itself has no end)")
        return self.work > WORK_MAX


def canonical_value(value: Json, at: str, *, bytes_max: int) -> tuple[Json] | Flaw:
    """The value as its canonical form will be read, in a tuple: a value may be anything."""
    try:
        content = canonical.encode(value)
        if len(content) > bytes_max:
            return Flaw(at, f"more than {bytes_max} bytes")
        read = msgspec.json.decode(content)
        canonical.encode(read)  # 1e20 became an integer, which is not taken when it is read again
    except NotCanonical as refused:
        return Flaw(at + refused.pointer, refused.reason)
    return (read,)


def weigh(schema: SchemaNode, base: str, tally: CostTally) -> None:
    """Add what the schema costs, and everything that is wrong with it."""
    if len(msgspec.json.encode(schema)) > BYTES_MAX:
        return tally.refuse(base, f"more than {BYTES_MAX} bytes")
    flaw_count, defs = len(tally.flaws), schema.get("$defs")
    waiting: list[tuple[str, Json]] = [(base, schema)]
    while waiting:
        for at, under, key, item in _walk_values(*waiting.pop()):
            tally.work += 1
            if tally.work > WORK_MAX:
                return None  # a recursive schema ends here, too
            if under == "patternProperties":
                weigh_pattern(key, at, tally)
            if key in ("unevaluatedItems", "unevaluatedProperties"):
                tally.refuse(at, f"`{key}` is not taken: it costs twice as much at each level")
            elif not isinstance(item, str):
                continue
            elif key == "pattern":
                weigh_pattern(item, at, tally)
            elif key == "$ref":
                name = item.removeprefix("#/$defs/")
                is_local = name != item and not {*name} & {*"/~%"}  # what would be unescaped
                if is_local and isinstance(defs, dict) and name in defs:
                    waiting.append((f"{base}/$defs/{name}", cast("dict[str, Json]", defs)[name]))
                else:
                    tally.refuse(at, "only #/$defs/name of the same schema is taken")
            elif key == "$schema" and item.rstrip("#") != _DIALECT:
                tally.refuse(at, f"only draft 2020-12 is taken: {_DIALECT}")
            elif key == "$dynamicRef" or (key == "$id" and at != f"{base}/$id"):
                tally.refuse(at, f"`{key}` is not taken here")
    if len(tally.flaws) == flaw_count and (flaw := _first_error(schema)):
        tally.refuse(base + flaw.pointer, flaw.message)
    return None


def weigh_pattern(pattern: str, at: str, tally: CostTally, flags: str = "") -> None:
    if len(tally.flaws) == FLAWS_MAX:
        return
    try:
        tally.work += pattern_size(pattern, flags)
    except ValueError as refused:
        tally.refuse(at, f"cannot be searched for in linear time: {refused}")


def validator(schema: SchemaNode) -> Callable[[Json], bool]:
    """Whether a value satisfies a schema that was weighed."""
    return _build_validator(schema).is_valid


def first_error(schema: SchemaNode, value: Json) -> SchemaError | None:
    """What is wrong with a value that does not satisfy the schema, if that is not costly to say."""
    if _has_alternatives(schema) and _is_costly(schema, value):
        return None
    return _first_error(schema, value)


def errors(schema: SchemaNode, value: Json) -> tuple[SchemaError, ...]:
    """What is wrong with the value: at most `ERRORS_MAX`, and one where more are costly to find."""
    judge = _build_validator(schema)
    if judge.is_valid(value):
        return ()
    if not _is_costly(schema, value):
        return tuple(
            _readable_error(error) for error in islice(judge.iter_errors(value), ERRORS_MAX)
        )
    if not _has_alternatives(schema):
        try:
            judge.validate(value)
        except ValueError as error:
            return (_readable_error(error),)
    return (SchemaError("", "it does not satisfy the schema"),)


def subschema_at(schema: SchemaNode, pointer: str) -> SchemaNode | None:
    """What the schema says of the value at a place, where it says so plainly."""
    node = resolve(schema, schema)
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        below = None if node is None else _subschema_of(node, key)
        if below is None and node is not None and len(key) < _INDEX_MAX and key.isdecimal():
            below = _subschema_of(node, int(key))
        node = resolve(below, schema)
    return node


def resolve(node: Any, schema: SchemaNode) -> SchemaNode | None:
    """A part of `schema`, joined with what it refers to, where that is plain."""
    for _ in range(_REFS_MAX):
        if not isinstance(node, dict):
            return {} if node is True else None
        node = cast("SchemaNode", node)
        if "$ref" not in node:
            return node
        target = schema.get("$defs", {}).get(str(node["$ref"]).removeprefix("#/$defs/"))
        node = _merged_node({key: item for key, item in node.items() if key != "$ref"}, target)
    return None


def undeclared_members(schema: SchemaNode, value: Json) -> tuple[str, ...]:
    """Where the value has members that the schema does not declare; in doubt, nowhere."""
    found: list[str] = []
    waiting: list[tuple[str, SchemaNode | None, Json]] = [("", resolve(schema, schema), value)]
    visits = 0
    while waiting and len(found) < ERRORS_MAX and visits < _VISITED_MAX:
        at, node, here = waiting.pop()
        if node is None or not isinstance(here, dict | list):
            continue
        is_closed = "properties" in node and not _AMBIGUOUS_KEYWORDS & node.keys()
        patterns = [compile_pattern(pattern) for pattern in node.get("patternProperties", ())]
        items = here.items() if isinstance(here, dict) else enumerate(here)
        for key, item in islice(items, _VISITED_MAX // (1 + len(patterns))):
            visits += 1 + len(patterns)
            below, place = _subschema_of(node, key), f"{at}/{escape_pointer_part(str(key))}"
            is_named = any(pattern.search(str(key).encode()) for pattern in patterns)
            if below is not None:
                waiting.append((place, resolve(below, schema), item))
            elif isinstance(key, str) and is_closed and not is_named:
                found.append(place)
    return tuple(sorted(found[:ERRORS_MAX]))


def _build_validator(schema: SchemaNode) -> Any:
    """One that takes linear time for patterns, too, and never fetches anything."""
    import jsonschema_rs as engine  # noqa: PLC0415

    linear = engine.RegexOptions()
    return engine.Draft202012Validator(schema, pattern_options=linear, offline=True, mask="it")


def _walk_values(at: str, value: Json, under: str = "") -> Iterator[tuple[str, str, str, Json]]:
    """All that is in a value, at any depth: where, in what, under which key, and what it is."""
    items = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else items:
        here = f"{at}/{escape_pointer_part(str(key))}"
        yield here, under, str(key), item
        yield from _walk_values(here, item, str(key))


def _first_error(schema: SchemaNode, *values: Json) -> SchemaError | None:
    """What is wrong with the schema itself, or else with a value under it."""
    try:
        judge = _build_validator(schema)
        for value in values:
            judge.validate(value)
    except ValueError as error:
        place = _pointer(getattr(error, "instance_path", ()))
        return SchemaError(place, _with_found_value(error, getattr(error, "message", str(error))))
    return None


def _readable_error(error: Any) -> SchemaError:
    """An error of the engine, in words that name what is allowed and the place to change."""
    place = _pointer(error.instance_path)
    match error.kind.name:
        case "required":
            return SchemaError(
                f"{place}/{escape_pointer_part(error.kind.property)}", "it is missing"
            )
        case "enum":
            allowed = ", ".join(quote(option) for option in error.kind.options)
            return SchemaError(place, _with_found_value(error, f"it is not one of {allowed}", 600))
        case _:
            return SchemaError(place, _with_found_value(error, error.message))


def _with_found_value(error: Any, message: str, length: int = 200) -> str:
    return f"{clip(message, length)} (found {quote(getattr(error, 'instance', None), 80)})"


def _pointer(steps: Sequence[str | int]) -> str:
    return "".join(f"/{escape_pointer_part(str(step))}" for step in steps)


def _has_alternatives(schema: SchemaNode) -> bool:
    """On the way to a first error, all errors in alternatives are collected."""
    text = msgspec.json.encode(schema)
    return b'"anyOf":' in text or b'"oneOf":' in text


def _is_costly(schema: SchemaNode, value: Json) -> bool:
    """Whether all errors together, which the engine collects before it tells one, are too many."""
    weigh(schema, "", weighing := CostTally())
    count, copied = _extent(value)
    if b'"propertyNames":' in msgspec.json.encode(schema):
        copied *= count  # for each name that is wrong, the engine copies the whole object
    return weighing.work * count > _EXPLAINED_WORK_MAX or weighing.work * copied > _COPIED_MAX


def _extent(root: Json) -> tuple[int, int]:
    """How many values there are, and what a copy of each of them would come to, in 32 bytes."""
    count, copied = 0, 0
    waiting: list[tuple[int, Json]] = [(1, root)]
    while waiting:
        level, value = waiting.pop()
        count += 1
        # A value is copied with each of those that it stands in.
        copied += level * (1 + (len(value) // 32 if isinstance(value, str) else 0))
        if isinstance(value, dict):
            copied += level * sum(1 + len(key) // 32 for key in value)
            waiting += ((level + 1, item) for item in value.values())
        elif isinstance(value, list):
            waiting += ((level + 1, item) for item in value)
    return count, copied


def _merged_node(node: SchemaNode, target: Any) -> Any:
    """Both demands as one, where that is plain."""
    if not isinstance(target, dict):
        return None
    target = cast("SchemaNode", target)
    both = (node.keys() & target.keys()) - ANNOTATION_KEYWORDS - {"properties", "required", "type"}
    if both or ("type" in node and node["type"] != target.get("type", node["type"])):
        return None
    joined = {**target, **node}
    if "properties" in node and "properties" in target:
        joined["properties"] = {**target["properties"], **node["properties"]}
    if "required" in node and "required" in target:
        joined["required"] = [*target["required"], *node["required"]]
    return joined


def _subschema_of(node: SchemaNode, step: str | int) -> Any:
    """What is said of a member or an item, if something is."""
    if isinstance(step, int):
        return None if "prefixItems" in node else node.get("items")
    if step in node.get("properties", ()):
        return node["properties"][step]
    if "patternProperties" in node:
        return None
    more = node.get("additionalProperties")
    return cast("SchemaNode", more) if isinstance(more, dict) else None
