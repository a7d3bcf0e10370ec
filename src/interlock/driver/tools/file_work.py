"""The work of the tools for files, done inside the sandbox.

It is imported by the supervisor, so it needs only the standard library, and RE2 for patterns. The
kernel keeps it where it may be; paths are compared as well, for the model to be told in a sentence
what it cannot reach, and because nothing else does so where there is no sandbox. A path is followed
to its end first, and the file that was then opened must be the one that was looked at.
"""

import os
import sys
import time
from _stat import S_ISDIR, S_ISREG

from interlock.core.counting import pluralise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

READ_BYTES_MAX, EDIT_BYTES_MAX, SEARCHED_BYTES_MAX = 256 * 1024, 10_000_000, 10_000_000
RESULTS_MAX, ENTRIES_MAX, LINE_BYTES_MAX, SEARCH_SECONDS_MAX = 250, 200_000, 500, 20
_BINARY_CHECK_BYTES = 8192
_PATTERN_MEMORY = 8 * 1024 * 1024
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileRefused(Exception):
    """The message is the answer to the model."""


def prepare(call: "dict[str, Any]") -> "Callable[[], int]":
    """Import what the call needs, and return the work itself.

    It writes `1` for an error or `0`, the real path of the file, and the text, with a zero byte
    after each of the first two.
    """
    perform = {
        "Read": read_file,
        "Write": write_file,
        "Edit": edit_file,
        "Glob": list_files,
        "Grep": search_files,
    }[call["tool"]]
    if call["tool"] in ("Glob", "Grep"):
        sys.path.append(call["packages"])
        __import__("re2")

    def work() -> int:
        path, is_error = "", False
        try:
            path, text = perform(call)
        except FileRefused as refusal:
            is_error, text = True, str(refusal)
        except OSError as error:
            is_error, text = True, f"`{call['path']}`: {error.strerror}"
        answer = f"{int(is_error)}\0{path}\0{text}".encode(errors="replace")
        while answer:
            answer = answer[os.write(1, answer) :]
        return 0

    return work


def read_file(call: "dict[str, Any]") -> tuple[str, str]:
    """The lines of a file, numbered, from `offset` on."""
    path = _resolve(call)
    offset, limit = call["offset"], call["limit"]
    shown: list[str] = []
    number, used, is_whole, is_line_whole = 1, 0, True, True
    with _open_plain(path, call) as file:
        size = os.fstat(file.fileno()).st_size
        if b"\0" in file.read(_BINARY_CHECK_BYTES):
            raise FileRefused(f"`{call['path']}` is not text: a binary file of {size:,} bytes.")
        file.seek(0)
        while piece := file.readline(READ_BYTES_MAX):
            if number >= offset:
                if len(shown) == limit or used + len(piece) > READ_BYTES_MAX:
                    is_whole = False
                    break
                text = piece.decode(errors="replace").removesuffix("\n").removesuffix("\r")
                shown.append(f"{number:6}\t{text}")
                used += len(piece)
            is_line_whole = piece.endswith(b"\n")
            number += is_line_whole
    if not is_whole:
        following = number if is_line_whole else number + 1  # the rest of a line cannot be had
        shown.append(f"[There is more: {size:,} bytes in all. Go on with offset {following}.]")
    elif not shown:
        shown.append("[The file is empty.]" if not size else f"[It ends before line {offset}.]")
    return path, "\n".join(shown)


def write_file(call: "dict[str, Any]") -> tuple[str, str]:
    path = _resolve(call)
    content = _encode(call["content"])
    is_new = not os.path.lexists(path)
    _replace(path, content, call)
    return path, f"{'Created' if is_new else 'Wrote'} `{path}`: {len(content):,} bytes."


def edit_file(call: "dict[str, Any]") -> tuple[str, str]:
    """Replace a text that occurs exactly once, or everywhere if that is asked for."""
    path = _resolve(call)
    if path not in call["opened_files"]:
        raise FileRefused(f"Read `{call['path']}` first: only what was read can be edited.")
    with _open_plain(path, call) as file:
        content = file.read(EDIT_BYTES_MAX + 1)
    if len(content) > EDIT_BYTES_MAX:
        raise FileRefused(f"`{call['path']}` has more than {EDIT_BYTES_MAX:,} bytes.")
    old, new = _encode(call["old_string"]), _encode(call["new_string"])
    if old not in content and b"\r\n" in content:
        # The lines were read without their returns.
        old, new = (text.replace(b"\n", b"\r\n") for text in (old, new))
    lines = _line_numbers(content, old)
    if not lines:
        raise FileRefused(
            f"The text to replace is not in `{call['path']}`. It must be there exactly as given,"
            " with its blanks and line breaks, without line numbers. Read the file again."
        )
    if len(lines) > 1 and not call["replace_all"]:
        shown = ", ".join(map(str, lines[:10]))
        raise FileRefused(
            f"The text to replace occurs {len(lines)} times in `{call['path']}` (lines {shown})."
            " Give more of what is around it, or set replace_all."
        )
    _replace(path, content.replace(old, new), call)
    count = f"{len(lines)} times" if len(lines) > 1 else f"in line {lines[0]}"
    return path, f"Edited `{path}`: replaced {count}."


def list_files(call: "dict[str, Any]") -> tuple[str, str]:
    base = _resolve(call)
    pattern: str = call["pattern"].removeprefix(f"{base}/")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise FileRefused(f"`{pattern}` leads outside: patterns are for paths below `{base}`.")
    matcher = compile_glob(pattern)
    found: list[str] = []
    walk = _Walk(base)
    for name, _ in walk:
        if matcher.fullmatch(os.fsencode(name)):
            found.append(name)
            if len(found) > RESULTS_MAX:
                break
    return base, _listing(found, walk, "files")


def search_files(call: "dict[str, Any]") -> tuple[str, str]:
    """The lines that match, each with its file and number; or only the files."""
    base = _resolve(call)
    matcher = compile_pattern(call["pattern"], ignores_case=call["ignore_case"])
    pattern = call["glob"]
    names = compile_glob(pattern if "/" in pattern else f"**/{pattern}") if pattern else None
    found: list[str] = []
    walk = _Walk(base)
    for name, is_plain in walk:
        if not is_plain or (names and not names.fullmatch(os.fsencode(name))):
            continue
        content = walk.content_of(name)
        for number, line in _matching_lines(content, matcher):
            text = line[:LINE_BYTES_MAX].decode(errors="replace") + "…" * (
                len(line) > LINE_BYTES_MAX
            )
            found.append(name if call["files_only"] else f"{name}:{number}:{text}")
            if call["files_only"] or len(found) > RESULTS_MAX:
                break
        if len(found) > RESULTS_MAX:
            break
    return base, _listing(found, walk, "files" if call["files_only"] else "lines")


def compile_pattern(pattern: str, *, ignores_case: bool) -> "Any":
    """A pattern for lines, of an engine that takes linear time."""
    re2: Any = __import__("re2")  # it comes without types
    options = re2.Options()
    options.log_errors, options.never_capture, options.never_nl = False, True, True
    options.max_mem = _PATTERN_MEMORY
    options.case_sensitive = not ignores_case
    try:
        return re2.compile(f"(?m){pattern}", options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise FileRefused(
            f"`{pattern}` is not a pattern that can be searched for: {reason}. The syntax is that"
            " of RE2: no look-around and no references back."
        ) from None


def compile_glob(pattern: str) -> "Any":
    """A pattern for paths: `*`, `?`, `[…]`, `{a,b}`, and `**` for any number of directories."""
    expression, position, depth = "", 0, 0
    while position < len(pattern):
        char, size = pattern[position], 1
        end = pattern.find("]", position + 2)
        if pattern.startswith("**/", position):
            expression, size = f"{expression}(?:[^/]+/)*", 3
        elif pattern.startswith("**", position):
            expression, size = f"{expression}.*", 2
        elif char in "*?":
            expression += "[^/]*" if char == "*" else "[^/]"
        elif char == "[" and end > 0:
            letters = pattern[position + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            expression += f"[{letters.replace('!', '^', 1) if letters[0] == '!' else letters}]"
            size = end + 1 - position
        elif char in "{}" or (char == "," and depth):
            expression += {"{": "(?:", "}": ")", ",": "|"}[char]
            depth += {"{": 1, "}": -1, ",": 0}[char]
        else:
            expression += char if char.isalnum() or not char.isascii() else f"\\{char}"
        position += size
    return compile_pattern(expression, ignores_case=False)


class _Walk:
    """The files below a directory, or the one file itself, in the order of their names.

    Links are not followed, git's own directory is left out, and there is an end to it.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        self.skipped = 0
        self.is_cut = False
        self._deadline = time.monotonic() + SEARCH_SECONDS_MAX

    def __iter__(self) -> "Iterator[tuple[str, bool]]":
        """Names relative to the base, and whether each is a plain file."""
        if not os.path.isdir(self.base):
            yield os.path.basename(self.base), True
            return
        folders, count = [""], 0
        while folders:
            folder = folders.pop()
            try:
                entries = sorted(os.scandir(f"{self.base}/{folder}"), key=lambda x: x.name)
            except OSError:
                continue
            count += len(entries)
            if count > ENTRIES_MAX or time.monotonic() > self._deadline:
                self.is_cut = True
                return
            inner = [x for x in entries if x.is_dir(follow_symlinks=False) and x.name != ".git"]
            folders += [f"{folder}{entry.name}/" for entry in reversed(inner)]
            for entry in entries:
                if entry.name != ".git" and not entry.is_dir(follow_symlinks=False):
                    yield f"{folder}{entry.name}", entry.is_file(follow_symlinks=False)

    def content_of(self, name: str) -> bytes:
        """The content of a file of text; nothing if it is no such file, or too large a one."""
        path = f"{self.base}/{name}" if os.path.isdir(self.base) else self.base
        try:
            with open(os.open(path, _READING), "rb") as file:
                content = file.read(SEARCHED_BYTES_MAX + 1)
        except OSError:
            content = b"\0"
        is_text = len(content) <= SEARCHED_BYTES_MAX
        is_text = is_text and b"\0" not in content[:_BINARY_CHECK_BYTES]
        self.skipped += not is_text
        return content if is_text else b""


def _listing(found: list[str], walk: _Walk, what: str) -> str:
    lines = found[:RESULTS_MAX]
    if len(found) > RESULTS_MAX:
        lines.append(f"[There are more; these are the first {RESULTS_MAX} {what}.]")
    elif not found:
        lines.append(f"[No {what} match.]")
    if walk.is_cut:
        lines.append("[Not everything was looked at: there is too much. Name a path further down.]")
    if walk.skipped:
        lines.append(f"[Skipped {pluralise(walk.skipped, 'file')}: not text, or too large.]")
    return "\n".join(lines)


def _matching_lines(content: bytes, matcher: "Any") -> "Iterator[tuple[int, bytes]]":
    position, number = 0, 1
    while match := matcher.search(content, position):
        start = content.rfind(b"\n", 0, match.start()) + 1
        end = content.find(b"\n", match.start())
        end = len(content) if end < 0 else end
        number += content.count(b"\n", position, start)
        yield number, content[start:end].removesuffix(b"\r")
        position, number = end + 1, number + 1
        if position >= len(content):
            return


def _line_numbers(content: bytes, text: bytes) -> list[int]:
    """The lines in which a text begins."""
    numbers: list[int] = []
    position = content.find(text)
    while position >= 0:
        numbers.append(content.count(b"\n", 0, position) + 1)
        position = content.find(text, position + len(text))
    return numbers


def _resolve(call: "dict[str, Any]") -> str:
    """The path to which the one in the call leads.

    Raises:
        FileRefused: that is not where the tool may be.
    """
    path: str = call["path"]
    if "\0" in path:
        raise FileRefused("No path has a zero byte in it.")
    real = os.path.realpath(os.path.join(call["worktree"], path))
    if not any(real == root or real.startswith(f"{root}/") for root in call["roots"]):
        leads = "" if os.path.normpath(path) == real else f" (it leads to `{real}`)"
        raise FileRefused(
            f"`{path}` is outside{leads}: this tool works in the worktree, `{call['worktree']}`."
        )
    return real


def _open_plain(path: str, call: "dict[str, Any]") -> "Any":
    """Open a plain file for reading.

    Raises:
        FileRefused: it is none, or another than a moment ago.
        OSError: it cannot be opened.
    """
    file = os.open(path, _READING)
    mode = os.fstat(file).st_mode
    if S_ISDIR(mode):
        raise FileRefused(f"`{call['path']}` is a directory: list it with Glob.")
    if not S_ISREG(mode) or os.readlink(f"/proc/self/fd/{file}") != path:
        raise FileRefused(f"`{call['path']}` is not a plain file.")
    return open(file, "rb")


def _replace(path: str, content: bytes, call: "dict[str, Any]") -> None:
    """Write a file in one step. A link to it from elsewhere keeps what it had."""
    parent, name = os.path.split(path)
    os.makedirs(parent, exist_ok=True)
    folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    mode = os.lstat(path).st_mode if os.path.lexists(path) else None
    # From here on the directory is held: a link that takes its place leads nowhere.
    is_moved = os.readlink(f"/proc/self/fd/{folder}") != parent
    if is_moved or (mode is not None and not S_ISREG(mode)):
        raise FileRefused(f"`{call['path']}` is not a plain file.")
    draft = f".interlock-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(draft, flags, 0o666, dir_fd=folder), "wb", buffering=0) as file:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            if mode is not None:
                os.fchmod(file.fileno(), mode & 0o777)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(draft, dir_fd=folder)
            raise
        finally:
            os.close(folder)


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise FileRefused("The text has characters that are none (single surrogates).") from None
