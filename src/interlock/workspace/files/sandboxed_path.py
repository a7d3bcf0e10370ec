"""Names below a directory, opened part by part, so that none of them leads out of it."""

import errno
import os
import re
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.core.notes.invisible import INVISIBLE_CHARACTER

NAME_BYTES_MAX = 255  # what every file system takes
PARTS_MAX = 32  # nobody files notes deeper than this, and a walk must end

# Control characters, those that nobody sees and that make a name look like another, halves of
# characters (names that are not UTF-8), and what separates names on Windows.
_FORBIDDEN_CHARS = re.compile(rf"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]|{INVISIBLE_CHARACTER}")
_WINDOWS_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"
}
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class InvalidNotePath(msgspec.Struct, frozen=True):
    """A path that is not one of a note in the folder. Nothing was read or written."""

    path: str
    reason: str


def name_fault(name: str) -> str:
    """Why nothing in the folder may be called so; empty if it may."""
    if name in {"", ".", ".."}:
        return "it has an empty part, `.` or `..` in it"
    if _FORBIDDEN_CHARS.search(name):
        return "it has a character in it that names must not have"
    if name.startswith("."):
        return f"`{name}` is a hidden name"
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"a name in it has more than {NAME_BYTES_MAX} bytes"
    if name.partition(".")[0].rstrip().casefold() in _WINDOWS_DEVICES:
        return f"`{name}` is the name of a device on Windows"
    return ""


def path_fault(path: str, *, suffix: str) -> str:
    """Why it is not a path of a file below the directory, by its words alone; empty if it is."""
    if path.startswith("/"):
        return "it is absolute"
    parts = path.split("/")
    if len(parts) > PARTS_MAX:
        return f"it has more than {PARTS_MAX} parts"
    for part in parts:
        if fault := name_fault(part):
            return fault
    return "" if path.endswith(suffix) else f"it does not end with `{suffix}`"


def first_link(root: Path, parts: Sequence[str]) -> str:
    """The first part that is a link, as a path below the root; empty if none is."""
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        try:
            found = os.lstat(os.path.join(root, path))
        except OSError:  # not there, or not to be looked at: opening it says so
            return ""
        if stat.S_ISLNK(found.st_mode):
            return path
    return ""


def open_directory(root: Path, parts: Sequence[str], *, create_missing: bool = False) -> int:
    """The directory, for the caller to close. The root may be reached through links, no part may.

    Whoever puts a link in the place of a part in the meantime gets `NotADirectoryError`.

    Args:
        root: Where the parts begin.
        parts: Names that were found sound.
        create_missing: Make what is not there, and see to it that it stays after a power failure.

    Raises:
        OSError: it is not there, is none, or cannot be opened.
    """
    if create_missing:
        root.mkdir(parents=True, exist_ok=True)
    file = os.open(root, _DIRECTORY_FLAGS)
    for part in parts:
        try:
            if create_missing:
                _make_directory(part, file)
            inner = os.open(part, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=file)
        finally:
            os.close(file)
        file = inner
    return file


@contextmanager
def opened_directory(
    root: Path, parts: Sequence[str], *, create_missing: bool = False
) -> Generator[int]:
    """The same, closed at the end.

    Raises:
        OSError: as above.
    """
    file = open_directory(root, parts, create_missing=create_missing)
    try:
        yield file
    finally:
        os.close(file)


def remove_empty_directories(root: Path, parts: Sequence[str]) -> None:
    """Remove the directory and those around it, as long as they are empty; never the root."""
    for count in range(len(parts), 0, -1):
        try:
            with opened_directory(root, parts[: count - 1]) as around:
                os.rmdir(parts[count - 1], dir_fd=around)
        except OSError:  # not empty, or not ours to remove
            return


def is_not_found(error: OSError) -> bool:
    """Whether it says that there is no such file, rather than that nobody can tell."""
    return error.errno in {errno.ENOENT, errno.ENOTDIR}


def _make_directory(name: str, parent_fd: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent_fd)
    except FileExistsError:
        return
    os.fsync(parent_fd)
