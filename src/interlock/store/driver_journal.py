"""The file in which a driver keeps its journal: one writer, the driver that has the lease.

It can be deleted while no driver runs: sessions then go on at the step that is pending. Every entry
is synced before the driver acts on it. The epoch of the driver's lease is in the file, and each
write checks it: a driver that was stopped for long cannot go on behind the back of another.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.core.ids import SessionId
from interlock.core.unattended.journal import Entry, JournalEntry, decode_entry
from interlock.store.failures import LeaseLost, StoreFailure
from interlock.store.sqlite.database import SqliteDatabase

JOURNAL_FILE = "driver.db"
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS owner (one INTEGER PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS entry (
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
"""
_APPEND = (
    "INSERT INTO entry (session, seq, at_ms, body)"
    " SELECT ?, ?, ?, ? FROM owner WHERE epoch = ? RETURNING seq"
)
_ENTRIES = "SELECT seq, at_ms, body FROM entry WHERE session = ? AND seq >= ? ORDER BY seq LIMIT ?"


class DriverJournal:
    """The journal, for the driver whose lease has this epoch."""

    def __init__(self, home: Path, *, epoch: int) -> None:
        """Raises `StoreFailure` if the file cannot be used, `LeaseLost` if it is another's."""
        self._epoch = epoch
        self._db = SqliteDatabase.read_write(home / JOURNAL_FILE)
        self._db.run(_SCHEMA)
        self._db.run(
            "INSERT INTO owner (one, epoch) VALUES (1, ?)"
            " ON CONFLICT (one) DO UPDATE SET epoch = max(epoch, excluded.epoch)",
            (epoch,),
        )
        if (newest := self._db.scalar("SELECT epoch FROM owner")) != epoch:
            self.close()
            raise LeaseLost(f"the journal belongs to epoch {newest}, not {epoch}")

    def append(self, session: SessionId, seq: int, entry: Entry, *, at_ms: int) -> None:
        """Append the entry with this number, and return when it is on the disk.

        Raises:
            LeaseLost: another driver writes here now.
            StoreFailure: it cannot be written; nothing was.
        """
        body = msgspec.json.encode(entry)
        if self._db.row(_APPEND, (session, seq, at_ms, body, self._epoch)) is None:
            raise LeaseLost(f"the journal is not that of epoch {self._epoch} any more")

    def entries(self, session: SessionId) -> list[JournalEntry]:
        """The entries of a session, oldest first."""
        return list(_read(self._db, session, 0, -1))

    def close(self) -> None:
        self._db.close()


def read_journal(
    home: Path, session: SessionId, *, first: int = 0, limit: int = -1
) -> list[JournalEntry]:
    """The entries of a session for whoever looks, from number `first` on; negative: the last ones.

    None if there is no journal, or none that can be read: it is a convenience to look at.
    """
    path = home / JOURNAL_FILE
    if not path.exists():
        return []
    with suppress(StoreFailure, msgspec.MsgspecError):
        db = SqliteDatabase.read_only(path)
        try:
            if first < 0:
                end = db.scalar("SELECT max(seq) FROM entry WHERE session = ?", (session,))
                first = max(0, (-1 if end is None else end) + 1 + first)
            return list(_read(db, session, first, limit))
        finally:
            db.close()
    return []


def forget_journal(home: Path, session: SessionId) -> None:
    """Remove the entries of a session that is deleted. A driver that works on it has lost it."""
    path = home / JOURNAL_FILE
    if not path.exists():
        return
    with suppress(StoreFailure):  # then they stay: nobody finds them any more
        db = SqliteDatabase.read_write(path)
        try:
            db.run("DELETE FROM entry WHERE session = ?", (session,))
        finally:
            db.close()


def _read(db: SqliteDatabase, session: SessionId, first: int, limit: int) -> Iterator[JournalEntry]:
    for seq, at_ms, body in db.rows(_ENTRIES, (session, first, limit)):
        yield JournalEntry(seq, at_ms, decode_entry(body))
