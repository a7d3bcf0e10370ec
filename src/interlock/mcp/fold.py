"""From what an agent sent to what it meant: strings that hold JSON, other names, stray keys."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from interlock.app.explanation import Explanation
from interlock.core.canonical import Json
from interlock.mcp.contract import Tool, plain
from interlock.mcp.results import ToolResult, refused

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class Folded(msgspec.Struct, Generic[Arguments], frozen=True):
    arguments: Arguments
    warnings: tuple[str, ...]


def fold(tool: Tool[Arguments], sent: object) -> Folded[Arguments] | ToolResult:
    given = _object(sent if sent is not None else {})
    if given is None:
        return _refuse(tool, {}, "The arguments are not an object", ())
    renamed = _renamed(tool, given)
    if isinstance(renamed, _Clash):
        message = f"Both `{renamed.name}` and `{renamed.alias}` were given; send one of them"
        return _refuse(tool, {}, message, ())
    properties = tool.input_schema["properties"]
    warnings = _drop_unknown(renamed, properties)
    for name, value in renamed.items():
        shaped = _shaped(value, properties[name])
        inner = properties[name].get("properties")
        if isinstance(shaped, dict) and inner:
            warnings += _drop_unknown(shaped, inner, f"{name}.")
        renamed[name] = shaped
    try:
        arguments = msgspec.convert(renamed, tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        return _explain(tool, renamed, error)
    return Folded(arguments, warnings)


class _Clash(msgspec.Struct, frozen=True):
    """One argument came under two names."""

    alias: str
    name: str


def _object(sent: object) -> Mapping[str, Json] | None:
    value = _parsed(sent) if isinstance(sent, str) else sent
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else None


def _parsed(text: str) -> Json:
    """Models often send an object as a string of JSON. What does not parse stays what it is."""
    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return text


def _renamed(tool: Tool[Arguments], given: Mapping[str, Json]) -> dict[str, Json] | _Clash:
    """What was given, under the names and in the places where it belongs."""
    paths = tool.paths
    placed: dict[str, Json] = {}
    for name in sorted(given, key=lambda name: "." in paths.get(plain(name), "")):
        path = paths.get(plain(name), name)
        outer, _, inner = path.partition(".")
        if not inner:
            if outer in placed:
                return _Clash(name if name != outer else _other(given, outer, paths), outer)
            inside = _inside(given[name], outer, paths)
            if isinstance(inside, _Clash):
                return inside
            placed[outer] = inside
            continue
        inside = _object(placed.get(outer) or {})
        if inside is None or inner in inside:
            return _Clash(name, path)
        placed[outer] = {**inside, inner: given[name]}
    return placed


def _other(given: Mapping[str, Json], outer: str, paths: Mapping[str, str]) -> str:
    return next(name for name in given if name != outer and paths.get(plain(name)) == outer)


def _inside(value: Json, outer: str, paths: Mapping[str, str]) -> Json | _Clash:
    """`output: {notes: …}` for `output: {notesMarkdown: …}`, and `output: "text"` for both."""
    inner = [path.partition(".")[2] for path in paths.values() if path.startswith(f"{outer}.")]
    if not inner:
        return value
    if isinstance(value, str) and not isinstance(_parsed(value), dict):
        return {inner[0]: value}
    found = _object(value)
    if found is None:
        return value
    placed: dict[str, Json] = {}
    for key, item in found.items():
        name = paths.get(plain(key), key).removeprefix(f"{outer}.")
        if name in placed:
            return _Clash(f"{outer}.{key}", f"{outer}.{name}")
        placed[name] = item
    return placed


def _shaped(value: Json, schema: Mapping[str, Any]) -> Json:
    """A value in the shape that is asked for, where it is plain what was meant."""
    kind = schema.get("type")
    if isinstance(value, str) and kind in ("object", "array"):
        value = _parsed(value)
    if isinstance(value, str) and schema.get("items") == {"type": "string"}:
        return [word.strip() for word in value.split(",") if word.strip()]
    if isinstance(value, dict) and kind == "array":
        return [value]
    if isinstance(value, dict) and kind == "object":
        inner = schema.get("properties", {})
        return {name: _shaped(v, inner.get(name, {})) for name, v in value.items()}
    if isinstance(value, str) and "enum" in schema:
        return next((known for known in schema["enum"] if plain(known) == plain(value)), value)
    return value


def _drop_unknown(
    given: dict[str, Json], properties: Mapping[str, Any], outer: str = ""
) -> tuple[str, ...]:
    warnings: list[str] = []
    for name in [name for name in given if name not in properties]:
        del given[name]
        close = difflib.get_close_matches(name, properties, n=1)
        meant = f" Did you mean `{close[0]}`?" if close else ""
        named = f"`{outer}{name}`"
        warnings.append(f"{named} is not an argument of this tool and was ignored.{meant}")
    return tuple(warnings)


def _explain(
    tool: Tool[Arguments], given: Mapping[str, Json], error: msgspec.ValidationError
) -> ToolResult:
    schema = tool.input_schema
    missing = tuple(name for name in schema.get("required", ()) if name not in given)
    wrong = re.split(r"[.\[`]", str(error).partition("`$.")[2])[0]
    kept = {name: value for name, value in given.items() if name != wrong}
    allowed = tuple(schema["properties"].get(wrong, {}).get("enum", ()))
    message = f"Missing: {', '.join(missing)}" if missing else str(error).replace("`$.", "`")
    return _refuse(tool, kept, message, missing, allowed)


def _refuse(
    tool: Tool[Arguments],
    given: Mapping[str, Json],
    message: str,
    missing: tuple[str, ...],
    allowed: tuple[str, ...] = (),
) -> ToolResult:
    explanation = Explanation(
        "invalid_arguments", message, "Fill in the call below and send it again."
    )
    return refused(explanation, tool.corrected(given), missing=missing, allowed=allowed)
