"""Notes lie where the project or the user says, and no way leads out of there."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.trust import trust_checkout
from interlock.app.notes.move_or_delete import rename_note
from interlock.app.notes.project_notes import OPEN_NOTES_MAX, open_notes
from interlock.app.notes.refusals import BadNoteName
from interlock.app.notes.results import NoteChangeResult
from interlock.app.refusals import NoProject
from interlock.core.notes import edits
from interlock.core.refusal import PlainRefusal
from tests.app.notes.desk import Desk
from tests.scenes import refusal_code


def test_numbers_go_on_and_another_folder_gets_a_hint(desk: Desk) -> None:
    first = desk.written("One", "text", type="decision")
    second = desk.written("Two", "text", type="decision")
    third = desk.written("Three", "text", type="decision", folder="elsewhere")

    assert [first.path[:17], second.path[:17]] == ["decisions/ADR-001", "decisions/ADR-002"]
    assert third.path == "elsewhere/Three.md"
    assert "decisions/ADR-003-three.md" in third.hints[0]


@pytest.mark.parametrize("folder", ["../out", "a/../../b", ".hidden", "a/\0b", "~/x/../.."])
def test_no_title_and_no_folder_leads_out_of_the_notes(desk: Desk, folder: str) -> None:
    before = sorted(desk.root.parent.rglob("*"))

    assert isinstance(desk.write("T", "text", folder=folder), BadNoteName)

    assert sorted(desk.root.parent.rglob("*")) == before
    for done in (desk.written("../../etc/passwd", "text"), desk.written("U", "u", folder="/etc")):
        assert (desk.folder / done.path).is_file()


@pytest.mark.invariant("notes-stay-apart")
def test_a_link_in_the_folder_leads_nowhere(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret words")
    desk.folder.mkdir(parents=True)
    (desk.folder / "way").symlink_to(outside)
    (desk.folder / "file.md").symlink_to(outside / "secret.md")

    assert desk.found("secret") == []
    assert isinstance(desk.write("T", "text", folder="way"), BadNoteName)
    assert list(outside.iterdir()) == [outside / "secret.md"]


def test_a_note_that_moves_keeps_its_permalink_and_says_which_links_are_lost(desk: Desk) -> None:
    desk.file("plain.md", "no frontmatter")
    desk.file("a.md", "[[folder/plain]] and [[plain]]")
    done = desk.written("Target", "text", folder="one")
    desk.written("Source", "[[one/target]]")

    moved = rename_note(desk.app, desk.notes, "Target", "two/", None)
    plain = rename_note(desk.app, desk.notes, "plain", "folder/renamed.md", None)

    assert isinstance(moved, NoteChangeResult)
    assert (moved.path, moved.permalink, moved.hints) == ("two/Target.md", done.permalink, ())
    assert desk.read("one/target").path == "two/Target.md"
    assert not (desk.folder / "one").exists()
    assert isinstance(plain, NoteChangeResult)
    assert plain.hints == ("links to the old name stand in a.md",)


def test_two_projects_never_see_each_others_notes(desk: Desk, other: Desk) -> None:
    desk.written("Ours", "a word of ours")
    other.written("Theirs", "a word of theirs, see [[Ours]]")

    assert desk.found("word") == ["Ours.md"]
    assert other.found("word") == ["Theirs.md"]
    assert desk.notes.index.backlink_counts(("Ours.md",)) == {}
    for name in ("Ours", "../project/.interlock/notes/Ours.md", "memory://../Ours", "/Ours"):
        assert "word of ours" not in str(other.edit(name, edits.Append("x")))


@pytest.mark.invariant("notes-stay-apart")
def test_the_folder_is_one_of_the_project_unless_the_user_says_otherwise(
    app: App, desk: Desk, tmp_path: Path
) -> None:
    config = desk.root / ".interlock" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[notes]\nfolder = "docs/notes"\n')
    assert refusal_code(open_notes(app, desk.root)) == "not_allowed"
    trust_checkout(app.home, desk.root, at_ms=1)
    assert desk.written("Here", "text").path == "Here.md"
    assert (desk.root / "docs" / "notes" / "Here.md").is_file()

    config.write_text('[notes]\nfolder = "../vault"\n')
    trust_checkout(app.home, desk.root, at_ms=1)
    assert refusal_code(open_notes(app, desk.root)) == "no_project"
    vault = tmp_path / "vault"
    (app.home / "config.toml").write_text(f'[notes.folders]\n"{desk.root}" = "{vault}"\n')
    desk.written("There", "text")
    assert (vault / "There.md").is_file()
    config.write_text("[notes\n")
    assert refusal_code(open_notes(app, desk.root)) == "settings_broken"


@pytest.mark.parametrize("folder", ["vault", "~nosuchuser/x", "\\u0000bad"])
def test_a_vault_of_the_users_is_an_absolute_path(app: App, desk: Desk, folder: str) -> None:
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text(f'[notes.folders]\n"{desk.root}" = "{folder}"\n')

    assert refusal_code(open_notes(app, desk.root)) == "settings_broken"


def test_a_project_is_meant_however_its_directory_is_spelled(
    app: App, desk: Desk, tmp_path: Path
) -> None:
    link, vault, to_vault = (tmp_path / name for name in ("link", "vault", "to_vault"))
    link.symlink_to(desk.root)
    to_vault.symlink_to(vault)
    (app.home / "config.toml").write_text(f'[notes.folders]\n"{link}/" = "{to_vault}"\n')

    desk.written("There", "text")

    assert (vault / "There.md").is_file()


@pytest.mark.slow
def test_many_projects_do_not_use_up_what_a_process_may_open(app: App, tmp_path: Path) -> None:
    for number in range(OPEN_NOTES_MAX + 8):
        Desk(app, tmp_path / str(number)).written("A note", "text")

    assert len(app.notes) == OPEN_NOTES_MAX
    assert Desk(app, tmp_path / "0").found("text") == ["A note.md"]


def test_where_there_is_no_project_there_are_no_notes(app: App, tmp_path: Path) -> None:
    assert open_notes(app, tmp_path) == NoProject(str(tmp_path))


def test_a_notes_folder_that_is_a_link_is_refused_even_within_the_project(
    app: App, desk: Desk
) -> None:
    desk.folder.parent.mkdir(parents=True)
    desk.folder.symlink_to(desk.root)

    refusal = open_notes(app, desk.root)

    assert isinstance(refusal, PlainRefusal)
    assert (refusal.code, "`.interlock/notes`" in refusal.error) == ("no_project", True)
    assert "link" in refusal.error
    assert "config" not in refusal.error


def test_a_folder_outside_is_said_to_be_that_before_anybody_is_asked_to_trust_it(
    app: App, desk: Desk
) -> None:
    config = desk.root / ".interlock" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[notes]\nfolder = "../vault"\n')

    assert refusal_code(open_notes(app, desk.root)) == "no_project"
