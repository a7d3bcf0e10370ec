"""The file with what triggers have done: a line for each firing, and where each has got to.

It is for people who look, and for pollers. Whether work was ordered already is not decided here but
in the log of sessions: this file may be deleted, and what was polled is then polled from now on.
"""

from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from interlock.core.ids import SessionId
from interlock.store.failures import StoreFailure
from interlock.store.sql import Value
from interlock.store.sqlite.database import SqliteDatabase

FILE = "triggers.db"
KEPT_MAX = 200
"""The firings of a trigger that are kept: strangers cause them, so their number is bounded, and
those that are rejected do not push the others out."""
FiringOutcome = Literal["ordered", "duplicate", "ignored", "skipped", "rejected", "failed"]
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS firing (
    id INTEGER PRIMARY KEY,
    place TEXT NOT NULL,
    is_rejected INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS firing_place ON firing (place, is_rejected, id);
CREATE TABLE IF NOT EXISTS cursor (place TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT;
"""
_TRIM = (
    "DELETE FROM firing WHERE place = ?1 AND is_rejected = ?2 AND id <= (SELECT id FROM firing"
    f" WHERE place = ?1 AND is_rejected = ?2 ORDER BY id DESC LIMIT 1 OFFSET {KEPT_MAX})"
)


class Firing(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One occasion on which a trigger fired, and what came of it."""

    at_ms: int
    outcome: FiringOutcome
    detail: str = ""
    name: str = ""
    """The id that the sender has given to it."""
    session: SessionId | None = None


class PollCursor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a poller or a clock has got to."""

    rhythm: str = ""
    """What it goes by: of a trigger that was changed, it begins anew."""
    since: str = ""
    """The time of the newest change that was looked at, as the forge writes it."""
    etag: str = ""
    due_ms: int = 0
    """The time of the next look, or the next time of a schedule."""


class TriggerLog:
    """The file, for one thread. `place` names a trigger among those of all projects."""

    def __init__(self, home: Path) -> None:
        """Raises `StoreFailure` if the file cannot be used."""
        self._db = SqliteDatabase.read_write(home / FILE)
        self._db.run(_SCHEMA)

    def record(self, place: str, firing: Firing) -> None:
        """Raises `StoreFailure` if it cannot be written."""
        body = msgspec.json.encode(firing)
        is_rejected = int(firing.outcome == "rejected")
        insert = "INSERT INTO firing (place, is_rejected, body) VALUES (?, ?, ?)"
        self._db.run(insert, (place, is_rejected, body))
        self._db.run(_TRIM, (place, is_rejected))

    def cursor(self, place: str) -> PollCursor:
        body = self._db.scalar("SELECT body FROM cursor WHERE place = ?", (place,))
        return msgspec.json.decode(body, type=PollCursor) if body else PollCursor()

    def move_cursor(self, place: str, cursor: PollCursor) -> None:
        """Raises `StoreFailure` if it cannot be written."""
        upsert = "INSERT INTO cursor (place, body) VALUES (?, ?) ON CONFLICT DO UPDATE SET body = ?"
        body = msgspec.json.encode(cursor)
        self._db.run(upsert, (place, body, body))

    def close(self) -> None:
        self._db.close()


def read_firings(home: Path, place: str, *, limit: int) -> list[Firing]:
    """The newest firings of a trigger, newest first; none if there is no such file."""
    select = "SELECT body FROM firing WHERE place = ? ORDER BY id DESC LIMIT ?"
    bodies = _read(home, select, (place, limit))
    with suppress(msgspec.MsgspecError):
        return [msgspec.json.decode(body, type=Firing) for body in bodies]
    return []


def read_cursor(home: Path, place: str) -> PollCursor:
    """Where a poller or a clock has got to, for whoever looks."""
    bodies = _read(home, "SELECT body FROM cursor WHERE place = ?", (place,))
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(bodies[0], type=PollCursor) if bodies else PollCursor()
    return PollCursor()


def _read(home: Path, select: str, values: tuple[Value, ...]) -> list[bytes]:
    path = home / FILE
    if not path.exists():
        return []
    with suppress(StoreFailure):
        db = SqliteDatabase.read_only(path)
        try:
            return [body for (body,) in db.rows(select, values)]
        finally:
            db.close()
    return []
