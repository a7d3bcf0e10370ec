"""Say what OpenAI or Anthropic would reject in the tools of a request that is not strict.

Where each rule comes from:

- OpenAI, API reference of Chat Completions: at most 128 tools; a name has 1 to 64 characters out of
  `a-zA-Z0-9_-`.
- OpenAI, guide to structured outputs, "Supported schemas": the types, the keywords, and the limits
  on properties, nesting and enum values. The smaller limits of its first edition are used here,
  since other endpoints copied them. What the guide demands of `strict` tools (every field required,
  closed objects) does not apply: we send none.
- OpenAI, errors with status 400: "array schema missing items" (sigoden/aichat#1049, and for
  `prefixItems` PrefectHQ/fastmcp#2464), "object schema missing properties"
  (spring-projects/spring-ai#4776), "schema must have type 'object' and not have
  'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (nspady/google-calendar-mcp#39), a
  description above 1,024 characters (getsentry/sentry-mcp#106).
- Anthropic, API reference of Messages: a name has 1 to 128 of the same characters, names are
  unique, `input_schema` is an object in JSON Schema draft 2020-12.
- Anthropic, errors with status 400: "input_schema does not support oneOf, allOf, or anyOf at the
  top level" (anthropics/claude-code#5319), "Property keys should match pattern"
  (anthropics/claude-code#79418).
- Ours: each schema says its one type, so that no endpoint has to guess, and a boolean is a schema
  only in `additionalProperties` (androidStern-personal/openclaw-mcp-adapter#9: Fireworks).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import jsonschema

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
KEYWORDS = {
    *("type", "description", "default", "enum", "const", "anyOf", "$ref", "$defs"),
    *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
    *("minLength", "maxLength", "pattern", "format", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
NOT_AT_THE_TOP = {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"}
TOOLS_MAX, DESCRIPTION_MAX = 128, 1_024
PROPERTIES_MAX, LEVELS_MAX, ENUM_VALUES_MAX = 100, 5, 500

Schema = Mapping[str, Any]
Path = tuple[str, ...]


def tool_problems(tools: Sequence[Schema]) -> Iterator[str]:
    """Yield what is wrong with the `tools` of a request body, of either provider."""
    described = [tool.get("function", tool) for tool in tools]
    names = [tool["name"] for tool in described]
    if len(names) > TOOLS_MAX or len(set(names)) < len(names):
        yield f"{len(names)} tools: too many, or two of the same name"
    for tool in described:
        if not NAME.fullmatch(tool["name"]):
            yield f"Invalid name {tool['name']!r}"
        if not 1 <= len(tool.get("description", "")) <= DESCRIPTION_MAX:
            yield f"Invalid description of {tool['name']!r}: it is empty or too long"
        if tool.get("strict"):
            yield f"{tool['name']!r} is strict: check it by the rules for that"
        schema = tool.get("parameters", tool.get("input_schema"))
        for problem in schema_problems(schema):
            yield f"Invalid schema for function {tool['name']!r}: {problem}"


def schema_problems(root: object) -> Iterator[str]:
    """Yield what is wrong with the schema of a tool's arguments."""
    if not _is_object(root) or root.get("type") != "object" or NOT_AT_THE_TOP & {*root}:
        yield f"schema must have type 'object' and not have {sorted(NOT_AT_THE_TOP)} at the top"
        return
    try:
        jsonschema.Draft202012Validator.check_schema(root)
    except jsonschema.SchemaError as error:
        yield f"not a JSON Schema of draft 2020-12: {error.message}"
        return
    nodes = list(_walk(root, ()))
    for path, node, _ in nodes:
        for problem in _node_problems(node, root.get("$defs", {})):
            yield f"In context={path}, {problem}"
    schemas = [node for _, node, _ in nodes if _is_object(node)]
    if sum(len(node.get("properties", ())) for node in schemas) > PROPERTIES_MAX:
        yield "too many properties"
    if sum(len(node.get("enum", ())) for node in schemas) > ENUM_VALUES_MAX:
        yield "too many enum values"
    if max(level for _, _, level in nodes) > LEVELS_MAX:
        yield "too many levels of nesting"


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _walk(node: object, path: Path, level: int = 0) -> Iterator[tuple[Path, object, int]]:
    """Yield each schema in `node`, with the way to it and how many objects it is in."""
    yield path, node, level
    if not _is_object(node):
        return
    children: dict[Path, object] = {}
    for keyword in ("properties", "$defs"):
        children |= {(keyword, name): part for name, part in node.get(keyword, {}).items()}
    children |= {("anyOf", str(index)): part for index, part in enumerate(node.get("anyOf", ()))}
    if "items" in node:
        children["items",] = node["items"]
    if _is_object(node.get("additionalProperties")):
        children["additionalProperties",] = node["additionalProperties"]
    for step, child in children.items():
        yield from _walk(child, path + step, level + (node.get("type") == "object"))


def _node_problems(node: object, definitions: Schema) -> Iterator[str]:
    if not _is_object(node):
        yield "a boolean is no schema"
        return
    if unknown := {*node} - KEYWORDS:
        yield f"{sorted(unknown)} is not permitted."
    match node:
        case {"$ref": str(target)}:
            if target.removeprefix("#/$defs/") not in definitions:
                yield f"{target} leads nowhere"
        case {"anyOf": _}:
            pass
        case {"type": "array"}:
            if "items" not in node:
                yield "array schema missing items."
        case {"type": "object"}:
            yield from _object_problems(node)
        case {"type": str()}:
            pass  # the draft knows which types there are
        case _:
            yield f"{node.get('type')!r} is not one type"


def _object_problems(node: Schema) -> Iterator[str]:
    properties: Schema = node.get("properties", {})
    if "properties" not in node:
        yield "object schema missing properties."
    if "additionalProperties" not in node:
        yield "the object says neither that it is open nor that it is closed"
    if {*node.get("required", ())} - {*properties}:
        yield "a required property is not described"
    if not all(PROPERTY.fullmatch(name) for name in properties):
        yield f"Property keys should match pattern {PROPERTY.pattern}"
