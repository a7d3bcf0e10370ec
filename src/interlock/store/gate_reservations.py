"""What others have reserved, and who has news, in the small file that hooks read.

It is written after each change of a project's stream, by whoever made it on this machine. Losing it
loses nothing but a warning: the stream has it all, and the next change writes it again.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from interlock.core.coordination.foreign_reservation import ForeignReservation
from interlock.store.gate_rows import BUSY_MS, FILE, write_transaction


def is_watching(home: Path, project: str) -> bool:
    """Whether a conversation in this project is under the gate, so that somebody would read it."""
    return bool(_select(home, "SELECT 1 FROM gate WHERE project = ? LIMIT 1", (project,)))


def published_seq(home: Path, project: str) -> int:
    """The entry of the project's stream that the reservations are from; 0 if there are none."""
    rows = _select(home, "SELECT seq FROM published WHERE project = ?", (project,))
    return rows[0][0] if rows else 0


def publish_reservations(
    home: Path, project: str, reservations: Sequence[ForeignReservation], *, seq: int
) -> None:
    """Publish all reservations of a project, unless those of a later entry are there.

    Raises:
        StoreUnusable: they cannot be written.
    """

    def replace(db: Any) -> None:
        newest = db.execute("SELECT seq FROM published WHERE project = ?", (project,)).fetchone()
        if newest and newest[0] > seq:
            return
        db.execute("INSERT OR REPLACE INTO published VALUES (?, ?)", (project, seq))
        db.execute("DELETE FROM reservation WHERE project = ?", (project,))
        for one in reservations:
            content = msgspec.json.encode(one).decode()
            values = (project, one.session, content, one.until_ms)
            db.execute("INSERT INTO reservation VALUES (?, ?, ?, ?)", values)

    write_transaction(home / FILE, replace)


def reservations_of_others(
    home: Path, project: str, session: str, *, now_ms: int
) -> list[ForeignReservation]:
    """The reservations of a project that are not the session's; none if they cannot be read."""
    sql = "SELECT content FROM reservation WHERE project = ? AND session != ? AND until_ms > ?"
    rows = _select(home, sql, (project, session, now_ms))
    return [msgspec.json.decode(content, type=ForeignReservation) for (content,) in rows]


def mark_news(home: Path, sessions: Sequence[str]) -> None:
    """Let the hooks of these sessions know that there is something to tell.

    Raises:
        StoreUnusable: it cannot be written.
    """
    marks = ", ".join("?" * len(sessions))
    sql = f"UPDATE gate SET has_news = 1 WHERE session IN ({marks})"
    write_transaction(home / FILE, lambda db: db.execute(sql, tuple(sessions)))


def clear_news(home: Path, session: str) -> None:
    """All is about to be told. Nothing is written if there was no mark.

    Raises:
        StoreUnusable: it cannot be written.
    """
    if not _select(home, "SELECT 1 FROM gate WHERE session = ? AND has_news", (session,)):
        return
    sql = "UPDATE gate SET has_news = 0 WHERE session = ?"
    write_transaction(home / FILE, lambda db: db.execute(sql, (session,)))


def has_news(home: Path, host: str, host_session: str) -> bool:
    sql = "SELECT 1 FROM gate WHERE (host, host_session) = (?, ?) AND has_news"
    return bool(_select(home, sql, (host, host_session)))


def record_warning(home: Path, session: str, subjects: Sequence[str]) -> bool:
    """Record warnings; return whether one of the subjects is new to the session.

    Of several processes at the same moment, one is told so.

    Raises:
        StoreUnusable: it cannot be recorded.
    """
    marks = ", ".join("?" * len(subjects))
    sql = f"SELECT count(*) FROM warned WHERE session = ? AND subject IN ({marks})"
    if _select(home, sql, (session, *subjects)) == [(len(set(subjects)),)]:
        return False  # nothing is written, so this works on a full disk too
    new_count = 0

    def insert(db: Any) -> None:
        nonlocal new_count
        # Not in the schema: a new schema version would forget the sessions.
        db.execute(
            "CREATE TABLE IF NOT EXISTS warned (session TEXT, subject TEXT,"
            " PRIMARY KEY (session, subject)) WITHOUT ROWID"
        )
        db.execute("DELETE FROM warned WHERE session NOT IN (SELECT session FROM gate)")
        for subject in subjects:
            db.execute("INSERT OR IGNORE INTO warned VALUES (?, ?)", (session, subject))
            new_count += db.changes()

    write_transaction(home / FILE, insert)
    return new_count > 0


def _select(home: Path, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    path = home / FILE
    if not path.is_file():
        return []
    try:
        db: Any = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            db.set_busy_timeout(BUSY_MS)
            return db.execute(sql, values).fetchall()
        finally:
            db.close()
    except apsw.Error:
        return []
