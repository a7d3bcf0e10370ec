"""From what an agent sent to what it meant: strings that hold JSON, other names, stray keys."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from interlock.app.explanation import Explanation
from interlock.core.canonical import Json
from interlock.mcp import schema
from interlock.mcp.results import ToolResult, refused
from interlock.mcp.tool import Tool, plain

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
        clear = {name: given[name] for name in tool.input_schema["properties"] if name in given}
        clear.pop(renamed.name.partition(".")[0], None)
        return _refuse(tool, _mended(tool, clear), message, ())
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


def _shaped(value: Json, wanted: Mapping[str, Any]) -> Json:
    """A value in the shape that is asked for, where it is plain what was meant."""
    kind = wanted.get("type")
    if isinstance(value, str) and kind in ("object", "array"):
        value = _parsed(value)
    if isinstance(value, str) and wanted.get("items") == {"type": "string"}:
        return [word.strip() for word in value.split(",") if word.strip()]
    if isinstance(value, dict) and kind == "array":
        return [value]
    if isinstance(value, dict) and kind == "object":
        inner = wanted.get("properties", {})
        return {name: _shaped(v, inner.get(name, {})) for name, v in value.items()}
    if isinstance(value, str) and "enum" in wanted:
        return next((known for known in wanted["enum"] if plain(known) == plain(value)), value)
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
    takes = tool.input_schema
    missing = tuple(name for name in takes.get("required", ()) if name not in given)
    allowed = tuple(takes["properties"].get(_wrong(error), {}).get("enum", ()))
    message = f"Missing: {', '.join(missing)}" if missing else str(error).replace("`$.", "`")
    return _refuse(tool, _mended(tool, given), message, missing, allowed)


def _wrong(error: msgspec.ValidationError) -> str:
    """The argument that it is about; empty where it is about none."""
    return re.split(r"[.\[`]", str(error).partition("`$.")[2])[0]


def _mended(tool: Tool[Arguments], given: Mapping[str, Json]) -> dict[str, Json]:
    """What was given, with what is wrong about it put right where that can be guessed, or gone."""
    kept = dict(given)
    example = schema.example_of(tool.input_schema)
    for _ in range(2 * len(given)):
        try:
            msgspec.convert({**example, **kept}, tool.arguments, strict=False)
            break
        except msgspec.ValidationError as error:
            wrong = _wrong(error)
            value = kept.pop(wrong, None)
            known: Mapping[str, Any] = tool.input_schema["properties"].get(wrong, {})
            allowed: list[str] = known.get("enum", [])
            if close := difflib.get_close_matches(str(value), allowed, n=1):
                kept[wrong] = close[0]
            elif known.get("type") == "object" and "examples" in known:
                kept[wrong] = known["examples"][0]
    return kept


def _refuse(
    tool: Tool[Arguments],
    given: Mapping[str, Json],
    message: str,
    missing: tuple[str, ...],
    allowed: tuple[str, ...] = (),
) -> ToolResult:
    call = tool.corrected(given)
    hint = "Fill in the call below and send it again."
    if call.tool != tool.name:
        hint = f"Make the call below first: it answers with what {tool.name} needs."
    explanation = Explanation("invalid_arguments", message, hint)
    return refused(explanation, call, missing=missing, allowed=allowed)
