"""Values that came as text where another type is declared: `"139"`, `"true"`, a list as JSON.

Models send them so, and each would cost a turn. A value whose type is not declared stays as it is,
and so does text that is not the JSON of a declared type.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import schemas
from interlock.core.workflow.schemas import SchemaNode

_BLANK_TYPES = {"<true or false": "boolean", "<whole number": "integer", "<number": "number"}


def values_by_form(values: Mapping[str, Json], forms: Mapping[str, Json]) -> dict[str, Json]:
    """Return the values in the types of their forms (`blanks`)."""
    return {
        name: value_by_schema(value, _schema_of(forms[name])) if name in forms else value
        for name, value in values.items()
    }


def value_by_schema(value: Json, schema: SchemaNode) -> Json:
    """Return the value in the types that the schema declares."""
    return _value_by_node(value, schema, schema)


def _value_by_node(value: Json, node: Any, schema: SchemaNode) -> Json:
    resolved = schemas.resolve(node, schema)
    if resolved is None:
        return value
    if isinstance(value, str):
        value = _parse_text(value, resolved)
    if isinstance(value, dict):
        known = cast("dict[str, Any]", resolved.get("properties", {}))
        return {
            key: _value_by_node(item, known[key], schema) if key in known else item
            for key, item in value.items()
        }
    if isinstance(value, list) and "items" in resolved:
        return [_value_by_node(item, resolved["items"], schema) for item in value]
    return value


def _parse_text(text: str, node: SchemaNode) -> Json:
    declared = node.get("type", [])
    kinds = cast("list[str]", declared if isinstance(declared, list) else [declared])
    if not kinds or "string" in kinds:
        return text
    trimmed = text.strip()
    folded = trimmed.lower()
    try:
        parsed = msgspec.json.decode(folded if folded in ("true", "false") else trimmed)
    except (msgspec.DecodeError, RecursionError):
        return text
    return parsed if _kinds_of(parsed) & {*kinds} else text


def _kinds_of(value: Json) -> set[str]:
    match value:
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number"}
        case list():
            return {"array"}
        case dict():
            return {"object"}
        case _:
            return set()


def _schema_of(form: Json) -> SchemaNode:
    """Return the types that a form shows."""
    match form:
        case list():
            return {"type": "array", "items": _schema_of(form[0]) if form else {}}
        case dict():
            members = {name: _schema_of(item) for name, item in form.items()}
            return {"type": "object", "properties": members}
        case str():
            kinds = (kind for start, kind in _BLANK_TYPES.items() if form.startswith(start))
            kind = next(kinds, "")
            return {"type": kind} if kind else {}
        case _:
            return {}
