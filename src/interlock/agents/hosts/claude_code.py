"""Interlock's hooks and server for Claude Code, from which its settings and a plugin are made."""

import os
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from interlock.core.canonical import Json

HOST = "claude-code"
Scope = Literal["user", "project"]
JsonPath: TypeAlias = tuple[str | int, ...]

NAME = "interlock"
"""The name of the server and of the plugin; the names of our tools are made of it."""
FAST = "interlock/hooks/start_fast.py"
"""The end of the path of the file that starts the fast hook."""


class Program(msgspec.Struct, frozen=True):
    """The command that starts Interlock on this machine."""

    interpreter: str
    """Absolute: clients do not have this shell's PATH."""
    flags: tuple[str, ...]
    home: str
    """The data home. Hooks and server must use the same one."""
    fast: str = str(Path(__file__).parents[3] / FAST)
    """The file that starts the fast hook."""


class Hook(NamedTuple):
    event: str
    """As Claude Code calls it."""
    name: str
    """As `interlock hook --event` calls it."""
    timeout: int = 5
    """In seconds. Claude Code would wait ten minutes, and then let the tool call pass."""
    more: Mapping[str, Json] = {}
    matcher: str = ""
    is_fast: bool = False
    """Whether the fast hook is asked first."""


HOOKS = (
    Hook("SessionStart", "session-start", 10),
    Hook("UserPromptSubmit", "prompt-submit"),
    # Without `onFailure` a hook that cannot be started would let every tool call pass.
    Hook("PreToolUse", "pre-tool", 10, {"onFailure": "block"}, matcher="*", is_fast=True),
    Hook("PostToolUse", "post-tool", more={"async": True}, is_fast=True),
    Hook("Stop", "stop"),
    Hook("PreCompact", "pre-compact", is_fast=True),
    Hook("PostCompact", "post-compact", is_fast=True),
    Hook("SessionEnd", "session-end", is_fast=True),
)

COMMANDS = {
    "mode.md": """\
---
description: Set what the agent may do here
argument-hint: analysis|planning|coding|disabled [--task TEXT]
disable-model-invocation: true
---

The user typed `/mode $ARGUMENTS`. Interlock's prompt hook has read it and set the mode; the context
that it added says which mode holds now, or why it was not changed. Nothing is left to be done about
the mode itself: acknowledge it in one sentence and go on with the work within it.
"""
}
"""Slash commands by file name. A hook does the work: the files make the commands known."""


class ClientFiles(NamedTuple):
    """The files in which Claude Code looks."""

    settings: Path
    servers: Path
    commands: Path


def client_files(scope: Scope, root: Path) -> ClientFiles:
    """`root` is the project, or the user's home directory."""
    servers = root / (".mcp.json" if scope == "project" else ".claude.json")
    return ClientFiles(root / ".claude" / "settings.json", servers, root / ".claude" / "commands")


def hook_command(program: Program, hook: Hook) -> str:
    """The command line of a hook, for a shell."""
    if hook.is_fast:
        # Without `-I -S` Python would look at the project, at variables and for packages first.
        start = [program.interpreter, "-I", "-S", program.fast]
        return shlex.join([*start, HOST, hook.name, program.home, *program.flags])
    ours = ["-m", "interlock", "hook", "--host", HOST, "--event", hook.name]
    return shlex.join([program.interpreter, *program.flags, *ours, "--home", program.home])


def hooks(program: Program) -> dict[str, Json]:
    """The value of `hooks`: for each event one matcher group of ours."""
    groups: dict[str, Json] = {}
    for hook in HOOKS:
        command: dict[str, Json] = {
            "type": "command",
            "command": hook_command(program, hook),
            "timeout": hook.timeout,
            **hook.more,
        }
        matcher: dict[str, Json] = {"matcher": hook.matcher} if hook.matcher else {}
        groups[hook.event] = [{**matcher, "hooks": [command]}]
    return groups


def server(program: Program) -> dict[str, Json]:
    """The server's entry. Without `alwaysLoad` the model would see only the names of the tools."""
    return {
        "type": "stdio",
        "command": program.interpreter,
        "args": [*program.flags, "-m", "interlock", "mcp"],
        "env": {"INTERLOCK_HOME": program.home},
        "alwaysLoad": True,
    }


def settings(program: Program) -> dict[str, Json]:
    return {"hooks": hooks(program)}


def servers(program: Program) -> dict[str, Json]:
    return {"mcpServers": {NAME: server(program)}}


def plugin(program: Program, version: str) -> dict[str, str]:
    """The files of a plugin directory, by their paths in it."""
    about: dict[str, Json] = {
        "name": NAME,
        "version": version,
        "description": "Durable workflows and a gate before every tool call",
        "license": "Apache-2.0",
    }
    hooks_file: dict[str, Json] = {
        "description": "Interlock's gate and session",
        **settings(program),
    }
    return {
        ".claude-plugin/plugin.json": _format_json(about),
        "hooks/hooks.json": _format_json(hooks_file),
        ".mcp.json": _format_json(servers(program)),
        **{f"commands/{name}": text for name, text in COMMANDS.items()},
    }


class InstalledHook(NamedTuple):
    """A hook of ours that was found in settings."""

    event: str
    group: JsonPath
    handler: JsonPath
    group_size: int
    """The number of hooks in the group."""
    command: str
    words: tuple[str, ...]

    @property
    def fast(self) -> str:
        """The file that starts the fast hook; nothing where that is not asked."""
        return self.words[3] if _is_fast(self.words) else ""

    @property
    def home(self) -> str:
        """The data home that it was given; nothing where it was given none."""
        if self.fast:
            return self.words[6]
        return next(
            (b for a, b in zip(self.words, self.words[1:], strict=False) if a == "--home"), ""
        )

    @property
    def program(self) -> tuple[str, ...]:
        """The words that start Interlock: all before `hook`."""
        if self.fast:
            return (self.words[0], *self.words[7:], "-m", "interlock")
        return self.words[: self.words.index("hook")]


def words_of(command: str) -> tuple[str, ...] | None:
    """The words of a hook command of ours; None if it is somebody else's.

    Ours is nothing but Interlock itself: a command in which it is wrapped was made by the user.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        return None
    if _is_fast(words):
        return words if words[4] == HOST else None
    start = 1
    if words and os.path.basename(words[0]) != "interlock":
        while start < len(words) and words[start].startswith("-") and words[start] != "-m":
            start += 1
        if words[start : start + 2] != ("-m", "interlock"):
            return None
        start += 2
    return words if words[start : start + 3] == ("hook", "--host", HOST) else None


def _is_fast(words: tuple[str, ...]) -> bool:
    is_whole = len(words) > 6  # noqa: PLR2004 (interpreter, -I, -S, file, host, event, home)
    return is_whole and words[1:3] == ("-I", "-S") and words[3].endswith(f"/{FAST}")


def installed_hooks(content: Mapping[str, Json]) -> list[InstalledHook]:
    """Every hook of ours in the settings, whatever else they hold."""
    ours: list[InstalledHook] = []
    for event, groups in _dict(content.get("hooks")).items():
        for index, group in enumerate(_list(groups)):
            handlers = _list(_dict(group).get("hooks"))
            for handler_index, handler in enumerate(handlers):
                command = _dict(handler).get("command")
                words = words_of(command) if isinstance(command, str) else None
                if isinstance(command, str) and words:
                    path = ("hooks", event, index)
                    inner = (*path, "hooks", handler_index)
                    ours.append(InstalledHook(event, path, inner, len(handlers), command, words))
    return ours


def hooks_in(content: Mapping[str, Json]) -> list[JsonPath]:
    """The parts to remove from settings: groups in which all hooks are ours, else single hooks."""
    ours = installed_hooks(content)
    groups = Counter(hook.group for hook in ours)
    whole = {hook.group for hook in ours if groups[hook.group] == hook.group_size}
    return list(dict.fromkeys(x.group if x.group in whole else x.handler for x in ours))


def servers_in(content: Mapping[str, Json]) -> list[JsonPath]:
    """The parts to remove from a file of servers."""
    entry = _dict(_dict(content.get("mcpServers")).get(NAME))
    is_ours = _list(entry.get("args"))[-3:] == ["-m", "interlock", "mcp"]
    is_ours = is_ours and "INTERLOCK_HOME" in _dict(entry.get("env"))
    return [("mcpServers", NAME)] if is_ours else []


def has_hooks(content: Mapping[str, Json], program: Program) -> bool:
    """Whether exactly our hooks are there, as they should be."""
    present = _dict(content.get("hooks"))
    expected = hooks(program)
    return len(installed_hooks(content)) == len(expected) and all(
        group in _list(present.get(event))
        for event, groups in expected.items()
        for group in _list(groups)
    )


def has_server(content: Mapping[str, Json], program: Program) -> bool:
    return server_in(content) == server(program)


def server_in(content: Mapping[str, Json], root: Path | None = None) -> dict[str, Json] | None:
    """The entry under our name, whoever wrote it; in the user's file also that of one project."""
    held = [_dict(content.get("mcpServers"))]
    if root is not None:
        own = _dict(_dict(content.get("projects")).get(str(root)))
        held.insert(0, _dict(own.get("mcpServers")))
    return next((_dict(servers[NAME]) for servers in held if NAME in servers), None)


def start_of(entry: Mapping[str, Json]) -> tuple[list[str], dict[str, str]] | None:
    """The command line of a server and its variables; None if it has no command."""
    words = [entry.get("command"), *_list(entry.get("args"))]
    if not all(isinstance(word, str) for word in words):
        return None
    variables = _dict(entry.get("env"))
    return [str(word) for word in words], {name: str(value) for name, value in variables.items()}


def weakness(content: Mapping[str, Json], hook: InstalledHook) -> str:
    """The reason why an installed hook would still let something pass; empty if it would not."""
    _, event, index, _, handler_index = hook.handler
    group = _dict(_list(_dict(content.get("hooks")).get(str(event)))[int(index)])
    handler = _dict(_list(group.get("hooks"))[int(handler_index)])
    if group.get("matcher", "*") not in ("", "*"):
        return f"is only for `{group.get('matcher')}`"
    if handler.get("onFailure") != "block":
        return "lets tool calls pass when it fails (`onFailure` is not `block`)"
    return ""


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _format_json(value: dict[str, Json]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
