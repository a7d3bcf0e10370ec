"""From what an agent sent to what it meant: strings that hold JSON, other names, stray keys."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from interlock.app.explanation import Explanation
from interlock.core.canonical import Json
from interlock.mcp import schema
from interlock.mcp.results import ToolResult, refusal_result
from interlock.mcp.tool import Tool, normalise_name

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class ParsedArguments(msgspec.Struct, Generic[Arguments], frozen=True):
    arguments: Arguments
    warnings: tuple[str, ...]


def parse_arguments(tool: Tool[Arguments], sent: object) -> ParsedArguments[Arguments] | ToolResult:
    given = _as_object(sent if sent is not None else {})
    if given is None:
        return _refuse(tool, {}, "The arguments are not an object", ())
    renamed = _rename_arguments(tool, given)
    if isinstance(renamed, _ArgumentClash):
        message = f"Both `{renamed.name}` and `{renamed.alias}` were given; send one of them"
        clear = {name: given[name] for name in tool.input_schema["properties"] if name in given}
        clear.pop(renamed.name.partition(".")[0], None)
        return _refuse(tool, _repair_arguments(tool, clear), message, ())
    properties = tool.input_schema["properties"]
    warnings = _drop_unknown(renamed, properties)
    for name, value in renamed.items():
        shaped = _coerce_value(value, properties[name])
        inner = properties[name].get("properties")
        if isinstance(shaped, dict) and inner:
            warnings += _drop_unknown(shaped, inner, f"{name}.")
        renamed[name] = shaped
    try:
        arguments = msgspec.convert(renamed, tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        return _refuse_invalid(tool, renamed, error)
    return ParsedArguments(arguments, warnings)


class _ArgumentClash(msgspec.Struct, frozen=True):
    """One argument came under two names."""

    alias: str
    name: str


def _as_object(sent: object) -> Mapping[str, Json] | None:
    value = _parse_json(sent) if isinstance(sent, str) else sent
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else None


def _parse_json(text: str) -> Json:
    """Models often send an object as a string of JSON. What does not parse stays what it is."""
    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return text


def _rename_arguments(
    tool: Tool[Arguments], given: Mapping[str, Json]
) -> dict[str, Json] | _ArgumentClash:
    """What was given, under the names and in the places where it belongs."""
    paths = tool.argument_paths
    placed: dict[str, Json] = {}
    for name in sorted(given, key=lambda name: "." in paths.get(normalise_name(name), "")):
        path = paths.get(normalise_name(name), name)
        outer, _, inner = path.partition(".")
        if not inner:
            if outer in placed:
                return _ArgumentClash(
                    name if name != outer else _other_name(given, outer, paths), outer
                )
            inside = _rename_nested(given[name], outer, paths)
            if isinstance(inside, _ArgumentClash):
                return inside
            placed[outer] = inside
            continue
        inside = _as_object(placed.get(outer) or {})
        if inside is None or inner in inside:
            return _ArgumentClash(name, path)
        placed[outer] = {**inside, inner: given[name]}
    return placed


def _other_name(given: Mapping[str, Json], outer: str, paths: Mapping[str, str]) -> str:
    return next(
        name for name in given if name != outer and paths.get(normalise_name(name)) == outer
    )


def _rename_nested(value: Json, outer: str, paths: Mapping[str, str]) -> Json | _ArgumentClash:
    """`output: {notes: …}` for `output: {notesMarkdown: …}`, and `output: "text"` for both."""
    inner = [path.partition(".")[2] for path in paths.values() if path.startswith(f"{outer}.")]
    if not inner:
        return value
    if isinstance(value, str) and not isinstance(_parse_json(value), dict):
        return {inner[0]: value}
    found = _as_object(value)
    if found is None:
        return value
    placed: dict[str, Json] = {}
    for key, item in found.items():
        name = paths.get(normalise_name(key), key).removeprefix(f"{outer}.")
        if name in placed:
            return _ArgumentClash(f"{outer}.{key}", f"{outer}.{name}")
        placed[name] = item
    return placed


def _coerce_value(value: Json, property_schema: Mapping[str, Any]) -> Json:
    """A value in the shape that is asked for, where it is plain what was meant."""
    kind = property_schema.get("type")
    if isinstance(value, str) and kind in ("object", "array"):
        value = _parse_json(value)
    if isinstance(value, str) and property_schema.get("items") == {"type": "string"}:
        return [word.strip() for word in value.split(",") if word.strip()]
    if isinstance(value, dict) and kind == "array":
        return [value]
    if isinstance(value, dict) and kind == "object":
        inner = property_schema.get("properties", {})
        return {name: _coerce_value(v, inner.get(name, {})) for name, v in value.items()}
    if isinstance(value, str) and "enum" in property_schema:
        return next(
            (
                known
                for known in property_schema["enum"]
                if normalise_name(known) == normalise_name(value)
            ),
            value,
        )
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


def _refuse_invalid(
    tool: Tool[Arguments], given: Mapping[str, Json], error: msgspec.ValidationError
) -> ToolResult:
    takes = tool.input_schema
    missing = tuple(name for name in takes.get("required", ()) if name not in given)
    allowed = tuple(takes["properties"].get(_invalid_argument(error), {}).get("enum", ()))
    message = f"Missing: {', '.join(missing)}" if missing else str(error).replace("`$.", "`")
    return _refuse(tool, _repair_arguments(tool, given), message, missing, allowed)


def _invalid_argument(error: msgspec.ValidationError) -> str:
    """The argument that it is about; empty where it is about none."""
    return re.split(r"[.\[`]", str(error).partition("`$.")[2])[0]


def _repair_arguments(tool: Tool[Arguments], given: Mapping[str, Json]) -> dict[str, Json]:
    """What was given, with what is wrong about it put right where that can be guessed, or gone."""
    kept = dict(given)
    example = schema.example_arguments(tool.input_schema)
    for _ in range(2 * len(given)):
        try:
            msgspec.convert({**example, **kept}, tool.arguments, strict=False)
            break
        except msgspec.ValidationError as error:
            wrong = _invalid_argument(error)
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
    call = tool.corrected_call(given)
    hint = "Fill in the call below and send it again."
    if call.tool != tool.name:
        hint = f"Make the call below first: it answers with what {tool.name} needs."
    explanation = Explanation("invalid_arguments", message, hint)
    return refusal_result(explanation, call, missing=missing, allowed=allowed)
