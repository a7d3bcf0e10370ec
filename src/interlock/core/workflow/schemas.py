"""Foreign JSON Schemas (2020-12): their cost, the errors of a value, and the members they declare.

Patterns and schemas are programs of strangers: their cost is checked before they are accepted,
patterns are searched for in linear time, and nothing is ever fetched.

`weigh` walks a schema, and again each definition for each `$ref` to it, and counts the work in a
`CostTally`, which several schemas and patterns may share; it also refuses keywords that cost too
much or refer elsewhere. A foreign schema goes to the engine only after it was weighed. The engine
says cheaply whether a value is valid, but it collects errors with copies of the values, so `errors`
estimates that cost first and says less where it is too high. `resolve`, `subschema_at` and
`undeclared_members` read a schema without the engine; where it is not plain (alternatives,
patterns, references that conflict), they say nothing rather than something wrong.
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
"""For all patterns and schemas together: an instruction of a compiled pattern counts as one, and so
does a value in a schema, again for each `$ref` to it. At worst, one takes 0.5 ms for 64 KB of
output."""
FLAWS_MAX = 20
ERRORS_MAX = 20
_EXPLAINED_WORK_MAX = 50_000  # work of a schema times values: at worst as many errors, 10 µs each
_COPIED_MAX = 1_000_000  # values copied into errors: 0.1 µs and 100 bytes each
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
    """One thing that is wrong with a value, and its JSON pointer (for a missing field, its own)."""

    pointer: str
    message: str


class CostTally(msgspec.Struct):
    """The cost of patterns and schemas together so far, and their flaws."""

    flaws: list[Flaw] = []
    work: int = 0

    def refuse(self, at: str, message: str) -> None:
        if len(self.flaws) < FLAWS_MAX:
            self.flaws.append(Flaw(at, message))

    def refuse_excess(self, at: str) -> bool:
        """Whether the whole costs too much; if so, refuse the part at `at`, which was the last."""
        if self.work > WORK_MAX:
            message = f"patterns and schemas may cost {WORK_MAX} in all; with this, they cost more"
            self.refuse(at, f"{message} (a schema that refers to itself has no end)")
        return self.work > WORK_MAX


def canonical_value(value: Json, at: str, *, bytes_max: int) -> tuple[Json] | Flaw:
    """Return the value as its canonical form is decoded, in a tuple: a value may be anything."""
    try:
        content = canonical.encode(value)
        if len(content) > bytes_max:
            return Flaw(at, f"more than {bytes_max} bytes")
        decoded = msgspec.json.decode(content)
        canonical.encode(decoded)  # 1e20 became an integer, which is refused when it is read again
    except NotCanonical as error:
        return Flaw(at + error.pointer, error.reason)
    return (decoded,)


def weigh(schema: SchemaNode, base: str, tally: CostTally) -> None:
    """Add the cost of the schema to the tally, and everything that is wrong with it."""
    if len(msgspec.json.encode(schema)) > BYTES_MAX:
        return tally.refuse(base, f"more than {BYTES_MAX} bytes")
    flaw_count, defs = len(tally.flaws), schema.get("$defs")
    pending: list[tuple[str, Json]] = [(base, schema)]
    while pending:
        for at, outer_key, key, item in _walk_values(*pending.pop()):
            tally.work += 1
            if tally.work > WORK_MAX:
                return None  # a recursive schema ends here, too
            if outer_key == "patternProperties":
                weigh_pattern(key, at, tally)
            if key in ("unevaluatedItems", "unevaluatedProperties"):
                tally.refuse(at, f"`{key}` is not taken: it costs twice as much at each level")
            elif not isinstance(item, str):
                continue
            elif key == "pattern":
                weigh_pattern(item, at, tally)
            elif key == "$ref":
                name = item.removeprefix("#/$defs/")
                is_local = name != item and not {*name} & {*"/~%"}  # these would be unescaped
                if is_local and isinstance(defs, dict) and name in defs:
                    pending.append((f"{base}/$defs/{name}", cast("dict[str, Json]", defs)[name]))
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
    except ValueError as error:
        tally.refuse(at, f"cannot be searched for in linear time: {error}")


def validator(schema: SchemaNode) -> Callable[[Json], bool]:
    """Return the test whether a value satisfies a schema, which was weighed before."""
    return _build_validator(schema).is_valid


def first_error(schema: SchemaNode, value: Json) -> SchemaError | None:
    """Return an error of a value that does not satisfy the schema, if it is not costly to find."""
    if _has_alternatives(schema) and _is_costly(schema, value):
        return None
    return _first_error(schema, value)


def errors(schema: SchemaNode, value: Json) -> tuple[SchemaError, ...]:
    """Return the errors of the value: at most `ERRORS_MAX`, and one where more would be costly."""
    engine_validator = _build_validator(schema)
    if engine_validator.is_valid(value):
        return ()
    if not _is_costly(schema, value):
        return tuple(
            _readable_error(error)
            for error in islice(engine_validator.iter_errors(value), ERRORS_MAX)
        )
    if not _has_alternatives(schema):
        try:
            engine_validator.validate(value)
        except ValueError as error:
            return (_readable_error(error),)
    return (SchemaError("", "it does not satisfy the schema"),)


def subschema_at(schema: SchemaNode, pointer: str) -> SchemaNode | None:
    """Return the part of the schema for the value at `pointer`, where that is plain."""
    node = resolve(schema, schema)
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        subschema = None if node is None else _subschema_of(node, key)
        if subschema is None and node is not None and len(key) < _INDEX_MAX and key.isdecimal():
            subschema = _subschema_of(node, int(key))
        node = resolve(subschema, schema)
    return node


def resolve(node: Any, schema: SchemaNode) -> SchemaNode | None:
    """Return a part of `schema`, merged with the definitions it refers to, where that is plain."""
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
    """Return the pointers of members that the schema does not declare; in doubt, none."""
    undeclared: list[str] = []
    pending: list[tuple[str, SchemaNode | None, Json]] = [("", resolve(schema, schema), value)]
    visits = 0
    while pending and len(undeclared) < ERRORS_MAX and visits < _VISITED_MAX:
        at, node, container = pending.pop()
        if node is None or not isinstance(container, dict | list):
            continue
        is_closed = "properties" in node and not _AMBIGUOUS_KEYWORDS & node.keys()
        patterns = [compile_pattern(pattern) for pattern in node.get("patternProperties", ())]
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, item in islice(items, _VISITED_MAX // (1 + len(patterns))):
            visits += 1 + len(patterns)
            subschema, pointer = _subschema_of(node, key), f"{at}/{escape_pointer_part(str(key))}"
            matches_pattern = any(pattern.search(str(key).encode()) for pattern in patterns)
            if subschema is not None:
                pending.append((pointer, resolve(subschema, schema), item))
            elif isinstance(key, str) and is_closed and not matches_pattern:
                undeclared.append(pointer)
    return tuple(sorted(undeclared[:ERRORS_MAX]))


def _build_validator(schema: SchemaNode) -> Any:
    """Return a validator that takes linear time for patterns, and never fetches anything."""
    import jsonschema_rs as engine  # noqa: PLC0415

    linear = engine.RegexOptions()
    return engine.Draft202012Validator(schema, pattern_options=linear, offline=True, mask="it")


def _walk_values(at: str, value: Json, outer_key: str = "") -> Iterator[tuple[str, str, str, Json]]:
    """Yield everything in a value, at any depth: pointer, key of its container, key, and value."""
    items = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else items:
        pointer = f"{at}/{escape_pointer_part(str(key))}"
        yield pointer, outer_key, str(key), item
        yield from _walk_values(pointer, item, str(key))


def _first_error(schema: SchemaNode, *values: Json) -> SchemaError | None:
    """Return the first error of the schema itself, or else of a value under it."""
    try:
        engine_validator = _build_validator(schema)
        for value in values:
            engine_validator.validate(value)
    except ValueError as error:
        pointer = _pointer(getattr(error, "instance_path", ()))
        return SchemaError(pointer, _with_found_value(error, getattr(error, "message", str(error))))
    return None


def _readable_error(error: Any) -> SchemaError:
    """Return an error of the engine, in words that say what is allowed and where to change it."""
    pointer = _pointer(error.instance_path)
    match error.kind.name:
        case "required":
            return SchemaError(
                f"{pointer}/{escape_pointer_part(error.kind.property)}", "it is missing"
            )
        case "enum":
            allowed = ", ".join(quote(option) for option in error.kind.options)
            return SchemaError(
                pointer, _with_found_value(error, f"it is not one of {allowed}", 600)
            )
        case _:
            return SchemaError(pointer, _with_found_value(error, error.message))


def _with_found_value(error: Any, message: str, length: int = 200) -> str:
    return f"{clip(message, length)} (found {quote(getattr(error, 'instance', None), 80)})"


def _pointer(steps: Sequence[str | int]) -> str:
    return "".join(f"/{escape_pointer_part(str(step))}" for step in steps)


def _has_alternatives(schema: SchemaNode) -> bool:
    """Whether there are alternatives: the engine collects all errors in them before the first."""
    text = msgspec.json.encode(schema)
    return b'"anyOf":' in text or b'"oneOf":' in text


def _is_costly(schema: SchemaNode, value: Json) -> bool:
    """Whether the errors, all of which the engine collects before it returns one, cost too much."""
    weigh(schema, "", tally := CostTally())
    count, copied = _extent(value)
    if b'"propertyNames":' in msgspec.json.encode(schema):
        copied *= count  # for each name that is wrong, the engine copies the whole object
    return tally.work * count > _EXPLAINED_WORK_MAX or tally.work * copied > _COPIED_MAX


def _extent(root: Json) -> tuple[int, int]:
    """Return the number of values, and the size of a copy of each of them, in units of 32 bytes."""
    count, copied = 0, 0
    pending: list[tuple[int, Json]] = [(1, root)]
    while pending:
        level, value = pending.pop()
        count += 1
        # A value is copied with each of the values that contain it.
        copied += level * (1 + (len(value) // 32 if isinstance(value, str) else 0))
        if isinstance(value, dict):
            copied += level * sum(1 + len(key) // 32 for key in value)
            pending += ((level + 1, item) for item in value.values())
        elif isinstance(value, list):
            pending += ((level + 1, item) for item in value)
    return count, copied


def _merged_node(node: SchemaNode, target: Any) -> Any:
    """Return both demands as one, where that is plain."""
    if not isinstance(target, dict):
        return None
    target = cast("SchemaNode", target)
    conflicts = (
        (node.keys() & target.keys()) - ANNOTATION_KEYWORDS - {"properties", "required", "type"}
    )
    if conflicts or ("type" in node and node["type"] != target.get("type", node["type"])):
        return None
    merged = {**target, **node}
    if "properties" in node and "properties" in target:
        merged["properties"] = {**target["properties"], **node["properties"]}
    if "required" in node and "required" in target:
        merged["required"] = [*target["required"], *node["required"]]
    return merged


def _subschema_of(node: SchemaNode, step: str | int) -> Any:
    """Return the part of the schema for a member or an item, if there is one."""
    if isinstance(step, int):
        return None if "prefixItems" in node else node.get("items")
    if step in node.get("properties", ()):
        return node["properties"][step]
    if "patternProperties" in node:
        return None
    more = node.get("additionalProperties")
    return cast("SchemaNode", more) if isinstance(more, dict) else None
