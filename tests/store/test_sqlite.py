"""What is particular to the SQLite file: its schema, its lock, and how it fails."""
# pyright: reportPrivateUsage=false

import fcntl
import os
from pathlib import Path

import apsw
import pytest

from interlock.core import canonical
from interlock.store import lock
from interlock.store.failures import StoreBusy, StoreFull, StoreUnusable
from interlock.store.sqlite import schema
from interlock.store.sqlite.database import SqliteDatabase
from interlock.store.sqlite.log_database import SqliteLogDatabase, open_reader
from interlock.store.sqlite.writer import SqliteLog
from tests.scenes import after, noting, opening


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "interlock.db"


def test_a_new_file_has_the_newest_schema_and_says_whose_it_is(path: Path) -> None:
    SqliteLog(path).close()

    db = SqliteDatabase.read_only(path)
    assert db.scalar("PRAGMA user_version") == schema.VERSION
    assert db.scalar("PRAGMA application_id") == schema.APPLICATION_ID
    assert db.scalar("PRAGMA journal_mode") == "wal"


@pytest.mark.invariant("newer-store-refused")
def test_a_file_of_a_newer_interlock_is_refused_and_left_alone(path: Path) -> None:
    SqliteLog(path).close()
    db = SqliteDatabase.read_write(path)
    db.run(f"PRAGMA user_version = {schema.VERSION + 1}")
    db.close()

    with pytest.raises(StoreUnusable, match="newer Interlock"):
        SqliteLog(path)
    with pytest.raises(StoreUnusable, match="newer Interlock"):
        open_reader(path)


@pytest.mark.invariant("newer-store-refused")
def test_a_process_writes_nothing_to_a_file_that_a_newer_one_has_brought_forward(
    path: Path,
) -> None:
    log = SqliteLog(path)
    log.append(opening())
    other = SqliteDatabase.read_write(path)
    other.run(f"PRAGMA user_version = {schema.VERSION + 1}")

    with pytest.raises(StoreUnusable, match="newer Interlock"):
        log.append(noting(after(opening()), "n"))

    assert other.scalar("SELECT count(*) FROM event") == len(opening().links)
    other.run(f"PRAGMA user_version = {schema.VERSION}")
    assert log.append(noting(after(opening()), "n"))


def test_somebody_elses_database_is_not_touched(path: Path) -> None:
    db = SqliteDatabase.read_write(path)
    db.run("CREATE TABLE theirs (x)")
    db.close()

    with pytest.raises(StoreUnusable, match="not an Interlock store"):
        SqliteLog(path)

    assert SqliteDatabase.read_only(path).scalar("SELECT name FROM sqlite_schema") == "theirs"


def test_a_file_that_is_no_database_is_said_to_be_damaged(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)

    with pytest.raises(StoreUnusable, match="damaged"):
        SqliteLog(path)


def test_a_reader_cannot_write(path: Path) -> None:
    SqliteLog(path).close()
    db = SqliteLogDatabase.read_only(path)

    with pytest.raises(StoreUnusable):
        list(db.read("DELETE FROM stream"))


def test_a_commit_is_synced_before_it_is_acknowledged(path: Path) -> None:
    log = SqliteLog(path)

    assert log._db.scalar("PRAGMA synchronous") == 2  # FULL


def test_a_failed_append_leaves_the_connection_usable(path: Path) -> None:
    log = SqliteLog(path)
    log.append(opening())
    log._db.run("PRAGMA max_page_count = 1")  # as good as a full disk
    with pytest.raises(StoreFull):
        log.append(noting(after(opening()), "x" * 100_000))
    log._db.run("PRAGMA max_page_count = 1000000")

    assert log.append(noting(after(opening()), "goes on"))


def test_waiting_behind_a_stuck_process_ends_with_its_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "WAIT_SECONDS_MAX", 0.05)
    log = SqliteLog(path)
    stuck = os.open(path.with_name("interlock.db.lock"), os.O_RDWR)
    fcntl.flock(stuck, fcntl.LOCK_EX)

    with pytest.raises(StoreBusy, match=r"interlock\.db\.lock"):
        log.append(opening())

    os.close(stuck)
    assert log.append(opening())


def test_a_damaged_blob_is_noticed_when_it_is_read(path: Path) -> None:
    log = SqliteLog(path)
    ref = canonical.blob_ref(b"prompt")
    log.append(opening())
    log.append(noting(after(opening()), "one", blobs={ref: b"prompt"}))
    log._db.run("UPDATE blob SET content = zeroblob(3)")

    assert log.blob(ref) == b"prompt", "what was written a moment ago is still known"
    with pytest.raises(StoreUnusable, match="damaged"):
        log.stored_blob(ref)
    with pytest.raises(StoreUnusable, match="damaged"):
        open_reader(path).blob(ref)


def test_the_linked_sqlite_does_not_have_the_wal_reset_bug() -> None:
    assert apsw.SQLITE_VERSION_NUMBER >= 3_051_003
