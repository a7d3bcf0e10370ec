"""Contracts: the artifact that a step owes, as a schema and an example of it.

A contract is built in (`packs`) or a workflow's own (`local_contract`). An author's contract is
accepted only if its schema is affordable (`schemas`) and takes its example, both as it is written
and with its blanks filled in. The compiled example has a blank for everything that the agent
decides (`blanks`); so an agent that follows it meets the contract, and one that copies it does not.

`check` compares the contract with the artifacts of its kind. One that passes is enough; if none
does, the breaches are those of the first, each with a suggestion. `instructions` shows the example,
whose blanks say what is allowed.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.workflow import packs, schemas
from interlock.core.workflow.blanks import blanks_in, find_unreplaced, is_blank, with_blanks
from interlock.core.workflow.conditions import Flaw
from interlock.core.workflow.operators import clip, quote
from interlock.core.workflow.schemas import CostTally, SchemaError, SchemaNode

NAME_LENGTH_MAX = 64
EXAMPLE_BYTES_MAX = 2_000
BREACHES_MAX = 20
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_FIELD_LENGTH_MAX = 300
_BLANK_LEFT_PREFIX = "it still says"
_ARTIFACTS_POINTER = "/output/artifacts"


class Contract(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """As it stands in a compiled workflow. `name` is the artifact's kind."""

    name: str
    schema: str
    """Canonical JSON as text, like `example`: foreign data, which only its own encoder writes."""
    example: str
    is_required: bool = True
    is_kept: bool = False
    """Whether the artifact is shown whole after every break."""
    rules: tuple[packs.ContractRule, ...] = ()
    """The forbidden combinations of its parts."""


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
    contract = _encode_contract(name, pack.schema, pack.example)
    return msgspec.structs.replace(contract, rules=pack.rules)


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
    if tally.flaws:
        return tuple(tally.flaws)
    example_with_blanks = with_blanks(full_schema, own_example)
    assert isinstance(example_with_blanks, dict), "an artifact is an object"
    return _encode_contract(name, full_schema, example_with_blanks)


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
    blanks = blanks_in([msgspec.json.decode(contract.example), _optional_fields(contract)])
    is_valid = schemas.validator(schema)
    index, artifact = next(
        (
            candidate
            for candidate in candidates
            if is_valid(candidate[1])
            and not any(find_unreplaced(candidate[1], blanks))
            and not any(_contradictions(contract, *candidate))
        ),
        candidates[0],
    )
    blanks_left = [
        SchemaError(at, f"{_BLANK_LEFT_PREFIX} {clip(text, 80)}")
        for at, text in islice(find_unreplaced(artifact, blanks), BREACHES_MAX)
    ]
    unfilled = {error.pointer for error in blanks_left}
    wrong = [error for error in schemas.errors(schema, artifact) if error.pointer not in unfilled]
    breaches = tuple(
        _breach(contract, schema, index, error) for error in (*blanks_left, *wrong)[:BREACHES_MAX]
    )
    if not breaches:
        breaches = tuple(_contradictions(contract, index, artifact))
    return breaches, tuple(
        f"`{_ARTIFACTS_POINTER}/{index}{pointer}` is not a field of `{contract.name}`: it is kept"
        " and not read"
        for pointer in schemas.undeclared_members(schema, artifact)
    )


def _contradictions(contract: Contract, index: int, artifact: Json) -> Iterator[Breach]:
    """Yield the rules of the contract that the artifact breaks, although its form is right."""
    for rule in contract.rules:
        if schemas.validator(msgspec.json.decode(rule.contradiction))(artifact):
            yield Breach(
                is_missing=False,
                index=index,
                pointer=f"{_ARTIFACTS_POINTER}/{index}",
                message=f"The artifact of kind `{contract.name}` contradicts itself",
                suggestion=rule.rule,
            )


def instructions(contract: Contract) -> str:
    """Return the request for the artifact: its form, with blanks that say what is allowed."""
    demand = "Submit" if contract.is_required else "If it applies, submit"
    text = f"{demand} this artifact, with your own values in place of each <…>: {contract.example}"
    text = "\n".join((text, *(rule.rule for rule in contract.rules)))
    more = _optional_fields(contract)
    return f"{text}\nIt may also have: {canonical.encode(more).decode()}" if more else text


def _optional_fields(contract: Contract) -> dict[str, Json]:
    """Return the fields that the example omits, with blanks: a bare name hides their form."""
    schema: SchemaNode = msgspec.json.decode(contract.schema)
    shown = msgspec.json.decode(contract.example)
    optional = {
        name: node for name, node in schema.get("properties", {}).items() if name not in shown
    }
    fields = with_blanks({**schema, "properties": optional, "required": list(optional)})
    return cast("dict[str, Json]", fields)


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
        suggestion="Add it to `output.artifacts`, in the form that this answer shows.",
    )


def _breach(contract: Contract, schema: SchemaNode, index: int, error: SchemaError) -> Breach:
    subject = f"`{error.pointer}` of the" if error.pointer else "The"
    node = schemas.subschema_at(schema, error.pointer) if error.pointer else None
    remedy = "Change it so that it has the form of the example."
    if error.message.startswith(_BLANK_LEFT_PREFIX):
        remedy = "Put your own value there."
    elif node is not None:
        remedy = f"Send there: {clip(_describe_value(node, schema), _FIELD_LENGTH_MAX)}."
    return Breach(
        is_missing=False,
        index=index,
        pointer=f"{_ARTIFACTS_POINTER}/{index}{error.pointer}",
        message=f"{subject} artifact of kind `{contract.name}`: {error.message}",
        suggestion=remedy,
    )


def _with_blanks_filled(value: Json) -> Json:
    """Return the value as an agent with little to say would send it: no blanks, equally long."""
    if isinstance(value, str):
        return f"a{value[1:-1]}a" if is_blank(value) else value
    if isinstance(value, list):
        return [_with_blanks_filled(item) for item in value]
    if isinstance(value, dict):
        return {
            cast("str", _with_blanks_filled(key)): _with_blanks_filled(item)
            for key, item in value.items()
        }
    return value


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
