"""Paths below a directory, checked and opened part by part, so that none of them leads out."""

import errno
import os
import re
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from interlock.core.notes.invisible import INVISIBLE_CHARACTER

NAME_BYTES_MAX = 255  # every file system accepts that much
PARTS_MAX = 32  # nobody files notes deeper than this, and a walk must end

# Control characters, invisible ones that make a name look like another, lone surrogates (from names
# that are not UTF-8), and the separator of names on Windows.
_FORBIDDEN_CHARS = re.compile(rf"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]|{INVISIBLE_CHARACTER}")
_WINDOWS_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"
}
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The names in a directory on the way need not be readable.
_WAY_FLAGS = _DIRECTORY_FLAGS | getattr(os, "O_PATH", 0)


class InvalidNotePath(msgspec.Struct, frozen=True):
    """A path that cannot be that of a note in the folder. Nothing was read or written."""

    path: str
    reason: str


def name_fault(name: str) -> str:
    """Return why nothing in the folder may have this name; empty if it may."""
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
    """Return why the text is not the path of a file below the directory; empty if it is."""
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
    """Return the first part that is a link, as a path below the root; empty if none is."""
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        try:
            status = os.lstat(os.path.join(root, path))
        except OSError:  # it does not exist or cannot be looked at: opening it reports that
            return ""
        if stat.S_ISLNK(status.st_mode):
            return path
    return ""


def open_directory(root: Path, parts: Sequence[str], *, create_missing: bool = False) -> int:
    """Open the directory, for the caller to close. No link is followed, not even above the root.

    A caller has found no link there; one that was made since leads to `NotADirectoryError`.

    Args:
        root: The directory in which the parts begin: an absolute path without links.
        parts: Names without a fault.
        create_missing: Create the directories that are missing, and make them survive a power
            failure.

    Raises:
        OSError: it does not exist, is not a directory, or cannot be opened.
    """
    names = (*root.parts[1:], *parts)
    descriptor = os.open(root.anchor, _WAY_FLAGS)
    for number, name in enumerate(names, start=1):
        flags = _DIRECTORY_FLAGS if number == len(names) else _WAY_FLAGS
        try:
            inner = _open_inner(name, flags, descriptor, create_missing=create_missing)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


@contextmanager
def opened_directory(
    root: Path, parts: Sequence[str], *, create_missing: bool = False
) -> Generator[int]:
    """Hold the directory of `open_directory` open, and close it at the end.

    Raises:
        OSError: as there.
    """
    descriptor = open_directory(root, parts, create_missing=create_missing)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove_empty_directories(root: Path, parts: Sequence[str]) -> None:
    """Remove the directory and its parents, as long as they are empty; never the root."""
    for count in range(len(parts), 0, -1):
        try:
            with opened_directory(root, parts[: count - 1]) as parent:
                os.rmdir(parts[count - 1], dir_fd=parent)
        except OSError:  # not empty, or not ours to remove
            return


def is_not_found(error: OSError) -> bool:
    """Whether the error says that there is no such file, rather than that nobody can tell."""
    return error.errno in {errno.ENOENT, errno.ENOTDIR}


def _open_inner(name: str, flags: int, parent_fd: int, *, create_missing: bool) -> int:
    try:
        return os.open(name, flags, dir_fd=parent_fd)
    except FileNotFoundError:
        if not create_missing:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent_fd)
        parent = os.open(".", _DIRECTORY_FLAGS, dir_fd=parent_fd)
        os.fsync(parent)
        os.close(parent)
    return os.open(name, flags, dir_fd=parent_fd)
