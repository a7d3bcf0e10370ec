"""The tools that work in a worktree, by name, and whether a call of one can be made."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from interlock.core.unattended.conversation import ToolSpec
from interlock.core.unattended.order import FIRST_REPOSITORY
from interlock.driver.tools.bounded_output import BoundedOutput
from interlock.driver.tools.files import FILE_TOOLS
from interlock.driver.tools.processes import run_process
from interlock.driver.tools.tool import DriverTool, Level, ToolOutcome, Workplace

SECONDS_DEFAULT, SECONDS_MAX = 120, 600
COMMAND_CHARACTERS_MAX = 30_000  # four bytes each are what the system takes for one argument
_SIGNS_OF_REFUSAL = re.compile(
    r"permission denied|not permitted|read-only file system|cross-device|EACCES|EPERM"
    r"|unreachable|could not resolve|name resolution|(couldn't|failed to) connect|cannot lock ref",
    re.IGNORECASE,
)
_REACH: dict[Level, str] = {
    "read-only": "only $TMPDIR is written",
    "workspace": "only the worktree and $TMPDIR are written, git moves only this work's branch",
}


class BashCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[
        str,
        Meta(description="The command, for bash.", min_length=1, max_length=COMMAND_CHARACTERS_MAX),
    ]
    timeout_seconds: Annotated[
        int, Meta(description="How long it may take.", ge=1, le=SECONDS_MAX)
    ] = SECONDS_DEFAULT


async def run_bash(workplace: Workplace, arguments: BashCall) -> ToolOutcome:
    """Run a command of the model, each call in its own shell."""
    output = BoundedOutput()
    code = await run_process(
        workplace,
        ("bash", "-c", arguments.command),
        seconds=arguments.timeout_seconds,
        on_output=output.add,
    )
    text = output.show(workplace.spill)
    if code is None:
        end = f"it was ended with all that it started: {arguments.timeout_seconds} s were up"
    else:
        end = f"exit code {code}"
    lines = [*filter(None, [text]), f"[{end}]"]
    if code != 0 and _SIGNS_OF_REFUSAL.search(text) and workplace.level in _REACH:
        network = "" if workplace.has_network else " or of a network"
        reach = f"{_REACH[workplace.level]}, and nothing of the user's home{network} is reached"
        lines.append(f"[The sandbox may be why: {reach}.]")
    # A search without a match has this code and no output.
    is_error = code != 0 and not (code == 1 and not text)
    return ToolOutcome("\n".join(lines), is_error, code)


BASH = DriverTool(
    "Bash",
    "Run a command in bash, in the worktree. Each call has its own shell: directories,"
    " variables and background processes do not outlive it. There is no input and no terminal."
    " Write temporary files below $TMPDIR. Long output is shown with both ends; the rest is in"
    " a file.",
    BashCall,
    "shell",
    run_bash,
)

ARGUMENTS_BYTES_MAX = 1_000_000
TOOLS: Mapping[str, DriverTool] = MappingProxyType(
    {tool.name: tool for tool in (BASH, *FILE_TOOLS)}
)


@cache
def repository_tools(names: tuple[str, ...]) -> Mapping[str, DriverTool]:
    """The tools for work on these repositories. Of one alone, nothing is said in them."""
    if not names:
        return TOOLS
    return MappingProxyType({name: _with_repository(tool, names) for name, tool in TOOLS.items()})


def _with_repository(tool: DriverTool, names: tuple[str, ...]) -> DriverTool:
    """A tool that is told in which repository it works."""
    one_of: Any = Literal  # of names that are known only now
    told = Meta(description=f"The repository to work in; default: `{FIRST_REPOSITORY}`.")
    field = ("repo", Annotated[one_of[names], told], FIRST_REPOSITORY)
    arguments = msgspec.defstruct(
        tool.arguments.__name__,
        [field],
        bases=(tool.arguments,),
        frozen=True,
        forbid_unknown_fields=True,
    )
    return msgspec.structs.replace(tool, arguments=arguments)


def repository_of(arguments: msgspec.Struct) -> str:
    """The repository that checked arguments name."""
    return getattr(arguments, "repo", FIRST_REPOSITORY)


class MalformedCall(msgspec.Struct, frozen=True):
    """A call that cannot be made as the model wrote it."""

    message: str


def tool_specs(
    names: Iterable[str], tools: Mapping[str, DriverTool] = TOOLS
) -> tuple[ToolSpec, ...]:
    """Tell the model of these tools: always the same for the same names."""
    return tuple(
        ToolSpec(name, tools[name].description, arguments_schema(tools[name].arguments))
        for name in names
    )


def arguments_schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of flat arguments, complete enough for every provider."""
    _, components = msgspec.json.schema_components((arguments,))
    schema: dict[str, Any] = components[arguments.__name__]
    for field in schema["properties"].values():
        if "enum" in field:  # msgspec leaves the type out, and some endpoints insist on it
            field["type"] = "string"
    return {name: value for name, value in schema.items() if name != "title"}


def check_call(
    name: str,
    arguments_text: str,
    tools: Mapping[str, DriverTool] = TOOLS,
    others: Iterable[str] = (),
) -> tuple[DriverTool, msgspec.Struct] | MalformedCall:
    """Return the tool and its arguments, or what is wrong with them and what is expected.

    `others`: the names of tools that are carried out elsewhere.
    """
    tool = tools.get(name)
    if tool is None:
        names = ", ".join(dict.fromkeys((*tools, *others)))
        return MalformedCall(f"There is no tool `{name[:100]}`. The tools are: {names}.")
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
        f"`{name}` ({_describe_type(field)}{', required' if name in required else ''})"
        for name, field in schema["properties"].items()
    )


def _describe_type(field: dict[str, Any]) -> str:
    return f"one of {', '.join(field['enum'])}" if "enum" in field else str(field["type"])
