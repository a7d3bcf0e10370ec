"""Contracts: the artifact that a step owes, as a schema and an example of it.

A contract is built in (`packs`) or a workflow's own (`local_contract`). A text in <…> in an example
is a blank, which the agent replaces: handed in as it is, it is a breach. An author's contract is
accepted only if its schema is affordable (`schemas`) and takes its example, both as it is written
and with the blanks filled in; so an agent that follows the example meets the contract.

`check` holds the contract against the artifacts of its kind. One that passes is enough; if none
does, the breaches are those of the first, each with a suggestion, and the first suggestion shows
the whole example. `instructions` describes the schema field by field, within a limit of bytes.
"""

import functools
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import Json, escape_pointer_part
from interlock.core.workflow import packs, schemas
from interlock.core.workflow.conditions import Flaw
from interlock.core.workflow.operators import clip, quote
from interlock.core.workflow.schemas import CostTally, SchemaError, SchemaNode

NAME_LENGTH_MAX = 64
EXAMPLE_BYTES_MAX = 2_000
INSTRUCTIONS_BYTES_MAX = 4_096
BREACHES_MAX = 20
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_FIELD_LENGTH_MAX = 300
_NESTING_MAX = 4
_MORE_LINE_BYTES_MAX = 80
_BLANK_LEFT_PREFIX = "it still says"
_ARTIFACTS_POINTER = "/output/artifacts"


class Contract(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """As it stands in a compiled workflow. `name` is the artifact's kind."""

    name: str
    schema: str
    """Canonical JSON as text, like `example`: foreign data, which only its own encoder writes."""
    example: str
    is_required: bool = True


class Breach(msgspec.Struct, frozen=True):
    """One reason why a contract is not met. `pointer` is its place in the call."""

    is_missing: bool
    """Whether there is no artifact of the kind."""
    index: int | None
    pointer: str
    message: str
    suggestion: str


def built_in_contract(name: str) -> Contract | None:
    return _contract_of_pack(name) if name in packs.names() else None


@functools.cache
def _contract_of_pack(name: str) -> Contract:
    pack = packs.pack(name)
    assert pack is not None, f"{name} is the name of a pack"
    return _encode_contract(name, pack.schema, pack.example)


def local_contract(
    name: str, schema: Json, example: Json, pointer: str
) -> Contract | tuple[Flaw, ...]:
    """Return a workflow's own contract, which is at `pointer`, or everything wrong with it."""
    tally = CostTally()
    if len(name) > NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        allowed = "a letter, then letters, digits, `_` and `-`, all lower case"
        tally.refuse(pointer, f"`{clip(name, 80)}` is not the name of a contract: {allowed}")
    elif name in packs.names():
        tally.refuse(pointer, f"`{name}` is built in; choose another name")
    own_schema = _read_object(schema, f"{pointer}/schema", schemas.BYTES_MAX, tally)
    own_example = _read_object(example, f"{pointer}/example", EXAMPLE_BYTES_MAX, tally)
    if own_schema is not None:
        schemas.weigh(own_schema, f"{pointer}/schema", tally)
        tally.refuse_excess(f"{pointer}/schema")
    if own_example is not None and own_example.setdefault("kind", name) != name:
        tally.refuse(f"{pointer}/example/kind", f"must be {quote(name)}, or left out")
    if own_schema is None or own_example is None or tally.flaws:
        return tuple(dict.fromkeys(tally.flaws))
    full_schema = _with_kind(own_schema, name)
    if mismatches := schemas.errors(full_schema, own_example):
        message = "does not satisfy the schema"
    else:
        mismatches = schemas.errors(full_schema, _with_blanks_filled(own_example))
        message = "is all that the schema takes, and what stands in <…> is to be replaced"
    for error in mismatches:
        tally.refuse(f"{pointer}/example{error.pointer}", f"{message}: {error.message}")
    return tuple(tally.flaws) or _encode_contract(name, full_schema, own_example)


def check(
    contract: Contract, artifacts: Sequence[Json]
) -> tuple[tuple[Breach, ...], tuple[str, ...]]:
    """Return the breaches of the contract, and warnings about fields that nobody reads.

    Of several artifacts of the kind, one that passes is enough. `artifacts` have canonical forms.
    """
    candidates = [
        (index, artifact)
        for index, artifact in enumerate(artifacts)
        if _artifact_kind(artifact) == contract.name
    ]
    if not candidates:
        return ((_missing_artifact(contract, artifacts),) if contract.is_required else ()), ()
    schema: SchemaNode = msgspec.json.decode(contract.schema)
    blanks = _blanks(msgspec.json.decode(contract.example))
    is_valid = schemas.validator(schema)
    index, artifact = next(
        (
            candidate
            for candidate in candidates
            if is_valid(candidate[1]) and not _unreplaced_blanks(candidate[1], blanks)
        ),
        candidates[0],
    )
    schema_errors = (*schemas.errors(schema, artifact), *_unreplaced_blanks(artifact, blanks))[
        :BREACHES_MAX
    ]
    breaches = tuple(_breach(contract, schema, index, error) for error in schema_errors)
    if breaches:
        suggestion = (
            f"{breaches[0].suggestion} A whole one{_own_words_hint(contract)}: {contract.example}"
        )
        breaches = (msgspec.structs.replace(breaches[0], suggestion=suggestion), *breaches[1:])
    return breaches, tuple(
        f"`{_ARTIFACTS_POINTER}/{index}{pointer}` is not a field of `{contract.name}`: it is kept"
        " and not read"
        for pointer in schemas.undeclared_members(schema, artifact)
    )


def instructions(contract: Contract) -> str:
    """Return the description of the artifact to hand in: each field, and the example."""
    schema: SchemaNode = msgspec.json.decode(contract.schema)
    schema["properties"]["kind"] = {"const": contract.name}  # without the alternative `wr.`
    demand = "Hand in" if contract.is_required else "You may hand in"
    head = f"{demand} an artifact of kind `{contract.name}` in output.artifacts. Its fields:"
    tail = f"For example{_own_words_hint(contract)}: {contract.example}"
    lines = list(_field_lines(schemas.resolve(schema, schema), schema))
    bytes_left = INSTRUCTIONS_BYTES_MAX - len(f"{head}\n{tail}".encode()) - _MORE_LINE_BYTES_MAX
    for count, line in enumerate(lines):
        bytes_left -= len(f"\n{line}".encode())
        if bytes_left < 0:
            omission = f"- and {len(lines) - count} more; you will be told what is wrong with them"
            lines[count:] = [omission]
            break
    return "\n".join((head, *lines, tail))


def _encode_contract(name: str, schema: SchemaNode, example: dict[str, Json]) -> Contract:
    return Contract(name, canonical.encode(schema).decode(), canonical.encode(example).decode())


def _read_object(value: Json, at: str, bytes_max: int, tally: CostTally) -> dict[str, Any] | None:
    result = schemas.canonical_value(value, at, bytes_max=bytes_max)
    if isinstance(result, Flaw):
        return tally.refuse(result.pointer, result.message)
    if not isinstance(result[0], dict):
        return tally.refuse(at, "wants an object")
    return result[0]


def _with_kind(schema: SchemaNode, name: str) -> SchemaNode:
    """Return the author's schema, with the artifact's kind as a required field."""
    properties = {"kind": {"const": name}, **schema.get("properties", {})}
    required = [*schema.get("required", ()), "kind"]
    return {**schema, "properties": properties, "required": list(dict.fromkeys(required))}


def _artifact_kind(artifact: Json) -> str | None:
    kind = artifact.get("kind") if isinstance(artifact, dict) else None
    return packs.kind_without_prefix(kind) if isinstance(kind, str) else None


def _missing_artifact(contract: Contract, artifacts: Sequence[Json]) -> Breach:
    kinds = [artifact.get("kind") if isinstance(artifact, dict) else None for artifact in artifacts]
    stated_kinds = [kind for kind in kinds if isinstance(kind, str)]
    sent = [f"`{clip(kind, 80)}`" for kind in dict.fromkeys(stated_kinds)]
    if len(stated_kinds) < len(kinds):
        sent.append(f"{len(kinds) - len(stated_kinds)} without a kind")
    return Breach(
        is_missing=True,
        index=None,
        pointer=_ARTIFACTS_POINTER,
        message=f"An artifact of kind `{contract.name}` is needed;"
        f" sent: {_comma_separated(sent) or 'none'}",
        suggestion=f"Add this to output.artifacts{_own_words_hint(contract)}: {contract.example}",
    )


def _breach(contract: Contract, schema: SchemaNode, index: int, error: SchemaError) -> Breach:
    subject = f"`{error.pointer}` of the" if error.pointer else "The"
    node = schemas.subschema_at(schema, error.pointer) if error.pointer else None
    remedy = "Change it so that it is like the example."
    if error.message.startswith(_BLANK_LEFT_PREFIX):
        remedy = "Put your own words there."
    elif node is not None:
        remedy = f"Send there: {clip(_describe_value(node, schema), _FIELD_LENGTH_MAX)}."
    return Breach(
        is_missing=False,
        index=index,
        pointer=f"{_ARTIFACTS_POINTER}/{index}{error.pointer}",
        message=f"{subject} artifact of kind `{contract.name}`: {error.message}",
        suggestion=remedy,
    )


def _own_words_hint(contract: Contract) -> str:
    has_blanks = _blanks(msgspec.json.decode(contract.example))
    return ", with your own words in place of each <…>" if has_blanks else ""


def _is_blank(text: str) -> bool:
    return len(text) > len("<>") and text[0] == "<" and text[-1] == ">"


def _blanks(example: Json) -> frozenset[str]:
    """Return the texts that the agent is to replace."""
    return frozenset(text for _, text in _texts(example) if _is_blank(text))


def _unreplaced_blanks(artifact: Json, blanks: frozenset[str]) -> tuple[SchemaError, ...]:
    """Return an error for each blank that was not replaced."""
    errors = (
        SchemaError(at, f"{_BLANK_LEFT_PREFIX} {clip(text, 80)}")
        for at, text in _texts(artifact)
        if text.strip() in blanks
    )
    return tuple(islice(errors, BREACHES_MAX))


def _texts(root: Json) -> Iterator[tuple[str, str]]:
    """Yield all texts in a value, keys too, with their pointers."""
    pending: deque[tuple[str, Json]] = deque([("", root)])
    while pending:
        at, value = pending.popleft()
        if isinstance(value, str):
            yield at, value
        elif isinstance(value, dict):
            yield from ((f"{at}/{escape_pointer_part(key)}", key) for key in value)
            pending += ((f"{at}/{escape_pointer_part(key)}", item) for key, item in value.items())
        elif isinstance(value, list):
            pending += ((f"{at}/{index}", item) for index, item in enumerate(value))


def _with_blanks_filled(value: Json) -> Json:
    """Return the value as an agent with little to say would send it: no blanks, equally long."""
    if isinstance(value, str):
        return f"a{value[1:-1]}a" if _is_blank(value) else value
    if isinstance(value, list):
        return [_with_blanks_filled(item) for item in value]
    if isinstance(value, dict):
        return {
            cast("str", _with_blanks_filled(key)): _with_blanks_filled(item)
            for key, item in value.items()
        }
    return value


def _field_lines(node: SchemaNode | None, schema: SchemaNode, depth: int = 0) -> Iterator[str]:
    if node is None or depth > _NESTING_MAX:
        return
    properties, required = node.get("properties", {}), node.get("required", ())
    # The kind comes first, then required fields, then the rest.
    for name in sorted(properties, key=lambda name: (name != "kind", name not in required)):
        field = schemas.resolve(properties[name], schema)
        requirement = "required" if name in required else "optional"
        value_description = clip(_describe_value(field, schema), _FIELD_LENGTH_MAX)
        annotation = (
            f" ({clip(field['description'], 200)})" if field and "description" in field else ""
        )
        yield f"{'  ' * depth}- `{clip(name, 80)}` ({requirement}): {value_description}{annotation}"
        items = field.get("items") if field else None
        yield from _field_lines(schemas.resolve(items, schema) or field, schema, depth + 1)


def _describe_value(node: SchemaNode | None, schema: SchemaNode) -> str:
    """Return a noun phrase for the values that are allowed there."""
    match node:
        case None:
            return "a value that the schema takes"
        case {"const": value} | {"enum": [value] | [value, None]}:
            return quote(value, 100)
        case {"enum": [*options]}:
            quoted = [quote(value) for value in options if value is not None]
            return f"one of {_comma_separated(quoted)}"
        case {"anyOf": [*parts]} | {"oneOf": [*parts]}:
            return " or ".join(
                _describe_value(schemas.resolve(part, schema), schema) for part in parts
            )
        case {"type": [*kinds]}:
            variants = [{**node, "type": kind} for kind in kinds if kind != "null"]
            return " or ".join(_describe_value(variant, schema) for variant in variants) or "null"
        case {"type": "string"}:
            pattern = f", matching /{node['pattern']}/" if "pattern" in node else ""
            form = f", a {node['format']}" if "format" in node else ""
            return f"text{_describe_range(node, 'Length', ' characters')}{pattern}{form}"
        case {"type": "integer" | "number" as kind}:
            return (
                f"{'whole ' if kind == 'integer' else ''}number{_describe_range(node, 'imum', '')}"
            )
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "array"}:
            each = schemas.resolve(node.get("items", True), schema)
            of = f", each {_describe_value(each, schema)}" if each else ""
            return f"list{_describe_range(node, 'Items', ' items')}{of}"
        case {"properties": properties}:
            return f"object with {_comma_separated([f'`{name}`' for name in properties])}"
        case {"type": "object"}:
            more = schemas.resolve(node.get("additionalProperties", True), schema)
            of = f", each value {_describe_value(more, schema)}" if more else ""
            return f"object{_describe_range(node, 'Properties', ' members')}{of}"
        case _:
            demands = {key: node[key] for key in node if key not in schemas.ANNOTATION_KEYWORDS}
            return f"what satisfies {quote(demands, 200)}" if demands else "any value"


def _describe_range(node: SchemaNode, keyword_end: str, unit: str) -> str:
    match node.get(f"min{keyword_end}"), node.get(f"max{keyword_end}"):
        case None, None:
            return ""
        case least, None:
            return ", not empty" if unit and least == 1 else f", at least {least}{unit}"
        case None, most:
            return f", at most {most}{unit}"
        case least, most:
            return f", {least} to {most}{unit}"


def _comma_separated(items: Sequence[str]) -> str:
    return ", ".join(items)
