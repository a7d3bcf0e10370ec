"""Find our entries in a client's JSON files, whatever else they hold."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from interlock.agents.hosts.claude_code_shell import SHELL_VARIABLE, SHELLS
from interlock.agents.hosts.host import LAUNCHER, SERVER, Host
from interlock.core.canonical import Json

JsonPath: TypeAlias = tuple[str | int, ...]

SERVER_KEYS = ("mcpServers", "mcp", "servers")
_HOME = re.compile(rf"L='((?:[^']|'\\'')*)/{LAUNCHER}';")


def own_entries(host: Host, values: Mapping[str, Json]) -> list[JsonPath]:
    """The paths of our entries: hooks, servers, the shell and the status line.

    Of a group of hooks in which others have one too, only ours; otherwise the group.
    """
    paths = [path for path, _ in own_hooks(host, values)]
    paths += [
        (key, SERVER) for key in SERVER_KEYS if is_own_server(_dict(values.get(key)).get(SERVER))
    ]
    paths += [("env", SHELL_VARIABLE)] if has_own_shell(values) else []
    line = _dict(values.get("statusLine")).get("command")
    return [*paths, ("statusLine",)] if isinstance(line, str) and _names_launcher(line) else paths


def own_hooks(host: Host, values: Mapping[str, Json]) -> Iterator[tuple[JsonPath, str]]:
    """The path and the command of each hook of ours."""
    for event, groups in _dict(values.get("hooks")).items():
        for index, group in enumerate(_list(groups)):
            handlers = _list(_dict(group).get("hooks"))
            ours = [at for at, handler in enumerate(handlers) if own_command(host, handler)]
            for at in ours:
                is_whole = len(ours) == len(handlers)
                path = ("hooks", event, index) if is_whole else ("hooks", event, index, "hooks", at)
                yield path, own_command(host, handlers[at])
            if not handlers and (command := own_command(host, group)):
                yield ("hooks", event, index), command


def own_command(host: Host, handler: Json) -> str:
    """The command of a hook, if it is ours."""
    texts = [text for text in _dict(handler).values() if isinstance(text, str)]
    return next((text for text in texts if host.is_own_command(text)), "")


def home_in(command: str) -> str:
    """The data home that a command of ours names; empty if it leaves that to the project."""
    match = _HOME.search(command)
    return match[1].replace("'\\''", "'") if match else ""


def is_own_server(entry: Json) -> bool:
    """Whether a server's entry is ours: it starts a launcher."""
    fields = _dict(entry)
    words = [fields.get("command"), *_list(fields.get("command")), *_list(fields.get("args"))]
    return any(isinstance(word, str) and _names_launcher(word) for word in words)


def server_in(values: Mapping[str, Json], key: str, root: str = "") -> dict[str, Json] | None:
    """The server under our name, whoever wrote it; also that of one project, if `root` names it."""
    held = [_dict(_dict(_dict(values.get("projects")).get(root)).get(key)), _dict(values.get(key))]
    return next((_dict(servers[SERVER]) for servers in held if SERVER in servers), None)


def start_of(entry: Mapping[str, Json]) -> tuple[list[str], dict[str, str]] | None:
    """The command line of a server and its variables; None if it has no command."""
    first = entry.get("command")
    words = [*(_list(first) or [first]), *_list(entry.get("args"))]
    if not all(isinstance(word, str) for word in words):
        return None
    variables = _dict(entry.get("env")) or _dict(entry.get("environment"))
    return [str(word) for word in words], {name: str(value) for name, value in variables.items()}


def has_own_shell(values: Mapping[str, Json]) -> bool:
    return is_own_shell(shell_in(values) or "")


def shell_in(values: Mapping[str, Json]) -> str | None:
    """The shell that settings name, whoever set it; None if they name none."""
    variables = _dict(values.get("env"))
    return str(variables[SHELL_VARIABLE]) if SHELL_VARIABLE in variables else None


def is_own_shell(path: str) -> bool:
    return path.endswith(tuple(f"/{LAUNCHER}-{name}" for name in SHELLS))


def _names_launcher(text: str) -> bool:
    return text.endswith(f"/{LAUNCHER}") or f"/{LAUNCHER}' " in text or f'/{LAUNCHER}" ' in text


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
