"""What was published of a session goes with it; what stays is said."""

import fcntl
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.notes.results import NoteChangeResult
from interlock.app.protocol import deletion, gated_sessions, publish
from interlock.app.protocol.deletion import SessionDeletion
from interlock.app.protocol.publish import publish_page, publish_session
from interlock.app.refusals import NoSuchSession
from interlock.core.ids import SessionId
from interlock.core.notes.note import Metadata
from interlock.core.protocol.gated_session import Conversation
from interlock.core.views.session_note import CURRENT_SESSION_NOTE, KEEP_MARKER, SessionNotePage
from interlock.store.failures import StoreFull
from interlock.workspace.projects.notes_folder import NotesFolder
from tests.app.notes.desk import Desk
from tests.sessions import begin_recorded
from tests.unprivileged import nobody, place_of_nobody


def begun(app: App, root: Path, name: str = "c1") -> SessionId:
    opt_in(root, "standard")
    return begin_recorded(app, root, Conversation("claude-code", name)).session


def note_of(desk: Desk, session: SessionId) -> Path:
    return desk.folder / "sessions" / f"session-{session}.md"


def deleted(app: App, session: SessionId) -> tuple[str, ...]:
    """What is left of it."""
    done = deletion.delete(app, session)
    assert isinstance(done, SessionDeletion)
    assert done.session == session
    assert app.reader.stream(session) is None
    assert isinstance(deletion.delete(app, session), NoSuchSession)
    return done.leftovers


def test_nothing_is_left_where_nothing_was_in_the_way(app: App, desk: Desk) -> None:
    session = begun(app, desk.root)
    gated_sessions.change_mode(app, session, "coding", by="user", task="kestrel business")
    assert "kestrel" in note_of(desk, session).read_text()

    assert deleted(app, session) == ()

    assert not (desk.folder / "sessions").exists(), "nothing leads there"
    assert desk.found("kestrel") == []
    index = (app.home / "notes").iterdir()
    assert [path.name for path in index if b"kestrel" in path.read_bytes()] == []


def test_a_lock_that_somebody_holds_is_said_and_not_that_nothing_was_done(
    app: App, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "UNPUBLISH_LOCK_WAIT_SECONDS", 0.05)
    session = begun(app, desk.root)
    (lock,) = (app.home / "notes").glob("*.lock")

    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        left = deleted(app, session)

    first, second = left
    assert first.startswith(f"`sessions/session-{session}.md` is still there: Another process has")
    assert second.startswith(f"`{CURRENT_SESSION_NOTE}.md` is still there: ")
    assert "by hand" in first
    assert note_of(desk, session).is_file()


def test_where_nothing_was_published_nobody_waits_for_the_lock(app: App, desk: Desk) -> None:
    session = begun(app, desk.root)
    for page in (desk.folder / "sessions").iterdir():
        page.unlink()
    (lock,) = (app.home / "notes").glob("*.lock")

    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert deleted(app, session) == ()


def test_a_note_that_cannot_be_deleted_is_named_and_stays_in_the_index(
    app: App, desk: Desk
) -> None:
    assert deleted(app, begun(app, desk.root)) == ()  # all that is imported on the way is
    with place_of_nobody() as place, nobody():
        theirs = open_app(place / "home")
        other = Desk(theirs, place / "project")
        session = begun(theirs, other.root)
        (other.folder / "sessions").chmod(0o555)

        left = deleted(theirs, session)

        (other.folder / "sessions").chmod(0o755)
        other.search("anything")  # which looks at the files
        known = set(other.notes.index.indexed_files())
        theirs.close()
    path = f"sessions/session-{session}.md"
    assert left[0].startswith(f"`{path}` is still there: ")
    assert "Permission denied" in left[0]
    assert path in known


class Raced(NotesFolder):
    """Somebody writes into each note in the moment before it is deleted."""

    def delete(self, path: str, *, expected: str) -> Any:
        with (self.root / path).open("a") as file:
            file.write("\nkestrel business\n")
        return super().delete(path, expected=expected)


def test_a_note_that_somebody_writes_into_in_that_moment_stays_and_is_named(
    app: App, desk: Desk
) -> None:
    session = begun(app, desk.root)
    before = set(desk.notes.index.indexed_files())
    desk.notes.folder = Raced(desk.folder)

    left = deleted(app, session)

    assert ["somebody changed it" in one for one in left] == [True, True]
    assert note_of(desk, session).read_text().endswith("kestrel business\n")
    assert set(desk.notes.index.indexed_files()) == before


def test_words_that_stay_in_the_index_are_told_apart_from_a_note_that_stays(
    app: App, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begun(app, desk.root)

    def full(_: str) -> None:
        raise StoreFull("There is no room on the disk", "Make some.")

    monkeypatch.setattr(desk.notes.index, "erase", full)

    left = deleted(app, session)

    assert left[0].startswith(f"`sessions/session-{session}.md` is deleted, but ")
    assert "no room" in left[0]
    assert not note_of(desk, session).exists()


def test_a_note_into_which_a_person_wrote_is_named(app: App, desk: Desk) -> None:
    session = begun(app, desk.root)
    path = note_of(desk, session)
    path.write_text(path.read_text() + "\nmine\n")

    (left,) = deleted(app, session)

    assert "is still there: somebody has written into it" in left
    assert path.read_text().endswith("\nmine\n")


def test_where_nobody_can_say_where_notes_lie_that_is_said(app: App, desk: Desk) -> None:
    session = begun(app, desk.root)
    (desk.root / ".interlock" / "config.toml").write_text("[notes\n")

    (left,) = deleted(app, session)

    assert "config.toml" in left
    assert note_of(desk, session).is_file()


def test_the_pointer_to_another_session_stays(app: App, desk: Desk) -> None:
    first, second = (begun(app, desk.root, name) for name in ("c1", "c2"))
    pointer = desk.folder / f"{CURRENT_SESSION_NOTE}.md"

    assert deleted(app, first) == ()

    assert second in pointer.read_text()
    assert note_of(desk, second).is_file()
    assert deleted(app, second) == ()
    assert not pointer.exists()


def crlf(path: Path) -> None:
    """As an editor on another system saves it."""
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


def test_a_note_with_other_line_ends_neither_grows_nor_outlives_its_session(
    app: App, desk: Desk
) -> None:
    session = begun(app, desk.root)
    path = note_of(desk, session)
    for mode in ("planning", "analysis", "planning"):
        crlf(path)
        gated_sessions.change_mode(app, session, mode, by="user")
        assert path.read_text().count("# Session") == 1
        assert path.read_text().count(KEEP_MARKER) == 1
    crlf(path)

    assert deleted(app, session) == ()

    assert not path.exists()


def test_what_a_person_wrote_with_other_line_ends_is_kept_once(app: App, desk: Desk) -> None:
    session = begun(app, desk.root)
    path = note_of(desk, session)
    path.write_text(path.read_text() + "\nprecious\n")
    for mode in ("planning", "analysis"):
        crlf(path)
        gated_sessions.change_mode(app, session, mode, by="user")

    assert path.read_text().count("precious") == path.read_text().count("# Session") == 1
    assert len(deleted(app, session)) == 1
    assert "precious" in path.read_text()


def test_an_older_page_never_takes_the_place_of_a_newer_one(app: App, desk: Desk) -> None:
    session = begun(app, desk.root)
    path = note_of(desk, session)
    older = publish_session(app, session)
    assert isinstance(older, NoteChangeResult)

    def page(version: int, body: str) -> SessionNotePage:
        metadata: Metadata = {"type": "session", "version": str(version)}
        return SessionNotePage(f"sessions/session-{session}", "Title", metadata, body)

    results = [
        publish_page(app, desk.notes, page(version, body))
        for version, body in ((20, "# Twenty\n"), (9, "# Nine\n"), (20, "# Again\n"))
    ]

    assert [done.result for done in results if isinstance(done, NoteChangeResult)] == [
        "replaced",
        "unchanged",
        "replaced",
    ]
    assert "# Again" in path.read_text()
    assert publish_session(app, session) == NoteChangeResult(
        "unchanged", older.path, older.permalink, ""
    )
    assert "# Again" in path.read_text()
