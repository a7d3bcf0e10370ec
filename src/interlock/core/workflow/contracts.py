"""Contracts: the artifact that a step owes, as a schema and an example of it.

A contract is built in (`packs`) or a workflow's own. What stands in <…> in an example is for the
agent to write: handed in as it is, it is a breach.
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
    """One thing that keeps a contract from being met. `pointer` is its place in the call."""

    is_missing: bool
    """There is no artifact of the kind."""
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
    """A workflow's own contract, which stands at `pointer`, or everything that is wrong with it."""
    weighing = CostTally()
    if len(name) > NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        what = "a letter, then letters, digits, `_` and `-`, all lower case"
        weighing.refuse(pointer, f"`{clip(name, 80)}` is not the name of a contract: {what}")
    elif name in packs.names():
        weighing.refuse(pointer, f"`{name}` is built in; choose another name")
    body = _read_object(schema, f"{pointer}/schema", schemas.BYTES_MAX, weighing)
    shown = _read_object(example, f"{pointer}/example", EXAMPLE_BYTES_MAX, weighing)
    if body is not None:
        schemas.weigh(body, f"{pointer}/schema", weighing)
        weighing.refuse_excess(f"{pointer}/schema")
    if shown is not None and shown.setdefault("kind", name) != name:
        weighing.refuse(f"{pointer}/example/kind", f"must be {quote(name)}, or left out")
    if body is None or shown is None or weighing.flaws:
        return tuple(dict.fromkeys(weighing.flaws))
    whole = _with_kind(body, name)
    if wrong := schemas.errors(whole, shown):
        what = "does not satisfy the schema"
    else:
        wrong = schemas.errors(whole, _with_blanks_filled(shown))
        what = "is all that the schema takes, and what stands in <…> is to be replaced"
    for error in wrong:
        weighing.refuse(f"{pointer}/example{error.pointer}", f"{what}: {error.message}")
    return tuple(weighing.flaws) or _encode_contract(name, whole, shown)


def check(
    contract: Contract, artifacts: Sequence[Json]
) -> tuple[tuple[Breach, ...], tuple[str, ...]]:
    """What keeps the contract from being met, and warnings about fields that nobody reads.

    Of several artifacts of the kind, one that passes is enough. `artifacts` have canonical forms.
    """
    owed = [
        (index, one) for index, one in enumerate(artifacts) if _artifact_kind(one) == contract.name
    ]
    if not owed:
        return ((_missing_artifact(contract, artifacts),) if contract.is_required else ()), ()
    schema: SchemaNode = msgspec.json.decode(contract.schema)
    blanks = _blanks(msgspec.json.decode(contract.example))
    is_valid = schemas.validator(schema)
    index, artifact = next(
        (
            found
            for found in owed
            if is_valid(found[1]) and not _unreplaced_blanks(found[1], blanks)
        ),
        owed[0],
    )
    wrong = (*schemas.errors(schema, artifact), *_unreplaced_blanks(artifact, blanks))[
        :BREACHES_MAX
    ]
    breaches = tuple(_breach(contract, schema, index, error) for error in wrong)
    if breaches:
        whole = (
            f"{breaches[0].suggestion} A whole one{_own_words_hint(contract)}: {contract.example}"
        )
        breaches = (msgspec.structs.replace(breaches[0], suggestion=whole), *breaches[1:])
    return breaches, tuple(
        f"`{_ARTIFACTS_POINTER}/{index}{place}` is not a field of `{contract.name}`: it is kept"
        " and not read"
        for place in schemas.undeclared_members(schema, artifact)
    )


def instructions(contract: Contract) -> str:
    """What to hand in, for the one who has to: each field, and the example."""
    schema: SchemaNode = msgspec.json.decode(contract.schema)
    schema["properties"]["kind"] = {"const": contract.name}  # and not also with `wr.` before it
    who = "Hand in" if contract.is_required else "You may hand in"
    head = f"{who} an artifact of kind `{contract.name}` in output.artifacts. Its fields:"
    tail = f"For example{_own_words_hint(contract)}: {contract.example}"
    lines = list(_field_lines(schemas.resolve(schema, schema), schema))
    room = INSTRUCTIONS_BYTES_MAX - len(f"{head}\n{tail}".encode()) - _MORE_LINE_BYTES_MAX
    for count, line in enumerate(lines):
        room -= len(f"\n{line}".encode())
        if room < 0:
            more = f"- and {len(lines) - count} more; you will be told what is wrong with them"
            lines[count:] = [more]
            break
    return "\n".join((head, *lines, tail))


def _encode_contract(name: str, schema: SchemaNode, example: dict[str, Json]) -> Contract:
    return Contract(name, canonical.encode(schema).decode(), canonical.encode(example).decode())


def _read_object(value: Json, at: str, bytes_max: int, tally: CostTally) -> dict[str, Any] | None:
    read = schemas.canonical_value(value, at, bytes_max=bytes_max)
    if isinstance(read, Flaw):
        return tally.refuse(read.pointer, read.message)
    if not isinstance(read[0], dict):
        return tally.refuse(at, "wants an object")
    return read[0]


def _with_kind(schema: SchemaNode, name: str) -> SchemaNode:
    """The author's schema, and that the artifact says what it is."""
    properties = {"kind": {"const": name}, **schema.get("properties", {})}
    required = [*schema.get("required", ()), "kind"]
    return {**schema, "properties": properties, "required": list(dict.fromkeys(required))}


def _artifact_kind(artifact: Json) -> str | None:
    kind = artifact.get("kind") if isinstance(artifact, dict) else None
    return packs.kind_without_prefix(kind) if isinstance(kind, str) else None


def _missing_artifact(contract: Contract, artifacts: Sequence[Json]) -> Breach:
    kinds = [one.get("kind") if isinstance(one, dict) else None for one in artifacts]
    named = [kind for kind in kinds if isinstance(kind, str)]
    sent = [f"`{clip(kind, 80)}`" for kind in dict.fromkeys(named)]
    if len(named) < len(kinds):
        sent.append(f"{len(kinds) - len(named)} without a kind")
    return Breach(
        is_missing=True,
        index=None,
        pointer=_ARTIFACTS_POINTER,
        message=f"An artifact of kind `{contract.name}` is needed;"
        f" sent: {_comma_separated(sent) or 'none'}",
        suggestion=f"Add this to output.artifacts{_own_words_hint(contract)}: {contract.example}",
    )


def _breach(contract: Contract, schema: SchemaNode, index: int, error: SchemaError) -> Breach:
    where = f"`{error.pointer}` of the" if error.pointer else "The"
    node = schemas.subschema_at(schema, error.pointer) if error.pointer else None
    todo = "Change it so that it is like the example."
    if error.message.startswith(_BLANK_LEFT_PREFIX):
        todo = "Put your own words there."
    elif node is not None:
        todo = f"Send there: {clip(_describe_value(node, schema), _FIELD_LENGTH_MAX)}."
    return Breach(
        is_missing=False,
        index=index,
        pointer=f"{_ARTIFACTS_POINTER}/{index}{error.pointer}",
        message=f"{where} artifact of kind `{contract.name}`: {error.message}",
        suggestion=todo,
    )


def _own_words_hint(contract: Contract) -> str:
    has_blanks = _blanks(msgspec.json.decode(contract.example))
    return ", with your own words in place of each <…>" if has_blanks else ""


def _is_blank(text: str) -> bool:
    return len(text) > len("<>") and text[0] == "<" and text[-1] == ">"


def _blanks(example: Json) -> frozenset[str]:
    """What the agent is to replace."""
    return frozenset(text for _, text in _texts(example) if _is_blank(text))


def _unreplaced_blanks(artifact: Json, blanks: frozenset[str]) -> tuple[SchemaError, ...]:
    """Where it was not replaced."""
    found = (
        SchemaError(at, f"{_BLANK_LEFT_PREFIX} {clip(text, 80)}")
        for at, text in _texts(artifact)
        if text.strip() in blanks
    )
    return tuple(islice(found, BREACHES_MAX))


def _texts(root: Json) -> Iterator[tuple[str, str]]:
    """All texts in a value, keys too, and where they stand."""
    waiting: deque[tuple[str, Json]] = deque([("", root)])
    while waiting:
        at, value = waiting.popleft()
        if isinstance(value, str):
            yield at, value
        elif isinstance(value, dict):
            yield from ((f"{at}/{escape_pointer_part(key)}", key) for key in value)
            waiting += ((f"{at}/{escape_pointer_part(key)}", item) for key, item in value.items())
        elif isinstance(value, list):
            waiting += ((f"{at}/{index}", item) for index, item in enumerate(value))


def _with_blanks_filled(value: Json) -> Json:
    """As an agent with little to say would send it: not blank, and just as long."""
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
    # The kind comes first, then what is required, then the rest.
    for name in sorted(properties, key=lambda name: (name != "kind", name not in required)):
        part = schemas.resolve(properties[name], schema)
        must = "required" if name in required else "optional"
        said = clip(_describe_value(part, schema), _FIELD_LENGTH_MAX)
        about = f" ({clip(part['description'], 200)})" if part and "description" in part else ""
        yield f"{'  ' * depth}- `{clip(name, 80)}` ({must}): {said}{about}"
        items = part.get("items") if part else None
        yield from _field_lines(schemas.resolve(items, schema) or part, schema, depth + 1)


def _describe_value(node: SchemaNode | None, schema: SchemaNode) -> str:
    """What may stand there, as a noun."""
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
            several = [{**node, "type": kind} for kind in kinds if kind != "null"]
            return " or ".join(_describe_value(one, schema) for one in several) or "null"
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


def _describe_range(node: SchemaNode, what: str, unit: str) -> str:
    match node.get(f"min{what}"), node.get(f"max{what}"):
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
