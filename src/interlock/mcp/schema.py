"""The JSON Schemas of the tools, made from the types that check the calls.

They are kept small, because agents pay for every byte of them.
"""

from typing import Any, cast

import msgspec

from interlock.core.canonical import Json

Schema = dict[str, Any]
_UNLISTED = ("requestId",)
"""Accepted by every tool that writes: scripts need it, a model that repeats a call does not."""


def arguments_schema(arguments: type[msgspec.Struct]) -> Schema:
    """The schema of a tool's arguments, without the `null` that optional ones accept too."""
    return cast("Schema", _without_null(plain_schema(arguments)))


def example_arguments(arguments: Schema) -> dict[str, Json]:
    """The required arguments, each with the example of its description."""
    required = arguments.get("required", ())
    return {name: arguments["properties"][name]["examples"][0] for name in required}


def listed_schema(arguments: Schema) -> Schema:
    """The schema as a model is shown it: without examples, which corrections of a call show."""
    properties: dict[str, Schema] = arguments["properties"]
    shown = {
        name: {key: value for key, value in found.items() if key != "examples"}
        for name, found in properties.items()
        if name not in _UNLISTED
    }
    return {**arguments, "properties": shown}


def plain_schema(root: type[msgspec.Struct]) -> object:
    """The schema of a struct without references, titles and defaults."""
    (schema,), definitions = msgspec.json.schema_components((root,), ref_template="#/$defs/{name}")
    return _inline_references(schema, definitions)


def _inline_references(part: object, definitions: dict[str, Any]) -> object:
    """`part` with every reference replaced by its definition, and without titles and defaults."""
    if isinstance(part, list | tuple):
        return [_inline_references(item, definitions) for item in cast("list[object]", part)]
    if not isinstance(part, dict):
        return part
    node = cast("Schema", part)
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        description = {"description": node["description"]} if "description" in node else {}
        return {**cast("Schema", _inline_references(target, definitions)), **description}
    members = {name: value for name, value in node.items() if name not in ("default", "title")}
    if "properties" in members:
        # A property may well be called `title`.
        properties = cast("Schema", members.pop("properties"))
        members["properties"] = {
            n: _inline_references(value, definitions) for n, value in properties.items()
        }
    if members.get("type") == "array":
        # Clients pass schemas on, and OpenAI rejects all tools for one array without `items`.
        members.setdefault("items", {})
    return {
        name: value if name == "properties" else _inline_references(value, definitions)
        for name, value in members.items()
        if value != [] or name != "required"
    }


def _without_null(part: object) -> object:
    if isinstance(part, list):
        return [_without_null(item) for item in cast("list[object]", part)]
    if not isinstance(part, dict):
        return part
    node: Schema = {n: _without_null(value) for n, value in cast("Schema", part).items()}
    choices = [choice for choice in node.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del node["anyOf"]
        return {**choices[0], **node}
    return node
