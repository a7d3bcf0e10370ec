"""From what an agent sent to what it meant: strings that hold JSON, other names, stray keys."""

import difflib
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from interlock.app.explain import Explanation
from interlock.core.canonical import Json
from interlock.mcp.contract import Tool
from interlock.mcp.results import ToolResult, refused

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class Folded(msgspec.Struct, Generic[Arguments], frozen=True):
    arguments: Arguments
    warnings: tuple[str, ...]


def fold(tool: Tool[Arguments], sent: object) -> Folded[Arguments] | ToolResult:
    given = _object(sent if sent is not None else {})
    if given is None:
        return _refuse(tool, {}, "The arguments are not an object", ())
    given = dict(given)
    if clash := _rename(tool.aliases, given):
        alias, name = clash
        return _refuse(tool, {}, f"Both `{name}` and `{alias}` were given; send one of them", ())
    properties = tool.input_schema["properties"]
    warnings = _drop_unknown(given, properties)
    for name, value in given.items():
        if isinstance(value, str) and properties[name].get("type") in ("object", "array"):
            given[name] = _parsed(value)
    try:
        arguments = msgspec.convert(given, tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        return _explain(tool, given, error)
    return Folded(arguments, warnings)


def _object(sent: object) -> Mapping[str, Json] | None:
    value = _parsed(sent) if isinstance(sent, str) else sent
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else None


def _parsed(text: str) -> Json:
    """Models often send an object as a string of JSON. What does not parse stays what it is."""
    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return text


def _rename(aliases: Mapping[str, str], given: dict[str, Json]) -> tuple[str, str] | None:
    """Move what came under another name to where it belongs; tell if both names came."""
    for alias, path in aliases.items():
        if alias not in given:
            continue
        outer, _, inner = path.partition(".")
        if not inner:
            if outer in given:
                return alias, outer
            given[outer] = given.pop(alias)
            continue
        inside = _object(given.get(outer) or {})
        if inside is None or inner in inside:
            return alias, path
        given[outer] = {**inside, inner: given.pop(alias)}
    return None


def _drop_unknown(given: dict[str, Json], properties: Mapping[str, Any]) -> tuple[str, ...]:
    warnings: list[str] = []
    for name in [name for name in given if name not in properties]:
        del given[name]
        close = difflib.get_close_matches(name, properties, n=1)
        meant = f" Did you mean `{close[0]}`?" if close else ""
        warnings.append(f"`{name}` is not an argument of this tool and was ignored.{meant}")
    return tuple(warnings)


def _explain(
    tool: Tool[Arguments], given: Mapping[str, Json], error: msgspec.ValidationError
) -> ToolResult:
    schema = tool.input_schema
    missing = tuple(name for name in schema.get("required", ()) if name not in given)
    wrong = str(error).partition("`$.")[2].partition("`")[0].partition(".")[0]
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
