"""Blanks: the texts in <…> that stand in an example wherever the agent must decide.

An example never judges. Levels, decisions, results and the words of a user are blanks; all else is
complete, so that replacing each blank by a value of the kind that it names gives a call that is
accepted. The inside of a blank reads:

    a | b | c                  one of these texts
    true or false              a JSON literal
    number: 1 | 2              one of these numbers
    whole number, 1 to 8       a JSON number; `number` for any
    why, at least 20 characters, with “X”, matching /…/
                               text; after commas what it must be like, if anything
    …, like VALUE              a value that is certainly accepted, at the end of any kind

A blank that comes back unchanged is refused by its pointer.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, cast

from interlock.core.canonical import Json, escape_pointer_part
from interlock.core.workflow import schemas
from interlock.core.workflow.operators import clip, quote
from interlock.core.workflow.schemas import SchemaNode

NESTING_MAX = 8
_LIKE_LENGTH_MAX = 120
_DESCRIPTION_LENGTH_MAX = 200
_MISSING: Any = object()


def is_blank(text: str) -> bool:
    return len(text) > len("<>") and text[0] == "<" and text[-1] == ">"


def blanks_in(example: Json) -> frozenset[str]:
    return frozenset(text for _, text in _texts(example) if is_blank(text))


def find_unreplaced(value: Json, blanks: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield each blank that came back unchanged, with its pointer in the value."""
    return ((at, text) for at, text in _texts(value) if text.strip() in blanks)


def choice(options: Iterable[str]) -> str:
    """The blank for one of several texts."""
    return f"<{' | '.join(options)}>"


def with_blanks(schema: SchemaNode, example: Json = _MISSING) -> Json:
    """Return a value for the schema with blanks in it, formed like the example if there is one.

    The example satisfies the schema. What it says stands in a blank as a hint, never outside.
    """
    return _put_blanks(schemas.resolve(schema, schema), example, schema, 0)


def _put_blanks(node: SchemaNode | None, example: Any, schema: SchemaNode, depth: int) -> Json:
    node = node or {}
    if isinstance(node.get("type"), list):
        kinds = cast("list[str]", node["type"])
        node = {**node, "type": next((kind for kind in kinds if kind != "null"), "null")}
    match node:
        case {"const": value} | {"enum": [value] | [value, None]}:
            return value
        case _ if depth > NESTING_MAX:
            return "<any value>" if example is _MISSING else example
        case {"properties": dict()} if example is _MISSING or isinstance(example, dict):
            return _put_blanks_in_object(node, example, schema, depth)
        case {"type": "array"} if example is _MISSING or isinstance(example, list):
            items = cast("list[Any]", [_MISSING] if example is _MISSING else example or [_MISSING])
            return [
                _put_blanks(_item_schema(node, schema), one, schema, depth + 1) for one in items
            ]
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]} if example is _MISSING:
            return _put_blanks(schemas.resolve(first, schema), example, schema, depth + 1)
        case _ if isinstance(example, dict):
            members = cast("dict[str, Any]", example).items()
            return {key: _put_blanks(None, item, schema, depth + 1) for key, item in members}
        case _ if isinstance(example, list):
            return [_put_blanks(None, one, schema, depth + 1) for one in cast("list[Any]", example)]
        case {"type": "object"} if example is _MISSING:
            return {}
        case _:
            return _blank_value(node, example)


def _put_blanks_in_object(node: SchemaNode, example: Any, schema: SchemaNode, depth: int) -> Json:
    properties: dict[str, Any] = node["properties"]
    known: dict[str, Any] = {} if example is _MISSING else example
    required = [name for name in node.get("required", ()) if name in properties]
    names = dict.fromkeys((*known, *required)) or dict.fromkeys(properties)
    return {
        name: _put_blanks(
            schemas.resolve(properties.get(name, True), schema),
            known.get(name, _MISSING),
            schema,
            depth + 1,
        )
        for name in names
    }


def _item_schema(node: SchemaNode, schema: SchemaNode) -> SchemaNode | None:
    return schemas.resolve(node.get("items", True), schema)


def _blank_value(node: SchemaNode, example: Any) -> Json:
    """The blank for one value that is neither a list nor an object."""
    if isinstance(example, str) and is_blank(example):
        inside, example = example[1:-1], _MISSING
    else:
        inside = ""
    if example is None:
        return None
    kind = node.get("type", _kind_of(example))
    match node:
        case {"enum": [*options]}:
            options = [option for option in options if option is not None]
            if all(isinstance(option, str) for option in options):
                return choice(options)
            return f"<number: {' | '.join(quote(option) for option in options)}>"
        case _ if kind == "boolean":
            return "<true or false>"
        case _ if kind in ("integer", "number"):
            name = "whole number" if kind == "integer" else "number"
            parts = [name, *_bounds(node, "imum", "")]
        case _:
            name = inside or clip(node.get("description", "text"), _DESCRIPTION_LENGTH_MAX)
            parts = [name.strip("<>"), *_bounds(node, "Length", " characters")]
            parts += [f"matching /{node['pattern']}/"] if "pattern" in node else []
            parts += [f"a {node['format']}"] if "format" in node else []
    return f"<{', '.join(parts)}{_like(example)}>"


def _kind_of(example: Any) -> str:
    match example:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case _:
            return "string"


def _bounds(node: SchemaNode, keyword_end: str, unit: str) -> list[str]:
    match node.get(f"min{keyword_end}"), node.get(f"max{keyword_end}"):
        case (None | 0 | 1, None) if unit:
            return []
        case None, None:
            return []
        case least, None:
            return [f"at least {least}{unit}"]
        case ((None | 0 | 1), most) if unit:
            return [f"at most {most}{unit}"]
        case None, most:
            return [f"at most {most}"]
        case least, most:
            return [f"{least} to {most}{unit}"]


def _like(example: Any) -> str:
    if example is _MISSING:
        return ""
    text = f"“{example}”" if isinstance(example, str) else quote(example)
    return f", like {text}" if len(text) <= _LIKE_LENGTH_MAX else ""


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
