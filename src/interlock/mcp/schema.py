"""JSON Schemas of the tools, from the types that check the calls. Small: agents pay for them."""

from typing import Any, cast

import msgspec

from interlock.core.canonical import Json

Schema = dict[str, Any]


def arguments_schema(arguments: type[msgspec.Struct]) -> Schema:
    """Optional means that it may be left out; that null is taken too need not be said."""
    return cast("Schema", _without_null(_plain_schema(arguments)))


def answer_schema(answer: type[msgspec.Struct]) -> Schema:
    return cast("Schema", _plain_schema(answer))


def example_arguments(arguments: Schema) -> dict[str, Json]:
    """The required arguments, each with the example of its description."""
    required = arguments.get("required", ())
    return {name: arguments["properties"][name]["examples"][0] for name in required}


def _plain_schema(root: type[msgspec.Struct]) -> object:
    (schema,), definitions = msgspec.json.schema_components((root,), ref_template="#/$defs/{name}")
    return _inline_references(schema, definitions)


def _inline_references(part: object, definitions: dict[str, Any]) -> object:
    """`part` with every reference replaced by what it names, and without titles and defaults."""
    if isinstance(part, list | tuple):
        return [_inline_references(item, definitions) for item in cast("list[object]", part)]
    if not isinstance(part, dict):
        return part
    found = cast("Schema", part)
    if "$ref" in found:
        target = definitions[found["$ref"].rpartition("/")[2]]
        described = {"description": found["description"]} if "description" in found else {}
        return {**cast("Schema", _inline_references(target, definitions)), **described}
    kept = {name: value for name, value in found.items() if name not in ("default", "title")}
    if "properties" in kept:
        # A property may well be called `title`.
        properties = cast("Schema", kept.pop("properties"))
        kept["properties"] = {
            n: _inline_references(value, definitions) for n, value in properties.items()
        }
    return {
        name: value if name == "properties" else _inline_references(value, definitions)
        for name, value in kept.items()
        if value != [] or name != "required"
    }


def _without_null(part: object) -> object:
    if isinstance(part, list):
        return [_without_null(item) for item in cast("list[object]", part)]
    if not isinstance(part, dict):
        return part
    found: Schema = {n: _without_null(value) for n, value in cast("Schema", part).items()}
    choices = [choice for choice in found.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del found["anyOf"]
        return {**choices[0], **found}
    return found
