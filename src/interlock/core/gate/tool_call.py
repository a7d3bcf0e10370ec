"""A tool call as every host would have said it."""

from typing import Any, cast

import msgspec

from interlock.core.gate.tools import Host, ToolClass, class_of

_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script")
_READING = ("read", "search", "mcp", "other")
_PATCHED = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


class Call(msgspec.Struct, frozen=True):
    host: Host
    tool: str
    kind: ToolClass
    cwd: str = ""
    command: str = ""
    """Of a shell; empty where the tool is none, or says nothing that can be read."""
    paths: tuple[str, ...] = ()
    """What an editing tool would write, as far as it says so."""
    named: tuple[str, ...] = ()
    """Everything that may name what another tool reads: each text that it is given."""


def call_of(host: Host, tool: str, tool_input: Any, cwd: str) -> Call:
    kind = class_of(host, tool)
    given = cast("dict[str, Any]", tool_input) if isinstance(tool_input, dict) else {}
    command = _command(given) if kind == "shell" else ""
    paths = _paths(given, tool_input) if kind == "edit" else ()
    named = _texts(tool_input) if kind in _READING else ()
    return Call(host, tool, kind, cwd, command, paths, named)


def _command(given: dict[str, Any]) -> str:
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):  # Codex sends an argument list
            parts = cast("list[Any]", value)
            return " ".join(_quoted(part) for part in parts if isinstance(part, str))
    return ""


def _texts(given: Any) -> tuple[str, ...]:
    found: list[str] = []
    left = [given]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            left += cast("dict[str, Any]", one).values()
        elif isinstance(one, list):
            left += cast("list[Any]", one)
    return tuple(dict.fromkeys(found))


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _paths(given: dict[str, Any], tool_input: Any) -> tuple[str, ...]:
    found = [value for key in _PATH_KEYS if isinstance(value := given.get(key), str)]
    texts = [tool_input, given.get("input"), given.get("patch"), given.get("command")]
    for text in texts:
        if isinstance(text, str) and "*** " in text:
            found += [
                line.removeprefix(mark).strip()
                for line in text.splitlines()
                for mark in _PATCHED
                if line.startswith(mark)
            ]
    return tuple(dict.fromkeys(found))
