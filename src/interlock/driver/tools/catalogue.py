"""The tools that work in a worktree, by name, and whether a call of one can be made."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from interlock.core.unattended.conversation import ToolSpec
from interlock.driver.tools.bash import BASH
from interlock.driver.tools.files import FILE_TOOLS
from interlock.driver.tools.tool import DriverTool

ARGUMENTS_BYTES_MAX = 1_000_000
TOOLS: Mapping[str, DriverTool] = MappingProxyType(
    {tool.name: tool for tool in (BASH, *FILE_TOOLS)}
)


class MalformedCall(msgspec.Struct, frozen=True):
    """A call that cannot be made as the model wrote it."""

    message: str


def tool_specs(names: Iterable[str]) -> tuple[ToolSpec, ...]:
    """Tell the model of these tools: always the same for the same names."""
    return tuple(
        ToolSpec(name, TOOLS[name].description, arguments_schema(TOOLS[name].arguments))
        for name in names
    )


def arguments_schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of flat arguments."""
    _, components = msgspec.json.schema_components((arguments,))
    schema: dict[str, Any] = components[arguments.__name__]
    return {name: value for name, value in schema.items() if name != "title"}


def check_call(
    name: str, arguments_text: str, tools: Mapping[str, DriverTool] = TOOLS
) -> tuple[DriverTool, msgspec.Struct] | MalformedCall:
    """The tool and its arguments, or what is wrong with them and what is expected."""
    tool = tools.get(name)
    if tool is None:
        return MalformedCall(f"There is no tool `{name[:100]}`. The tools are: {', '.join(tools)}.")
    content = arguments_text.encode(errors="replace")
    if len(content) > ARGUMENTS_BYTES_MAX:
        return MalformedCall(
            f"The arguments have {len(content):,} bytes, and {ARGUMENTS_BYTES_MAX:,} are the most."
            " Write a large file in parts."
        )
    try:
        return tool, msgspec.json.decode(content or b"{}", type=tool.arguments)
    except (msgspec.DecodeError, RecursionError) as error:
        return MalformedCall(
            f"The arguments of {name} cannot be used: {error}. Expected is a JSON object with"
            f" {_describe_fields(tool.arguments)}."
        )


def _describe_fields(arguments: type[msgspec.Struct]) -> str:
    schema = arguments_schema(arguments)
    required = schema.get("required", ())
    return ", ".join(
        f"`{name}` ({field['type']}{', required' if name in required else ''})"
        for name, field in schema["properties"].items()
    )
