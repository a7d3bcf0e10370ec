"""Interlock's own commands in an agent's shell: which it may run, and which are the user's."""

from typing import Literal

from interlock.core.gate.shell import Analysis, Command
from interlock.core.gate.state import MODES, Mode, mode_named

Verb = Literal["reads", "mode", "user", "unknown"]

_READING_COMMANDS = (
    {("session", verb) for verb in ("list", "show", "log", "get-state", "verify-bundle")}
    | {("workflow", verb) for verb in ("list", "show", "validate", "preview", "graph")}
    | {("note", verb) for verb in ("read", "search", "context", "recent", "graph", "check")}
    | {
        ("run", "show"),
        ("gaps", "list"),
        ("approvals", "list"),
        ("preferences", "show"),
        ("sources", "list"),
        ("store", "verify"),
        ("store", "stats"),
        ("keys", "list"),
        ("gate", "explain"),
        ("gate", "log"),
        ("gate", "test"),
        ("builtins", ""),
        ("mode", ""),
        ("--version", ""),
        ("--help", ""),
    }
)
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
    "doctor",
    "hook",
}
"""Commands of which every subcommand that does more than read is for the user alone."""


def verb_of(command: Command) -> Verb:
    """The kind of a command of ours. `command.program` is `interlock`."""
    words = [word for word in command.arguments if not word.startswith("--json")]
    first, second = (*words, "", "")[:2]
    if (first, second) in _READING_COMMANDS or ((first, "") in _READING_COMMANDS and not second):
        return "reads"
    if first == "mode" and second in MODES:
        return "mode"
    if first in _USER_ONLY_COMMANDS:
        return "user"
    return "unknown"


def requested_mode(command: Command) -> tuple[Mode, bool] | None:
    """The mode that `interlock mode M [--task T]` asks for, and whether it names a task."""
    words = command.arguments
    plain = [word for word in words if not word.startswith("-")]
    if len(plain) < 2 or plain[0] != "mode":  # noqa: PLR2004 (`mode` and its name)
        return None
    mode = mode_named(plain[1])
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    if mode is None or not options <= {"--task", "--json"}:
        return None
    return mode, "--task" in options


def own_commands(analysis: Analysis) -> list[Command]:
    return [command for command in analysis.commands if command.program == "interlock"]
