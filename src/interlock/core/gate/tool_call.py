"""A tool call as every host would have said it."""

from typing import Any, cast

import msgspec

from interlock.core.gate.tools import Host, ToolClass, class_of

_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script")
_CLASSES_WITH_TEXTS = ("read", "search", "mcp", "other")
_PATCH_HEADERS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


class ToolCall(msgspec.Struct, frozen=True):
    host: Host
    tool: str
    kind: ToolClass
    cwd: str = ""
    command: str = ""
    """Of a shell; empty where the tool is none, or says nothing that can be read."""
    paths: tuple[str, ...] = ()
    """What an editing tool would write, as far as it says so."""
    input_texts: tuple[str, ...] = ()
    """Everything that may name what another tool reads: each text that it is given."""


def parse_tool_call(host: Host, tool: str, tool_input: Any, cwd: str) -> ToolCall:
    kind = class_of(host, tool)
    given = cast("dict[str, Any]", tool_input) if isinstance(tool_input, dict) else {}
    command = _command_text(given) if kind == "shell" else ""
    paths = _edited_paths(given, tool_input) if kind == "edit" else ()
    named = _texts(tool_input) if kind in _CLASSES_WITH_TEXTS else ()
    return ToolCall(host, tool, kind, cwd, command, paths, named)


def _command_text(tool_input: dict[str, Any]) -> str:
    for key in _COMMAND_KEYS:
        value = tool_input.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):  # Codex sends an argument list
            parts = cast("list[Any]", value)
            return " ".join(_quote(part) for part in parts if isinstance(part, str))
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


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _edited_paths(given: dict[str, Any], tool_input: Any) -> tuple[str, ...]:
    found = [value for key in _PATH_KEYS if isinstance(value := given.get(key), str)]
    texts = [tool_input, given.get("input"), given.get("patch"), given.get("command")]
    for text in texts:
        if isinstance(text, str) and "*** " in text:
            found += [
                line.removeprefix(mark).strip()
                for line in text.splitlines()
                for mark in _PATCH_HEADERS
                if line.startswith(mark)
            ]
    return tuple(dict.fromkeys(found))
