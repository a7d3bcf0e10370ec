"""A watch that tells whether anything below a folder has changed since it was last scanned.

Scanning 10,000 files takes a tenth of a second; asking inotify takes microseconds, and whatever was
written before the question is in the answer. Where there is no inotify, or not enough of it, the
answer is always that something may have changed.
"""

import os
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

# From <sys/inotify.h>; the same on every Linux.
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, getattr(os, "O_CLOEXEC", 0)
_MODIFY, _ATTRIB, _MOVED, _CREATE, _DELETE = 0x2, 0x4, 0x40 | 0x80, 0x100, 0x200
_GONE, _ONLY_DIRECTORIES, _NO_LINKS = 0x400 | 0x800, 0x1000000, 0x2000000
_MASK = _MODIFY | _ATTRIB | _MOVED | _CREATE | _DELETE | _GONE | _ONLY_DIRECTORIES | _NO_LINKS
_HEADER = 16
_READ_BYTES = 64 * 1024


class Watch:
    def __init__(self, root: Path) -> None:
        self._descriptor = -1
        self._root = os.fspath(root)
        self.is_complete = False
        """Whether every directory is watched; False before the watch is armed."""
        self._is_dirty = True
        self._watched_directories: dict[int, str] = {}
        self._armed_identity: tuple[int, int] | None = None
        self._libc: Any = _load_libc()
        self._descriptor = self._libc.inotify_init1(_NONBLOCK | _CLOEXEC) if self._libc else -1

    def arm(self) -> None:
        """Notice changes from here on. Call it before a scan, or something is missed."""
        if self._descriptor < 0:
            return
        for _ in self._read_events():
            pass  # earlier changes are about to be scanned
        self._armed_identity = self._root_identity()
        self.is_complete = all(self._add_watch(directory) for directory in _directories(self._root))
        self._is_dirty = not self.is_complete

    def is_quiet(self) -> bool:
        """Whether surely nothing has changed since `arm`. Hidden files do not count."""
        self.acknowledge_own_writes(())
        # The directories above the folder are not watched, and one may have been moved.
        return not self._is_dirty and self._root_identity() == self._armed_identity

    def acknowledge_own_writes(self, paths: Container[str]) -> None:
        """Disregard what has happened to these paths so far: we did it ourselves."""
        if self._descriptor < 0:
            return
        for directory, name in self._read_events():
            path = f"{directory}/{name}" if directory else name
            if not name.startswith(".") and path not in paths:
                self._is_dirty = True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        # A user has 128 of these: a forgotten one is given back.
        self.close()

    def _root_identity(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._root)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _add_watch(self, directory: str) -> bool:
        path = os.fsencode(os.path.join(self._root, directory))
        number = self._libc.inotify_add_watch(self._descriptor, path, _MASK)
        if number >= 0:
            self._watched_directories[number] = directory
        return number >= 0

    def _read_events(self) -> Iterator[tuple[str, str]]:
        """Yield directory and name of each event; the name is empty for a directory itself."""
        while True:
            try:
                events = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(events):
                number = int.from_bytes(events[at : at + 4], sys.byteorder, signed=True)
                length = int.from_bytes(events[at + 12 : at + _HEADER], sys.byteorder)
                name = events[at + _HEADER : at + _HEADER + length].rstrip(b"\0")
                # An overflow of the queue has no number that we know: it may be about anything.
                yield self._watched_directories.get(number, ""), os.fsdecode(name)
                at += _HEADER + length


def _load_libc() -> Any:
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 (10 ms, and only notes need it)

    libc = ctypes.CDLL(None, use_errno=True)
    return libc if hasattr(libc, "inotify_init1") else None


def _directories(root: str) -> Iterator[str]:
    """Yield the root and all directories below it, without hidden ones; links are not followed."""
    pending = [""]
    while pending:
        directory = pending.pop()
        yield directory
        try:
            with os.scandir(os.path.join(root, directory)) as entries:
                for entry in entries:
                    if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                        pending.append(f"{directory}/{entry.name}" if directory else entry.name)
        except OSError:
            continue  # it cannot be watched either: the watch is then incomplete
