"""Parse the arguments of a tool call, and forgive what agents commonly get wrong.

In this order: an object sent as a string of JSON is decoded; arguments under another name or in
another spelling are renamed, and nested ones moved to their place; unknown arguments are dropped
with a warning; values are coerced to the shape that their schema asks for; the rest is checked.
An argument sent under two names or a misspelt one, or a value that is still invalid, is refused
with a repaired call.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from interlock.app.refusals import NoSuchDirectory
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.mcp import schema
from interlock.mcp.arguments import workspace_of
from interlock.mcp.results import ToolResult, refusal_result
from interlock.mcp.tool import Tool, normalise_name

Arguments = TypeVar("Arguments", bound=msgspec.Struct)

LISTED_WORDS_MAX = 3
NEAR_WORD = 0.85
"""A word so like one that is allowed is another form of it: architecture, architectural."""


class ParsedArguments(msgspec.Struct, Generic[Arguments], frozen=True):
    arguments: Arguments
    warnings: tuple[str, ...]


def parse_arguments(tool: Tool[Arguments], sent: object) -> ParsedArguments[Arguments] | ToolResult:
    sent_arguments = _as_object(sent if sent is not None else {})
    if sent_arguments is None:
        return _refuse(tool, {}, "The arguments are not an object", ())
    corrected, misspelt = _correct_names(sent_arguments, tool.argument_paths)
    renamed = _rename_arguments(tool, corrected)
    if isinstance(renamed, _ArgumentClash):
        message = f"Both `{renamed.name}` and `{renamed.alias}` were given; send one of them"
        unambiguous = {
            name: sent_arguments[name]
            for name in tool.input_schema["properties"]
            if name in sent_arguments
        }
        unambiguous.pop(renamed.name.partition(".")[0], None)
        return _refuse(tool, _repair_arguments(tool, unambiguous), message, ())
    properties = tool.input_schema["properties"]
    warnings = _drop_unknown(renamed, properties)
    for name, value in renamed.items():
        coerced = _coerce_value(value, properties[name])
        words = properties[name].get("enum", ())
        if isinstance(coerced, str) and coerced not in words:
            coerced = _most_similar(coerced, words, cutoff=NEAR_WORD) or coerced
        inner = properties[name].get("properties")
        if isinstance(coerced, dict) and inner:
            known = {normalise_name(one): one for one in inner}
            coerced, misspelt_inner = _correct_names(coerced, known)
            misspelt |= {f"{name}.{one}": f"{name}.{misspelt_inner[one]}" for one in misspelt_inner}
            warnings += _drop_unknown(coerced, inner, f"{name}.")
        renamed[name] = coerced
    for wrong, right in misspelt.items():
        message = f"`{wrong}` is not an argument of {tool.name}; it is called `{right}`"
        return _refuse(tool, _repair_arguments(tool, renamed), message, ())
    try:
        arguments = msgspec.convert(renamed, tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        return _refuse_invalid(tool, renamed, error)
    workspace = getattr(arguments, "workspace_path", None)
    if workspace and not os.path.isdir(workspace_of(workspace)):
        del renamed["workspacePath"]
        return refusal_result(NoSuchDirectory(workspace).explain(), tool.corrected_call(renamed))
    return ParsedArguments(arguments, warnings)


class _ArgumentClash(msgspec.Struct, frozen=True):
    """One argument came under two names."""

    alias: str
    name: str


def _as_object(sent: object) -> Mapping[str, Json] | None:
    value = _parse_json(sent) if isinstance(sent, str) else sent
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else None


def _parse_json(text: str) -> Json:
    """The JSON in a string, as models often send an object; what does not parse stays text."""
    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return text


def _rename_arguments(
    tool: Tool[Arguments], sent_arguments: Mapping[str, Json]
) -> dict[str, Json] | _ArgumentClash:
    """The arguments under their own names, and nested ones inside their outer argument."""
    paths = tool.argument_paths
    renamed: dict[str, Json] = {}
    for name in sorted(sent_arguments, key=lambda name: "." in paths.get(normalise_name(name), "")):
        path = paths.get(normalise_name(name), name)
        outer, _, inner = path.partition(".")
        if not inner:
            if outer in renamed:
                return _ArgumentClash(
                    name if name != outer else _other_name(sent_arguments, outer, paths), outer
                )
            nested = _rename_nested(sent_arguments[name], outer, paths)
            if isinstance(nested, _ArgumentClash):
                return nested
            renamed[outer] = nested
            continue
        nested = _as_object(renamed.get(outer) or {})
        if nested is None or inner in nested:
            return _ArgumentClash(name, path)
        renamed[outer] = {**nested, inner: sent_arguments[name]}
    return renamed


def _other_name(sent_arguments: Mapping[str, Json], outer: str, paths: Mapping[str, str]) -> str:
    return next(
        name
        for name in sent_arguments
        if name != outer and paths.get(normalise_name(name)) == outer
    )


def _rename_nested(value: Json, outer: str, paths: Mapping[str, str]) -> Json | _ArgumentClash:
    """`output: {notes: …}` for `output: {notesMarkdown: …}`, and `output: "text"` for both."""
    inner = [path.partition(".")[2] for path in paths.values() if path.startswith(f"{outer}.")]
    if not inner:
        return value
    if isinstance(value, str) and not isinstance(_parse_json(value), dict):
        return {inner[0]: value}
    nested = _as_object(value)
    if nested is None:
        return value
    renamed: dict[str, Json] = {}
    for key, item in nested.items():
        name = paths.get(normalise_name(key), key).removeprefix(f"{outer}.")
        if name in renamed:
            return _ArgumentClash(f"{outer}.{key}", f"{outer}.{name}")
        renamed[name] = item
    return renamed


def _coerce_value(value: Json, property_schema: Mapping[str, Any]) -> Json:
    """The value in the shape that its schema asks for, where the intention is plain."""
    kind = property_schema.get("type")
    if isinstance(value, str) and kind in ("object", "array"):
        value = _parse_json(value)
    if isinstance(value, str) and property_schema.get("items") == {"type": "string"}:
        words: list[Json] = [word.strip() for word in value.split(",") if word.strip()]
        # A sentence with a comma in it is one thing, not two.
        is_list = all(len(str(word).split()) <= LISTED_WORDS_MAX for word in words)
        return words if is_list else [value]
    if isinstance(value, dict) and kind == "array":
        return [value]
    if isinstance(value, dict) and kind == "object":
        inner = property_schema.get("properties", {})
        return {
            name: _coerce_value(inner_value, inner.get(name, {}))
            for name, inner_value in value.items()
        }
    if isinstance(value, str) and "enum" in property_schema:
        return next(
            (
                choice
                for choice in property_schema["enum"]
                if normalise_name(choice) == normalise_name(value)
            ),
            value,
        )
    return value


def _drop_unknown(
    arguments: dict[str, Json], properties: Mapping[str, Any], outer: str = ""
) -> tuple[str, ...]:
    warnings: list[str] = []
    for name in [name for name in arguments if name not in properties]:
        del arguments[name]
        warnings.append(f"`{outer}{name}` is not an argument of this tool and was ignored.")
    return tuple(warnings)


def _correct_names(
    sent: Mapping[str, Json], known: Mapping[str, str]
) -> tuple[dict[str, Json], dict[str, str]]:
    """Return the arguments under their right names, and the right name of each misspelt one.

    `known`: the correct names by the normalised form of every accepted name.
    """
    corrected: dict[str, Json] = {}
    misspelt: dict[str, str] = {}
    for name, value in sent.items():
        normalised = normalise_name(name)
        if normalised not in known and (near := _most_similar(normalised, known, cutoff=0.75)):
            misspelt[name] = known[near]
            if all(known.get(normalise_name(other)) != known[near] for other in sent):
                corrected.setdefault(known[near], value)
        else:
            corrected[name] = value
    return corrected, misspelt


def _refuse_invalid(
    tool: Tool[Arguments], sent_arguments: Mapping[str, Json], error: msgspec.ValidationError
) -> ToolResult:
    input_schema = tool.input_schema
    missing = tuple(name for name in input_schema.get("required", ()) if name not in sent_arguments)
    allowed = tuple(input_schema["properties"].get(_invalid_argument(error), {}).get("enum", ()))
    message = f"Missing: {', '.join(missing)}" if missing else str(error).replace("`$.", "`")
    return _refuse(tool, _repair_arguments(tool, sent_arguments), message, missing, allowed)


def _invalid_argument(error: msgspec.ValidationError) -> str:
    """The name of the argument that the error is about; empty if it is about none."""
    return re.split(r"[.\[`]", str(error).partition("`$.")[2])[0]


def _repair_arguments(tool: Tool[Arguments], sent_arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments, with each invalid one corrected where that can be guessed, else removed."""
    repaired = dict(sent_arguments)
    example = schema.example_arguments(tool.input_schema)
    for _ in range(2 * len(sent_arguments)):
        try:
            msgspec.convert({**example, **repaired}, tool.arguments, strict=False)
            break
        except msgspec.ValidationError as error:
            invalid = _invalid_argument(error)
            if nested := _repair_nested(repaired.get(invalid), error):
                repaired[invalid] = nested
                continue
            value = repaired.pop(invalid, None)
            property_schema: Mapping[str, Any] = tool.input_schema["properties"].get(invalid, {})
            allowed: list[str] = property_schema.get("enum", [])
            if similar := _most_similar(str(value), allowed):
                repaired[invalid] = similar
            elif property_schema.get("type") == "object" and "examples" in property_schema:
                repaired[invalid] = property_schema["examples"][0]
    return repaired


def _repair_nested(value: Json, error: msgspec.ValidationError) -> dict[str, Json]:
    """The members of an argument without the invalid one, or with a blank for the missing one."""
    members = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
    named = re.search(r"required field `(\w+)`|- at `\$\.\w+\.(\w+)", str(error))
    missing, invalid = named.groups() if members and named else ("", "")
    if missing:
        return {**members, missing: f"<{missing}>"}
    return {name: one for name, one in members.items() if name != invalid} if invalid else {}


def _refuse(
    tool: Tool[Arguments],
    sent_arguments: Mapping[str, Json],
    message: str,
    missing: tuple[str, ...],
    allowed: tuple[str, ...] = (),
) -> ToolResult:
    call = tool.corrected_call(sent_arguments)
    hint = "Fill in the call below and send it again."
    if call.tool != tool.name:
        hint = f"Make the call below first: it answers with what {tool.name} needs."
    explanation = Explanation("invalid_arguments", message, hint)
    return refusal_result(explanation, call, missing=missing, allowed=allowed)


def _most_similar(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known name that is most like `name`; empty where none is."""
    import difflib  # noqa: PLC0415 (1 ms at the start of a server)

    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), "")
