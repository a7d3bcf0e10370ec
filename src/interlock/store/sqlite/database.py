"""One connection to a SQLite file, with its errors translated into failures of a store.

apsw's type stubs name `Buffer`, which Python has since 3.12; under 3.11 its methods are partly
unknown to the checker. They are called here and nowhere else.
"""
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import apsw

from interlock.store.failures import StoreBusy, StoreDamaged, StoreFailure, StoreFull, StoreUnusable
from interlock.store.private import create_private_file
from interlock.store.sql import Value

# Older ones can corrupt a WAL file that several processes write (sqlite.org, WAL-reset bug).
SQLITE_VERSION_MIN = 3_051_003
BUSY_MS = 5_000


class SqliteDatabase:
    def __init__(self, path: Path, *, flags: int) -> None:
        assert apsw.SQLITE_VERSION_NUMBER >= SQLITE_VERSION_MIN, (
            f"SQLite {apsw.sqlite_lib_version()} is too old; apsw should bring 3.51.3 or newer"
        )
        self.path = path
        try:
            self._connection = apsw.Connection(str(path), flags=flags)
            self._connection.set_busy_timeout(BUSY_MS)
        except apsw.Error as error:
            raise _translate(error, path) from error

    @classmethod
    def read_only(cls, path: Path) -> Self:
        return cls(path, flags=apsw.SQLITE_OPEN_READONLY)

    @classmethod
    def read_write(cls, path: Path) -> Self:
        """Open the file, created if needed. SQLite gives the files beside it the same mode."""
        create_private_file(path)
        return cls(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)

    @property
    def is_in_transaction(self) -> bool:
        return self._connection.in_transaction

    def add_function(self, name: str, function: Callable[..., int]) -> None:
        """Let statements of this connection call `function`."""
        self._connection.create_scalar_function(name, function)

    def run(self, sql: str, values: Sequence[Value] = ()) -> None:
        try:
            # Read to the end, here and below: a later error would be lost with the cursor.
            self._connection.execute(sql, values or None).fetchall()
        except apsw.Error as error:
            raise _translate(error, self.path) from error

    def row(self, sql: str, values: Sequence[Value] = ()) -> tuple[Any, ...] | None:
        first, *_ = (*self.rows(sql, values), None)
        return first

    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(sql, values)
        except apsw.Error as error:
            raise _translate(error, self.path) from error

    def scalar(self, sql: str, values: Sequence[Value] = ()) -> Any:
        row = self.row(sql, values)
        return row[0] if row else None

    def close(self) -> None:
        self._connection.close()


def _translate(error: apsw.Error, path: Path) -> StoreFailure:
    match error:
        case apsw.FullError():
            return StoreFull(
                f"The disk that holds `{path}` is full",
                "Free some space and repeat the call: it is recorded once.",
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(
                f"`{path}` is locked by another process",
                "Nothing was written. Repeat the call; if it stays so, look for a stopped process.",
            )
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreUnusable(
                f"`{path}` cannot be opened for this: {error}",
                "Check that the file and its directory exist and belong to you.",
            )
        # No statement of ours breaks a constraint unless the tables have been tampered with.
        case apsw.CorruptError() | apsw.NotADBError() | apsw.ConstraintError():
            return StoreDamaged(
                f"`{path}` is damaged: {error}",
                "Nothing was changed. `interlock store verify` shows what can still be read.",
            )
        case _:
            return StoreUnusable(
                f"`{path}` could not be read or written: {error}",
                "Check the disk, then repeat the call: it is recorded once.",
            )
