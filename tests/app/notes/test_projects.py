"""Whose notes the console may show: known projects, and nothing else."""

import os
import shutil
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.trust import trust_checkout
from interlock.app.notes.all_projects import (
    REMEMBERED_PROJECTS_MAX,
    known_project,
    known_projects,
    with_notes,
)
from interlock.app.notes.project_notes import INDEX_DIRECTORY, OpenedNotes, open_notes
from interlock.app.sessions.known_workspaces import known_workspaces
from interlock.core.explanation import Explanation
from tests.app.notes.desk import Desk
from tests.scenes import started

CONFIG = '[notes]\nfolder = "docs"\n'


@pytest.fixture(autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests themselves run in a project."""
    monkeypatch.chdir(tmp_path_factory.mktemp("nowhere"))


def test_a_project_is_known_once_its_notes_were_used(app: App, desk: Desk, other: Desk) -> None:
    desk.file("a.md", "one")
    other.file("b.md", "two")
    assert known_projects(app) == ()
    assert isinstance(known_project(app, str(desk.root)), Explanation)

    desk.found("one")

    assert known_projects(app) == (str(desk.root),)
    assert known_project(app, str(desk.root)) == desk.root
    assert isinstance(known_project(app, str(other.root)), Explanation)
    assert isinstance(known_project(app, str(desk.folder)), Explanation), "nor what lies in it"
    assert isinstance(known_project(app, ""), Explanation)
    assert known_workspaces(app) == (), "where a workflow may be started is another question"


def test_a_project_without_a_notes_folder_is_not_listed(app: App, desk: Desk) -> None:
    assert isinstance(open_notes(app, desk.root), OpenedNotes)

    assert known_projects(app) == ()


def test_the_project_in_which_the_server_was_started_is_known(
    app: App, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.root / "src").mkdir()
    monkeypatch.chdir(desk.root / "src")

    assert known_projects(app) == (str(desk.root),)
    assert known_project(app, str(desk.root)) == desk.root
    shutil.rmtree(desk.root)
    assert known_projects(app) == ()


def test_sessions_come_first_and_no_project_twice(app: App, desk: Desk, other: Desk) -> None:
    below = desk.root / "src"
    below.mkdir()
    desk.file("a.md", "one")
    other.file("b.md", "two")
    desk.found("one")
    other.found("two")
    started(app, below)

    assert known_projects(app) == (str(below), str(other.root))


def test_of_those_whose_notes_were_used_the_last_comes_first(
    app: App, desk: Desk, other: Desk
) -> None:
    for one in (desk, other):
        one.written("One", "text")
    for age, path in enumerate(sorted((app.home / INDEX_DIRECTORY).glob("*.project"))):
        os.utime(path, (1_000 - age, 1_000 - age))
    before = known_projects(app)

    app.notes.pop(Path(before[1]) / ".interlock" / "notes").close()
    open_notes(app, Path(before[1]))

    assert known_projects(app) == before[::-1]


def test_only_those_with_a_folder_of_notes_have_notes_and_each_folder_counts_once(
    app: App, desk: Desk, other: Desk
) -> None:
    desk.written("One", "text")
    started(app, other.root)
    (desk.root / "src").mkdir()
    started(app, desk.root / "src")

    known = known_projects(app)

    assert known == (str(desk.root / "src"), str(other.root))
    assert with_notes(app, known) == [str(desk.root / "src")]
    assert with_notes(app, (*known, str(desk.root))) == [str(desk.root / "src")]
    other.written("Two", "text")
    assert with_notes(app, known) == list(known)


@pytest.mark.invariant("notes-stay-apart")
def test_a_folder_that_nobody_trusts_makes_no_project_known(app: App, desk: Desk) -> None:
    config = desk.root / ".interlock" / "config.toml"
    config.parent.mkdir()
    config.write_text(CONFIG)
    (desk.root / "docs").mkdir()
    (desk.root / "docs" / "a.md").write_text("one")

    assert not isinstance(open_notes(app, desk.root), OpenedNotes)
    assert known_projects(app) == ()
    trust_checkout(app.home, desk.root, at_ms=1)
    assert isinstance(open_notes(app, desk.root), OpenedNotes)
    assert known_projects(app) == (str(desk.root),)
    config.write_text(CONFIG + "# changed since\n")
    assert known_projects(app) == ()
    assert isinstance(known_project(app, str(desk.root)), Explanation)


def test_a_project_that_became_part_of_another_is_not_known(app: App, desk: Desk) -> None:
    desk.written("One", "text")
    (desk.root.parent / ".git").mkdir()
    (desk.root.parent / ".interlock" / "notes").mkdir(parents=True)
    (desk.root / ".git").rmdir()

    assert known_projects(app) == ()
    assert isinstance(known_project(app, str(desk.root)), Explanation)


def test_a_project_stays_known_when_its_index_is_thrown_away(app: App, desk: Desk) -> None:
    desk.written("One", "text")
    desk.notes.discard_index()

    assert known_projects(app) == (str(desk.root),)


def test_what_is_no_text_and_what_was_spoiled_is_left_out(app: App, tmp_path: Path) -> None:
    odd = Desk(app, tmp_path / os.fsdecode(b"caf\xe9"))
    odd.file("a.md", "one")
    assert odd.found("one") == ["a.md"]
    place = app.home / INDEX_DIRECTORY
    (place / "0123.project").write_bytes(b"")
    (place / "4567.project").mkdir()
    (place / "89ab.project").write_bytes(b"/no\0where")

    assert known_projects(app) == ()


def test_of_very_many_only_so_many_are_looked_at(app: App, desk: Desk) -> None:
    desk.written("One", "text")
    for number in range(REMEMBERED_PROJECTS_MAX + 5):
        (app.home / INDEX_DIRECTORY / f"{number}.project").write_text(f"/nowhere/{number}")

    assert known_projects(app) == ()
    assert known_project(app, str(desk.root)) == desk.root
