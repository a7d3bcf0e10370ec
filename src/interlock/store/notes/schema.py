"""The tables of an index, and the replacement of a file that has other tables."""

import os
from pathlib import Path

from interlock.store.failures import StoreDamaged, StoreUnusable
from interlock.store.lock import WriteLock
from interlock.store.sqlite.database import SqliteDatabase

VERSION = 1  # of the tables and of what is parsed from a file: any change needs a new one

_TABLES = f"""
CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    directory TEXT NOT NULL,
    place TEXT NOT NULL,
    title TEXT NOT NULL,
    type TEXT NOT NULL COLLATE NOCASE,
    status TEXT NOT NULL COLLATE NOCASE,
    permalink TEXT NOT NULL,
    permalink_key TEXT NOT NULL,
    front TEXT NOT NULL,
    tags TEXT NOT NULL,
    problem TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    ino INTEGER NOT NULL,
    is_racy INTEGER NOT NULL
) STRICT;
CREATE INDEX note_newest ON note (modified_ms DESC, path);
CREATE INDEX note_type ON note (type, modified_ms DESC);
CREATE TABLE observation (
    note INTEGER NOT NULL,
    nr INTEGER NOT NULL,
    line INTEGER NOT NULL,
    category TEXT NOT NULL COLLATE NOCASE,
    text TEXT NOT NULL,
    tags TEXT NOT NULL,
    context TEXT NOT NULL,
    PRIMARY KEY (note, nr)
) STRICT, WITHOUT ROWID;
CREATE INDEX observation_category ON observation (category, note);
-- Which note a link leads to is asked when it is read: what was missing may have come.
CREATE TABLE link (
    note INTEGER NOT NULL,
    nr INTEGER NOT NULL,
    line INTEGER NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    key TEXT NOT NULL,
    context TEXT NOT NULL,
    PRIMARY KEY (note, nr)
) STRICT, WITHOUT ROWID;
CREATE INDEX link_key ON link (key, note);
CREATE TABLE tag (
    tag TEXT NOT NULL,
    note INTEGER NOT NULL,
    PRIMARY KEY (tag, note)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_note ON tag (note);
CREATE TABLE key (
    key TEXT NOT NULL,
    note INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    PRIMARY KEY (key, note)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_note ON key (note);
-- Calls that change a note: the same one again is answered without doing it twice.
CREATE TABLE request (
    key TEXT PRIMARY KEY,
    arguments TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    path TEXT NOT NULL,
    before TEXT NOT NULL,
    answer BLOB NOT NULL,
    caller TEXT NOT NULL,
    is_done INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE mark (value INTEGER NOT NULL) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (
    title, tags, body, content = '', contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(8.0, 4.0, 1.0)');
PRAGMA user_version = {VERSION};
"""


def open_index(path: Path, lock: WriteLock) -> SqliteDatabase:
    """Open the index, with its tables. The caller does not hold the lock: creating them takes it.

    Raises:
        StoreFailure: it can neither be used nor be created.
    """
    db = _open_existing(path)
    if db is not None:
        return db
    with lock.hold():
        db = _open_existing(path)  # another process may have created it since
        return db if db is not None else _create_index(path)


def discard(path: Path) -> None:
    """Delete the index. The caller holds the lock, and has the files read again.

    The database first: a write-ahead file without one is ignored, the other way round it is not.
    Processes that have it open continue with a file that no longer has a name; see `is_current`.
    """
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _open_existing(path: Path) -> SqliteDatabase | None:
    """Return the index that is there, if it is one of ours and of this version."""
    if not path.exists():
        return None
    db = SqliteDatabase.read_write(path)
    try:
        if db.scalar("PRAGMA user_version") == VERSION:
            _prepare(db)
            return db
    except StoreDamaged:
        pass
    db.close()
    return None


def _create_index(path: Path) -> SqliteDatabase:
    discard(path)
    db = SqliteDatabase.read_write(path)
    _prepare(db)
    db.run("BEGIN IMMEDIATE")
    db.run(_TABLES)
    # Random, so that no mark of the file before this one comes again.
    db.run("INSERT INTO mark VALUES (?)", (int.from_bytes(os.urandom(6), "big"),))
    db.run("COMMIT")
    return db


def _prepare(db: SqliteDatabase) -> None:
    mode = db.scalar("PRAGMA journal_mode = wal")
    if mode != "wal":
        raise StoreUnusable(
            f"`{db.path}` cannot be put into WAL mode (it is in {mode})",
            "Put INTERLOCK_HOME on a local disk; network file systems do not work.",
        )
    # Whatever a power failure loses is read from the files again.
    db.run("PRAGMA synchronous = normal")
    db.run("PRAGMA temp_store = memory")
