"""Disks that fail: one answers with errors, one forgets what was not synced when the power goes."""
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportIncompatibleMethodOverride=false, reportUnknownVariableType=false

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple, Self

import apsw

Fault = Literal["error", "full", "short", "stays full"]
"""An error; no room; room for a half of it. One lasts: what comes after fails as well."""


class _Disk(apsw.VFS):
    """Connections that are opened inside a `with` lie on this disk until they are closed."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "unix")
        self._name = name

    def __enter__(self) -> Self:
        apsw.set_default_vfs(self._name)
        return self

    def __exit__(self, *_: object) -> None:
        apsw.set_default_vfs("unix")


class FaultyDisk(_Disk):
    """Works, except where it was told to fail."""

    def __init__(self) -> None:
        super().__init__("faulty")
        self._fault: Fault | None = None
        self._operations_left = 0
        self._struck: Counter[str] = Counter()

    @contextmanager
    def failing(self, operation: int, fault: Fault) -> Generator[None]:
        """The write or sync of this number fails, counted from 0."""
        self._fault, self._operations_left = fault, operation
        try:
            yield
        finally:
            self._fault = None

    def operations(self) -> Iterator[int]:
        """0, 1, 2 … as long as there was such an operation to fail."""
        for operation in count():
            before = self._struck.total()
            yield operation
            if self._struck.total() == before:
                break
        assert self._struck["write"] > 15, "anything worth testing makes more writes than that"
        assert self._struck["sync"] > 1, "a new log has its first page synced, then the commit"

    def before(self, kind: Literal["write", "sync"]) -> Fault | None:
        """How the operation that is about to be done fails, if it does."""
        left, self._operations_left = self._operations_left, self._operations_left - 1
        if left == 0 and self._fault:
            self._struck[kind] += 1
        is_due = left == 0 or (left < 0 and self._fault == "stays full")
        return self._fault if is_due else None

    def xOpen(self, name, flags):  # noqa: N802 (apsw's name)
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name, flags) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    def xWrite(self, data, offset: int) -> None:  # noqa: N802 (apsw's name)
        fault = self._disk.before("write")
        if fault == "short":
            super().xWrite(bytes(data)[: len(data) // 2], offset)
        _strike(fault, apsw.SQLITE_IOERR_WRITE)
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 (apsw's name)
        _strike(self._disk.before("write"), apsw.SQLITE_IOERR_TRUNCATE)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802 (apsw's name)
        _strike(self._disk.before("sync"), apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)


def _strike(fault: Fault | None, error: int) -> None:
    if fault:
        raise apsw.exception_for(error if fault == "error" else apsw.SQLITE_FULL)


class Change(NamedTuple):
    """One thing that SQLite did to a file. `at` is an offset, or a size to cut the file to."""

    kind: Literal["write", "truncate", "delete", "sync"]
    file: str
    at: int = 0
    data: bytes = b""


class RecordingDisk(_Disk):
    """Works, and keeps a journal of all that was done to it."""

    def __init__(self) -> None:
        super().__init__("recording")
        self.journal: list[Change] = []

    def xOpen(self, name, flags):  # noqa: N802 (apsw's name)
        return _RecordedFile(self.journal, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802, FBT001 (apsw's)
        super().xDelete(filename, syncdir)
        self.journal.append(Change("delete", Path(filename).name))


class _RecordedFile(apsw.VFSFile):
    def __init__(self, journal: list[Change], name, flags) -> None:
        self._journal = journal
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else name).name
        super().__init__("unix", name, flags)

    def xWrite(self, data, offset: int) -> None:  # noqa: N802 (apsw's name)
        super().xWrite(data, offset)
        self._journal.append(Change("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 (apsw's name)
        super().xTruncate(newsize)
        self._journal.append(Change("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 (apsw's name)
        super().xSync(flags)
        self._journal.append(Change("sync", self._name))


Kept = Callable[[Sequence[Change], Random], Iterable[Change]]
"""Which of the changes that were not synced happen to be on the disk all the same."""


def none_kept(_unsynced: Sequence[Change], _chance: Random) -> Iterable[Change]:
    return ()


def first_kept(unsynced: Sequence[Change], chance: Random) -> Iterable[Change]:
    return unsynced[: chance.randint(0, len(unsynced))]


def some_kept(unsynced: Sequence[Change], chance: Random) -> Iterable[Change]:
    """Any of them, and of some only a part. A file that is gone is gone before it comes anew."""
    for change in unsynced:
        fate = chance.choice(("kept", "torn", "lost"))
        if change.kind == "delete" or fate == "kept":
            yield change
        elif change.kind == "write" and fate == "torn":
            yield change._replace(data=change.data[: chance.randrange(len(change.data))])


class ForgetfulDisk:
    """Fed with a journal, it knows what of it must be there after a loss of power and what may."""

    def __init__(self) -> None:
        self._synced: dict[str, bytearray] = {}
        self._unsynced: list[Change] = []
        self._entered: set[str] = set()
        """The files of which the directory knows for certain."""

    def take(self, change: Change) -> None:
        if change.kind == "sync":
            # The first sync of a new file syncs the directory, and with it what was deleted there.
            syncs_directory = change.file not in self._entered
            self._entered.add(change.file)
            self._settle(change.file, deletes=syncs_directory)
            return
        if change.kind == "delete":
            self._entered.discard(change.file)
        self._unsynced.append(change)

    def lose_power(self, kept: Kept, chance: Random) -> dict[str, bytearray]:
        """The files as they may be found afterwards. Their directory entries are never lost."""
        files = {name: bytearray(content) for name, content in self._synced.items()}
        for change in kept(self._unsynced, chance):
            _apply(files, change)
        return files

    def _settle(self, file: str, *, deletes: bool) -> None:
        left: list[Change] = []
        for change in self._unsynced:
            if change.file == file:
                _apply(self._synced, change)
            elif deletes and change.kind == "delete":
                _apply(self._synced, change)
                left = [earlier for earlier in left if earlier.file != change.file]
            else:
                left.append(change)
        self._unsynced = left


def _apply(files: dict[str, bytearray], change: Change) -> None:
    if change.kind == "delete":
        files.pop(change.file, None)
        return
    content = files.setdefault(change.file, bytearray())
    content.extend(bytes(max(0, change.at - len(content))))
    if change.kind == "truncate":
        del content[change.at :]
    else:
        content[change.at : change.at + len(change.data)] = change.data
