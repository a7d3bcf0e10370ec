"""The gate's own small file: what each session may do, readable before every tool call.

Starting a session writes its row again from the events. The file is a database of its own with a
rollback journal, so that a hook can read it with nothing but Python's own `_sqlite3` and without
write-ahead files beside it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from interlock.core.gate.state import MODES, GateRow, GateState, UnknownState
from interlock.store.failures import StoreUnusable
from interlock.store.private import create_private_file

FILE = "gate.db"
BUSY_MS = 200  # a hook waits no longer; the writers finish in a millisecond

_VERSION = 5  # of the columns: a file with another version is recreated, its sessions unknown
_SCHEMA = f"""
DROP TABLE IF EXISTS gate;
DROP TABLE IF EXISTS reservation;
DROP TABLE IF EXISTS published;
CREATE TABLE gate (
    host TEXT NOT NULL,
    host_session TEXT NOT NULL,
    session TEXT NOT NULL,
    root TEXT NOT NULL,
    mode TEXT NOT NULL,
    is_started INTEGER NOT NULL,
    task TEXT NOT NULL,
    may_code INTEGER NOT NULL,
    version INTEGER NOT NULL,
    is_simple INTEGER NOT NULL,
    watched TEXT NOT NULL,
    project TEXT NOT NULL,
    has_news INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (host, host_session)
) WITHOUT ROWID;
-- What those who work on a project have reserved, and which entry of its stream that is from.
CREATE TABLE reservation (
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    content TEXT NOT NULL,
    until_ms INTEGER NOT NULL
);
CREATE INDEX reservation_project ON reservation (project);
CREATE TABLE published (project TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""


class PublishedRow(msgspec.Struct, frozen=True):
    """A row of the gate, under the name by which a hook looks for it."""

    host: str
    host_session: str
    row: GateRow
    is_simple: bool
    """Whether the mode and the class of a tool alone decide, as far as the policy goes."""


def publish_rows(home: Path, rows: list[PublishedRow]) -> None:
    """Publish rows; an older version never replaces a newer one.

    Raises:
        StoreUnusable: they cannot be written. The gate goes by the rows it had before.
    """

    def upsert_rows(db: Any) -> None:
        for published in rows:
            row = published.row
            db.execute(
                "INSERT INTO gate VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
                " ON CONFLICT (host, host_session) DO UPDATE SET session = excluded.session,"
                " root = excluded.root, mode = excluded.mode, is_started = excluded.is_started,"
                " task = excluded.task, may_code = excluded.may_code, version = excluded.version,"
                " is_simple = excluded.is_simple, watched = excluded.watched,"
                " project = excluded.project"
                " WHERE gate.session != excluded.session OR gate.version <= excluded.version",
                (
                    published.host,
                    published.host_session,
                    row.session,
                    row.root,
                    row.mode,
                    int(row.is_started),
                    row.task,
                    int(row.may_code),
                    row.version,
                    int(published.is_simple),
                    row.watched,
                    row.project,
                ),
            )

    write_transaction(home / FILE, upsert_rows)


def renew_stamps(
    home: Path, host: str, host_session: str, watched: str, *, is_simple: bool
) -> None:
    """Note that the watched files were looked at, and are as they were left.

    Raises:
        StoreUnusable: it cannot be written.
    """
    write_transaction(
        home / FILE,
        lambda db: db.execute(
            "UPDATE gate SET watched = ?, is_simple = ? WHERE (host, host_session) = (?, ?)",
            (watched, int(is_simple), host, host_session),
        ),
    )


def withdraw_session(home: Path, session: str) -> None:
    """Remove the rows of a session that has ended or is deleted: it is then unknown."""
    path = home / FILE
    if path.exists():
        write_transaction(
            path, lambda db: db.execute("DELETE FROM gate WHERE session = ?", (session,))
        )


def withdraw_conversation(home: Path, host: str, host_session: str) -> None:
    """Remove the row of a conversation that has ended before anything was recorded of it."""
    write_transaction(
        home / FILE,
        lambda db: db.execute(
            "DELETE FROM gate WHERE (host, host_session) = (?, ?)", (host, host_session)
        ),
    )


def write_transaction(path: Path, change: Callable[[Any], object]) -> None:
    """Change the file as a whole.

    Raises:
        StoreUnusable: it cannot be written.
    """
    try:
        try:
            _write_transaction_once(path, change)
        except (apsw.NotADBError, apsw.CorruptError):
            # Nothing is lost with the file: its rows come from the events.
            path.with_name(f"{FILE}-journal").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            _write_transaction_once(path, change)
    except (apsw.Error, OSError) as error:
        # The store may be elsewhere, and sound: then the change is recorded there.
        raise StoreUnusable(
            f"`{path}` cannot be written: {error}",
            "The gate goes by what it knew before. Make room, or make the directory writable, then"
            " repeat the command.",
        ) from error


def _write_transaction_once(path: Path, change: Callable[[Any], object]) -> None:
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    create_private_file(path)
    db: Any = apsw.Connection(str(path))
    try:
        os.chmod(path, 0o600)  # an existing file may have been restored from a backup
        db.set_busy_timeout(BUSY_MS * 10)
        db.execute("PRAGMA secure_delete = on")  # what a row says about the work is erased with it
        db.execute("BEGIN IMMEDIATE")
        if db.pragma("user_version") != _VERSION:
            db.execute(_SCHEMA)
        change(db)
        db.execute("COMMIT")
    finally:
        db.close()


def read_state(home: Path, host: str, host_session: str) -> GateState:
    """Return what a session may do. Any failure is an `UnknownState`, with the reason."""
    key = "host = ? AND host_session = ?"
    rows = _select_rows(home / FILE, key, (host, host_session))
    if isinstance(rows, UnknownState):
        return rows
    if not rows:
        return UnknownState("this conversation has no open session")
    row = rows[0].row
    return row if row.mode in MODES else UnknownState(f"the mode `{row.mode}` is not known")


def list_rows(home: Path) -> list[PublishedRow]:
    """Return the row of every conversation that the gate knows; none if they cannot be read."""
    rows = _select_rows(home / FILE, "true", ())
    return [] if isinstance(rows, UnknownState) else rows


def _select_rows(
    path: Path, condition: str, values: tuple[str, ...]
) -> list[PublishedRow] | UnknownState:
    if not path.exists():
        return UnknownState("no session was ever started")
    if not path.is_file():  # opening a pipe would wait for ever
        return UnknownState(f"{path} is not a file")
    try:
        db: Any = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            db.set_busy_timeout(BUSY_MS)
            found = db.execute(
                "SELECT host, host_session, is_simple, session, mode, is_started, task, may_code,"
                f" version, root, watched, project FROM gate WHERE {condition}",
                values,
            ).fetchall()
        finally:
            db.close()
    except apsw.Error as error:
        return UnknownState(f"{path} cannot be read: {error}")
    return [
        PublishedRow(
            host,
            name,
            GateRow(session, mode, bool(is_started), task, bool(may_code), *rest),
            bool(is_simple),
        )
        for host, name, is_simple, session, mode, is_started, task, may_code, *rest in found
    ]
