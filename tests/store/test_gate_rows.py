"""The gate's own file: written, read, and made anew where it is of no use."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.core.gate.state import GateRow, UnknownState
from interlock.store import gate_rows
from interlock.store.failures import StoreUnusable
from interlock.store.gate_rows import PublishedRow


@pytest.fixture
def place(home: Path) -> Path:
    home.mkdir(parents=True)
    return home


def published(name: str, *, version: int = 1, session: str = "ses_1") -> PublishedRow:
    row = GateRow(
        session, "coding", is_started=True, task="T", version=version, root="/p", watched="1 2"
    )
    return PublishedRow("claude-code", name, row, is_simple=True)


def columns(place: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(place / gate_rows.FILE) as db:
        found = db.execute("SELECT host_session, version, is_simple, watched FROM gate").fetchall()
    db.close()
    return found


def test_what_was_published_is_read_until_it_is_withdrawn(place: Path) -> None:
    gate_rows.publish_rows(place, [published("a"), published("b", session="ses_2")])

    assert gate_rows.read_state(place, "claude-code", "a") == published("a").row
    assert columns(place) == [("a", 1, 1, "1 2"), ("b", 1, 1, "1 2")]
    gate_rows.withdraw_session(place, "ses_1")
    assert isinstance(gate_rows.read_state(place, "claude-code", "a"), UnknownState)
    assert gate_rows.read_state(place, "claude-code", "b") == published("b", session="ses_2").row


def test_an_older_version_does_not_replace_a_newer_one(place: Path) -> None:
    gate_rows.publish_rows(place, [published("a", version=2)])
    gate_rows.publish_rows(place, [published("a", version=1)])

    assert columns(place) == [("a", 2, 1, "1 2")]
    gate_rows.publish_rows(place, [published("a", version=1, session="ses_2")])
    assert columns(place) == [("a", 1, 1, "1 2")], "of another session"


def older(path: Path) -> None:
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE gate (host, host_session, session, root, mode, is_started, task, version,"
            " is_simple, PRIMARY KEY (host, host_session)) WITHOUT ROWID"
        )
        row = ("claude-code", "a", "ses_1", "/p", "coding", 1, "", 1, 1)
        db.execute("INSERT INTO gate VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.close()


def corrupt(path: Path) -> None:
    path.write_bytes(b"this is no database" * 100)
    path.with_name(f"{path.name}-journal").write_bytes(b"nor is this a journal")


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + bytes(4096))


@pytest.mark.parametrize("harm", [older, corrupt, torn])
def test_a_file_of_another_time_or_in_pieces_is_unknown_and_the_next_writer_makes_it_anew(
    place: Path, harm: Callable[[Path], None]
) -> None:
    gate_rows.publish_rows(place, [published("a"), published("b")])
    harm(place / gate_rows.FILE)
    assert isinstance(gate_rows.read_state(place, "claude-code", "a"), UnknownState)

    gate_rows.publish_rows(place, [published("b")])

    assert gate_rows.read_state(place, "claude-code", "b") == published("b").row
    assert isinstance(gate_rows.read_state(place, "claude-code", "a"), UnknownState)
    harm(place / gate_rows.FILE)
    gate_rows.withdraw_session(place, "ses_1")
    assert columns(place) == []


def test_a_file_that_cannot_be_written_is_named(place: Path) -> None:
    """The store may be elsewhere, and sound: then this is the first that fails."""
    (place / gate_rows.FILE).mkdir()

    with pytest.raises(StoreUnusable, match=r"gate\.db` cannot be written") as failed:
        gate_rows.publish_rows(place, [published("talk-1")])

    assert "repeat the command" in failed.value.hint
