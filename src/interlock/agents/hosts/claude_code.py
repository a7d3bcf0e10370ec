"""Interlock's hooks and server for Claude Code, from which its settings and a plugin are made."""

import os
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from interlock.agents.hosts.claude_code_shell import LAUNCHER, SHELL_VARIABLE, SHELLS
from interlock.agents.hosts.launcher import CANNOT_START, IS_OPTED_IN
from interlock.core.canonical import Json

HOST = "claude-code"
Scope = Literal["user", "project"]
JsonPath: TypeAlias = tuple[str | int, ...]

BLOCKS_ON_FAILURE = (2, 1, 325)
"""The version that was seen to block a tool call when its hook fails; 2.1.197 let it pass."""
NAME = "interlock"
"""The name of the server and of the plugin; the names of our tools are made of it."""


class Hook(NamedTuple):
    event: str
    """As Claude Code calls it."""
    name: str
    """As `interlock hook --event` calls it."""
    timeout: int = 5
    """In seconds. Claude Code would wait ten minutes, and then let the tool call pass."""
    more: Mapping[str, Json] = {}
    matcher: str = ""


HOOKS = (
    Hook("SessionStart", "session-start", 10),
    Hook("UserPromptSubmit", "prompt-submit"),
    # Without `onFailure` a hook that cannot be started would let every tool call pass.
    Hook("PreToolUse", "pre-tool", 10, {"onFailure": "block"}, matcher="*"),
    Hook("PostToolUse", "post-tool", more={"async": True}),
    Hook("Stop", "stop"),
    Hook("PreCompact", "pre-compact"),
    Hook("PostCompact", "post-compact"),
    Hook("SessionEnd", "session-end"),
)

COMMANDS = {
    "mode.md": """\
---
description: Show or set what the agent may do here
argument-hint: "[analysis|planning|coding|disabled] [--task TEXT]"
disable-model-invocation: true
---

The user typed `/mode $ARGUMENTS`. Interlock's prompt hook has read it; the context that it added
says which mode holds now, or why it was not changed. Nothing is left to be done about the mode
itself: tell the user that in one sentence, and go on with the work, if there is some, within it.
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


_CALL = f'; [ -r "$L" ] && exec /bin/sh "$L" hook {HOST} '
"""The part of a hook's command line by which it is known as ours."""


def own_directories(environment: Mapping[str, str], user: int) -> tuple[str, ...]:
    """Directories for the client's own plans and scratch files: to write there edits nothing."""
    config = environment.get("CLAUDE_CONFIG_DIR") or f"{environment.get('HOME', '')}/.claude"
    temporary = environment.get("TMPDIR") or "/tmp"
    return f"{config}/plans", f"{temporary.rstrip('/')}/claude-{user}"


def shell_in_use(environment: Mapping[str, str]) -> str:
    """The shell that Claude Code would take for an agent's commands; empty if there is none."""
    wanted = (environment.get(SHELL_VARIABLE, ""), environment.get("SHELL", ""))
    # It tells shells apart by their paths, and takes the first that it finds.
    likes_bash = "bash" in wanted[1]
    others = [which(name, path=environment.get("PATH")) or "" for name in SHELLS]
    for shell in (*wanted, *(others if likes_bash else reversed(others))):
        is_known = any(name in shell for name in SHELLS) and not _is_own_shell(shell)
        if is_known and os.access(shell, os.X_OK):
            return shell
    return ""


def hook_command(home: str, hook: Hook, scope: Scope) -> str:
    """The command line of a hook, for a shell: plain enough to work where Interlock is gone."""
    start = f"L={shlex.quote(f'{home}/{LAUNCHER}')}{_CALL}{hook.name}; "
    if hook.name != "pre-tool" or scope == "project":
        return f"{start}exit 0"  # a colleague's machine may have no Interlock
    return f"{start}{IS_OPTED_IN}; echo {shlex.quote(CANNOT_START)} >&2; exit 2"


def hooks(home: str, scope: Scope) -> dict[str, Json]:
    """The value of `hooks`: for each event one matcher group of ours."""
    groups: dict[str, Json] = {}
    for hook in HOOKS:
        command: dict[str, Json] = {
            "type": "command",
            "command": hook_command(home, hook, scope),
            "timeout": hook.timeout,
            **(hook.more if scope == "user" or "onFailure" not in hook.more else {}),
        }
        matcher: dict[str, Json] = {"matcher": hook.matcher} if hook.matcher else {}
        groups[hook.event] = [{**matcher, "hooks": [command]}]
    return groups


def server(home: str) -> dict[str, Json]:
    """The server's entry. Without `alwaysLoad` the model would see only the names of the tools."""
    return {
        "type": "stdio",
        "command": "/bin/sh",
        "args": [f"{home}/{LAUNCHER}", "mcp"],
        "env": {"INTERLOCK_HOME": home},
        "alwaysLoad": True,
    }


def settings(home: str, scope: Scope, script: str = "") -> dict[str, Json]:
    """Our part of the settings; `script` stands in for the user's shell, if there is one."""
    shell: dict[str, Json] = {"env": {SHELL_VARIABLE: script}} if script else {}
    return {**shell, "hooks": hooks(home, scope)}


def servers(home: str) -> dict[str, Json]:
    return {"mcpServers": {NAME: server(home)}}


def plugin(home: str, version: str) -> dict[str, str]:
    """The files of a plugin directory, by their paths in it."""
    about: dict[str, Json] = {
        "name": NAME,
        "version": version,
        "description": "Durable workflows and a gate before every tool call",
        "license": "Apache-2.0",
    }
    hooks_file: dict[str, Json] = {
        "description": "Interlock's gate and session",
        "hooks": hooks(home, "user"),
    }
    return {
        ".claude-plugin/plugin.json": _format_json(about),
        "hooks/hooks.json": _format_json(hooks_file),
        ".mcp.json": _format_json(servers(home)),
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
    home: str
    """The data home whose launcher it names."""


def home_in(command: str) -> str:
    """The data home that a hook command of ours names; empty if it is somebody else's command."""
    launcher, call, _ = command.partition(_CALL)
    try:
        words = shlex.split(launcher.removeprefix("L=")) if call else []
    except ValueError:
        words = []
    return words[0].removesuffix(f"/{LAUNCHER}") if len(words) == 1 else ""


def installed_hooks(content: Mapping[str, Json]) -> list[InstalledHook]:
    """Every hook of ours in the settings, whatever else they hold."""
    ours: list[InstalledHook] = []
    for event, groups in _dict(content.get("hooks")).items():
        for index, group in enumerate(_list(groups)):
            handlers = _list(_dict(group).get("hooks"))
            for handler_index, handler in enumerate(handlers):
                command = _dict(handler).get("command")
                home = home_in(command) if isinstance(command, str) else ""
                if isinstance(command, str) and home:
                    path = ("hooks", event, index)
                    inner = (*path, "hooks", handler_index)
                    ours.append(InstalledHook(event, path, inner, len(handlers), command, home))
    return ours


def hooks_in(content: Mapping[str, Json]) -> list[JsonPath]:
    """The parts to remove from settings: groups in which all hooks are ours, else single hooks."""
    ours = installed_hooks(content)
    groups = Counter(hook.group for hook in ours)
    whole = {hook.group for hook in ours if groups[hook.group] == hook.group_size}
    return list(dict.fromkeys(x.group if x.group in whole else x.handler for x in ours))


def settings_in(content: Mapping[str, Json]) -> list[JsonPath]:
    """The parts to remove from settings."""
    return [*hooks_in(content), *([("env", SHELL_VARIABLE)] if has_own_shell(content) else [])]


def has_own_shell(content: Mapping[str, Json]) -> bool:
    return _is_own_shell(shell_in(content) or "")


def shell_in(content: Mapping[str, Json]) -> str | None:
    """The shell that the settings name, whoever set it; None if they name none."""
    variables = _dict(content.get("env"))
    return str(variables[SHELL_VARIABLE]) if SHELL_VARIABLE in variables else None


def servers_in(content: Mapping[str, Json]) -> list[JsonPath]:
    """The parts to remove from a file of servers."""
    entry = _dict(_dict(content.get("mcpServers")).get(NAME))
    launcher, *words = [*_list(entry.get("args")), ""]
    is_ours = isinstance(launcher, str) and launcher.endswith(f"/{LAUNCHER}")
    is_ours = is_ours and words[0] == "mcp" and "INTERLOCK_HOME" in _dict(entry.get("env"))
    return [("mcpServers", NAME)] if is_ours else []


def has_settings(content: Mapping[str, Json], expected: Mapping[str, Json]) -> bool:
    """Whether exactly our hooks are there, as they should be, and so is our shell."""
    present = _dict(content.get("hooks"))
    groups_of = _dict(expected.get("hooks"))
    shell = shell_in(content) if has_own_shell(content) else None
    return (
        len(installed_hooks(content)) == len(groups_of)
        and all(
            group in _list(present.get(event))
            for event, groups in groups_of.items()
            for group in _list(groups)
        )
        and shell == shell_in(expected)
    )


def has_server(content: Mapping[str, Json], home: str) -> bool:
    return server_in(content) == server(home)


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
    is_shared = str(handler.get("command")).endswith("exit 0")
    if handler.get("onFailure") != "block" and not is_shared:
        return "lets tool calls pass when it fails (`onFailure` is not `block`)"
    return ""


def _is_own_shell(path: str) -> bool:
    return path.endswith(tuple(f"/{LAUNCHER}-{name}" for name in SHELLS))


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _format_json(value: dict[str, Json]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
