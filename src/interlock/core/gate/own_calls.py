"""Interlock's own tools and commands in the hands of an agent: the mode that a call asks for, and
which commands are the user's.
"""

import re
from itertools import takewhile
from typing import Any, Literal, cast

import msgspec

from interlock.core.gate.shell import Analysis, Command
from interlock.core.gate.state import MODES, Mode, mode_named

Verb = Literal["reads", "mode", "user", "unknown"]

_SESSION_TOOL_ENDINGS = ("__session", "interlock_session", "interlock-session", "MCP:session")
_NOTE_TOOL_ENDINGS = ("write_note", "edit_note", "move_note", "delete_note")
_INTERPRETER = re.compile(r"python[0-9.]*")

_READING_COMMANDS = (
    {
        ("session", verb)
        for verb in ("list", "show", "events", "log", "commands", "get-state", "verify-bundle")
    }
    | {("workflow", verb) for verb in ("list", "show", "validate", "preview", "graph")}
    | {("note", verb) for verb in ("read", "search", "context", "recent", "graph", "check")}
    | {
        ("run", "show"),
        ("run", "list"),
        ("run", "notes"),
        ("gaps", "list"),
        ("approvals", "list"),
        ("preferences", "show"),
        ("sources", "list"),
        ("store", "verify"),
        ("store", "stats"),
        ("keys", "list"),
        ("gate", "explain"),
        ("guard", "check"),
        ("gate", "log"),
        ("gate", "test"),
        ("builtins", ""),
        ("driver", "status"),
        ("driver", "turns"),
        ("worktrees", "list"),
        ("trigger", "list"),
        ("trigger", "validate"),
        ("who", ""),
        ("work", "list"),
        ("work", "ready"),
        ("work", "show"),
        ("mail", "inbox"),
        ("mail", "search"),
        ("check", ""),
        ("check", "session-log"),
        ("mode", ""),
        ("status", ""),
        ("", ""),
    }
)
_TWINS_OF_TOOLS = {
    *(("note", verb) for verb in ("write", "edit", "move", "delete")),
    *(("session", verb) for verb in ("start", "pause", "resume", "publish", "set-state")),
    ("run", "start"),
    *(("work", verb) for verb in ("add", "done", "update")),
    *(("mail", verb) for verb in ("send", "ack")),
}
"""Commands that do what the agent's own tools do in every mode, and refuse what those refuse."""
UNATTENDED = "--driver"
"""With this, `run start` has work done unattended, which is the user's to decide."""
_TWINS_WITH_ARGUMENTS = ("preflight", "reserve", "release", "claim")
_USER_ONLY_COMMANDS = {
    "approvals",
    "console",
    "install",
    "uninstall",
    "trust",
    "init",
    "keys",
    "preferences",
    "gaps",
    "run",
    "sources",
    "store",
    "gate",
    "guard",
    "doctor",
    "driver",
    "worktrees",
    "trigger",
    "hook",
}
"""Commands of which every subcommand that does more than read is for the user alone."""


class RequestedMode(msgspec.Struct, frozen=True):
    mode: Mode
    task: str = ""


def requested_by_tool(tool: str, tool_input: Any) -> RequestedMode | None:
    """The change of mode that a call of the tool `session` asks for, whatever its host calls it.

    `tool` is one of ours. Names and values are read as generously as our server reads them.
    """
    if not tool.endswith(_SESSION_TOOL_ENDINGS):
        return None
    fields = _folded_fields(tool_input)
    wanted, task = fields.get("mode"), fields.get("task")
    mode = mode_named(_fold(wanted)) if isinstance(wanted, str) else None
    return RequestedMode(mode, task if isinstance(task, str) else "") if mode else None


def workspace_of_note(tool: str, tool_input: Any) -> str:
    """The directory whose notes a call of a tool of ours would change; empty if it names none."""
    if not tool.endswith(_NOTE_TOOL_ENDINGS):
        return ""
    fields = _folded_fields(tool_input)
    named = fields.get("workspacepath") or fields.get("workspace")
    return named if isinstance(named, str) else ""


def _folded_fields(tool_input: Any) -> dict[str, Any]:
    fields = cast("dict[str, Any]", tool_input) if isinstance(tool_input, dict) else {}
    return {_fold(key): value for key, value in fields.items()}


def own_commands(analysis: Analysis) -> list[Command]:
    """The commands of ours, also as a module of an interpreter, without what starts them."""
    return [own for command in analysis.commands if (own := _as_own(command))]


def verb_of(command: Command) -> Verb:
    """The kind of a command of ours. `command.program` is `interlock`."""
    first, second = (*plain_words(command), "", "")[:2]
    if (first, second) in _READING_COMMANDS:
        return "reads"
    if first == "mode" or (first, second) == ("session", "set-state"):
        is_users = {"disabled", "--force"} & set(command.arguments)
        return "user" if is_users else "mode" if first == "mode" else "unknown"
    if (first, second) == ("session", "waive"):
        return "user"
    is_twin = (first, second) in _TWINS_OF_TOOLS and UNATTENDED not in command.arguments
    return "user" if first in _USER_ONLY_COMMANDS and not is_twin else "unknown"


def needs_no_sandbox(command: Command) -> bool:
    """Whether a command of ours does no more than the agent's own tools do in every mode."""
    words = takewhile(lambda word: not word.startswith("-"), command.arguments)
    first, second = (*words, "", "")[:2]
    is_for_another = any(word.startswith("--sess") for word in command.arguments)
    return (
        bool(first)
        and (not is_for_another or (first, second) in _READING_COMMANDS)
        and UNATTENDED not in command.arguments
        and (
            first in ("mode", *_TWINS_WITH_ARGUMENTS)
            or (first, second) in _READING_COMMANDS | _TWINS_OF_TOOLS
        )
    )


def plain_words(command: Command) -> list[str]:
    """Its words without options, which may stand anywhere; the value of one may be among them."""
    return [word for word in command.arguments if not word.startswith("-")]


def requested_by_command(command: Command) -> RequestedMode | None:
    """The mode that an `interlock mode` asks for: where several are named, the loosest."""
    named: list[Mode] = [mode for mode in MODES if mode in set(command.arguments)]
    has_task = any(word.startswith("--task") for word in command.arguments)
    return RequestedMode(named[-1], "given" if has_task else "") if named else None


def _as_own(command: Command) -> Command | None:
    if command.program == "interlock":
        return command
    words = command.arguments
    for index in range(len(words) - 1) if _INTERPRETER.fullmatch(command.program) else ():
        if words[index : index + 2] == ("-m", "interlock"):
            own = words[index + 2 :]
            return msgspec.structs.replace(command, program="interlock", arguments=own)
        if not words[index].startswith("-"):
            break
    return None


def _fold(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())
