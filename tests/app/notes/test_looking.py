"""When the files are looked at: at the next use after any change, and in vain hardly ever."""

import fcntl
import time
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.notes import project_notes
from interlock.app.notes.project_notes import WATCHED_RESCAN_SECONDS
from interlock.core.notes import edits
from interlock.store.failures import StoreBusy
from interlock.workspace.files import atomic_file
from interlock.workspace.files.folder_watch import Watch
from interlock.workspace.projects.notes_folder import NotesFolder
from tests.app.notes.desk import Desk


def test_what_could_not_be_taken_in_is_taken_in_the_next_time(app: App, desk: Desk) -> None:
    desk.file("a.md", "text")
    assert desk.found("text") == ["a.md"]
    desk.file("b.md", "text")
    (lock,) = (app.home / "notes").glob("*.lock")

    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreBusy):
            desk.notes.refresh(app, seconds_max=0)

    assert sorted(desk.found("text")) == ["a.md", "b.md"]


def test_what_there_was_no_time_for_is_read_at_the_next_use(app: App, desk: Desk) -> None:
    for number in range(3):
        desk.file(f"{number}.md", "text")

    assert desk.notes.refresh(app, seconds_max=0).pending == 2

    assert len(desk.found("text")) == 3


def test_who_saves_a_file_in_the_moment_of_our_change_is_noticed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.file("n.md", "text\n")
    whole = atomic_file.replace_file

    def an_editor_comes_after(*arguments: Any) -> Any:
        written = whole(*arguments)
        path.write_text("by an editor\n")
        return written

    with monkeypatch.context() as moment:
        moment.setattr(atomic_file, "replace_file", an_editor_comes_after)
        desk.edit("n", edits.Append("line"))

    assert desk.found("editor") == ["n.md"]


def test_a_file_that_comes_back_before_its_row_is_removed_keeps_it(
    app: App, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.file("n.md", "text\n")
    assert desk.found("text") == ["n.md"]
    scan = NotesFolder.scan

    def git_is_at_work(folder: NotesFolder) -> Any:
        path.unlink()
        found = scan(folder)
        path.write_text("text\n")
        return found

    desk.notes.mark_stale()
    with monkeypatch.context() as moment:
        moment.setattr(NotesFolder, "scan", git_is_at_work)
        assert desk.notes.refresh(app).removed == 0

    assert desk.notes.index.by_path("n.md")


def _says_nothing(_: Watch) -> bool:
    return True


def test_what_nobody_told_of_is_noticed_after_a_while(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that another machine writes to, for one."""
    desk.file("n.md", "text\n")
    now = [0.0]
    monkeypatch.setattr(project_notes.time, "monotonic", lambda: now[0])
    desk.notes.mark_stale()
    assert desk.found("text") == ["n.md"]
    monkeypatch.setattr(Watch, "is_quiet", _says_nothing)

    desk.file("m.md", "text\n")

    assert desk.found("text") == ["n.md"], "this test would prove nothing otherwise"
    now[0] += WATCHED_RESCAN_SECONDS + 1
    assert sorted(desk.found("text")) == ["m.md", "n.md"]


def test_a_writer_at_work_keeps_no_reader_waiting(app: App, desk: Desk) -> None:
    desk.file("n.md", "text\n")
    assert desk.found("text") == ["n.md"]
    draft = desk.file(f"{atomic_file.DRAFT_PREFIX}0123{atomic_file.DRAFT_SUFFIX}", "half")
    (lock,) = (app.home / "notes").glob("*.lock")

    def waits(_: float) -> None:
        pytest.fail("it waits for the lock")

    with lock.open() as held, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(held, fcntl.LOCK_EX)
        patch.setattr(time, "sleep", waits)
        desk.notes.mark_stale()
        assert desk.found("text") == ["n.md"]

    desk.notes.mark_stale()
    assert desk.found("text") == ["n.md"]
    assert not draft.exists(), "it is swept once nobody is at work"
