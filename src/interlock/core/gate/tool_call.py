"""A tool call in one form, whatever host it comes from."""

import posixpath
import re
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from interlock.core.gate.paths import PATH_MAX, RealPath, as_written, join_path, patched_files
from interlock.core.gate.tools import COMMANDLESS_TOOLS, FOREIGN_SHELLS, ToolClass, class_of

_PATH_KEYS = (
    *("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file", "paths"),
    *("file", "files", "filename", "old_path", "new_path", "source", "destination", "uri"),
    *("dir_path", "dirPath", "directory", "folder", "target_directory", "target_notebook"),
)
_FILE_URL = re.compile(r"file:(?://(?:localhost)?)?(?=/)", re.IGNORECASE)
_FOLDER_KEYS = ("workdir", "working_directory", "dir_path", "directory", "cwd")
"""Where a shell tool runs its command, as various clients name it."""
_COMMAND_KEYS = ("command", "cmd", "script")
_CLASSES_WITH_TEXTS = ("read", "search", "mcp", "other")


class ToolCall(msgspec.Struct, frozen=True):
    host: str
    tool: str
    kind: ToolClass
    cwd: str = ""
    command: str = ""
    """The command of a shell tool; empty for other tools, or if none can be read."""
    paths: tuple[str, ...] = ()
    """The texts that are certainly paths; for an editing tool, the files it would write."""
    input_texts: tuple[str, ...] = ()
    """Every text in the input of any other tool that may read files: each may name one."""
    is_confined: bool = False
    """Whether the host will run it in the sandbox, whatever is decided here."""
    agreed_readers: tuple[str, ...] = ()
    """The programs with which the user lets this conversation read from public hosts."""
    can_ask: bool = True
    """Whether the host can put a question to the user."""
    can_elicit: bool = False
    """Whether our server can make the host ask, as it does about coding."""
    is_subagent: bool = False
    """Whether a subagent makes it, and not the conversation itself."""
    is_bash: bool = True
    """Whether the command is for bash or zsh. Otherwise it is every text of the input."""


def parse_tool_call(host: str, listed_class: str, tool: str, tool_input: Any, cwd: str) -> ToolCall:
    """The call of a tool. `listed_class`: the class that its host lists it under, or nothing."""
    kind = class_of(listed_class, tool)
    fields = cast("dict[str, Any]", tool_input) if isinstance(tool_input, dict) else {}
    command, is_bash = "", True
    if kind == "shell" and tool not in COMMANDLESS_TOOLS:
        folders = (fields.get(key) for key in _FOLDER_KEYS)
        cwd = next((join_path(cwd, one) for one in folders if isinstance(one, str) and one), cwd)
        command = _command_text(fields)
        # The model may choose the program that runs the command, even one of the project.
        is_bash = command != "" and tool not in FOREIGN_SHELLS and not fields.get("shell")
        command = command if is_bash else "\n".join(text for _, text in _texts(tool_input))
    paths = _edited_paths(fields, tool_input) if kind == "edit" else ()
    texts: list[str] = []
    if kind in _CLASSES_WITH_TEXTS:
        texts = [text for _, text in _texts(tool_input)]
        paths = tuple(text for key, text in _texts(tool_input) if key in _PATH_KEYS)
    return ToolCall(
        host, tool, kind, cwd, command, paths, tuple(dict.fromkeys(texts)), is_bash=is_bash
    )


def led_paths(call: ToolCall, path: str, folder: str, real_path: RealPath) -> list[str | None]:
    """Return where a path leads, in each way in which a client may read it.

    Clients strip blanks, and often remove `..` before the system follows links. A target that
    cannot be determined is None if the text is certainly a path; other texts may be patterns or
    prose, and `sudo` reads where we cannot look.
    """
    if real_path is as_written:
        return []
    full = [join_path(folder, text) for text in (path, path.strip())]
    full += [posixpath.normpath(text) for text in full if ".." in text]
    led = [real_path(text) for text in dict.fromkeys(full) if len(text) <= PATH_MAX]
    is_sure = path.startswith("/proc/") if call.kind == "shell" else path in call.paths
    return led if is_sure else [real for real in led if real is not None]


def _command_text(tool_input: dict[str, Any]) -> str:
    for key in _COMMAND_KEYS:
        value = tool_input.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):  # Codex sends an argument list
            parts = cast("list[Any]", value)
            return " ".join(_quote(part) for part in parts if isinstance(part, str))
    return ""


def _texts(tool_input: Any) -> list[tuple[str, str]]:
    """Every text at any depth, with the key of the object in which it is."""
    texts: list[tuple[str, str]] = []
    pending: list[tuple[str, Any]] = [("", tool_input)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, str):
            is_url = _FILE_URL.match(value)
            texts.append((key, unquote(value[is_url.end() :]) if is_url else value))
        elif isinstance(value, dict):
            pending += cast("dict[str, Any]", value).items()
        elif isinstance(value, list):
            pending += ((key, each) for each in cast("list[Any]", value))
    return texts


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _edited_paths(fields: dict[str, Any], tool_input: Any) -> tuple[str, ...]:
    """The texts under keys for paths and in the heads of a patch; every text if there is none."""
    texts = _texts(tool_input)
    paths = [text for key, text in texts if key in _PATH_KEYS]
    patch_texts = [tool_input, fields.get("input"), fields.get("patch"), fields.get("patchText")]
    patch_texts.append(fields.get("command"))
    for text in patch_texts:
        paths += patched_files(text) if isinstance(text, str) else ()
    unnamed = [text for _, text in texts if len(text) <= PATH_MAX]
    return tuple(dict.fromkeys(paths or unnamed))
