"""Notes are written, and never over what somebody else has written."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.notes.explain import explain_note
from interlock.app.notes.opened import (
    OPENED_MAX,
    FolderNotTrusted,
    FolderOutside,
    NoProject,
    open_notes,
)
from interlock.app.notes.refusals import (
    BadName,
    FrontUnreadable,
    LooksLike,
    NoteChanged,
    NoteExists,
    NotWritten,
    Unsettled,
    VersionWanted,
)
from interlock.app.notes.remove import delete
from interlock.app.notes.rename import rename
from interlock.app.notes.results import Done
from interlock.app.refusals import RequestReused
from interlock.app.requests import UNNAMED_VALID_MS, asked
from interlock.app.trust import trust
from interlock.core.notes import edits
from interlock.core.notes.grammar import parse
from interlock.workspace import whole_file
from tests.app.notes.desk import Desk
from tests.scenes import SettableClock


def test_a_note_is_a_file_that_says_where_it_comes_from(desk: Desk) -> None:
    done = desk.written("Use SQLite", "- [decision] one file #storage", tags=("db",))

    text = (desk.folder / done.path).read_text()
    note = parse(text, path=done.path)
    assert (done.result, done.path, done.permalink) == ("created", "Use SQLite.md", "use-sqlite")
    assert (note.title, note.type, note.permalink) == ("Use SQLite", "note", "use-sqlite")
    assert note.tags == ("db", "storage")
    assert note.front.values["created"]
    assert desk.read("use-sqlite").version == done.version


@pytest.mark.parametrize(
    ("type_name", "path"),
    [
        ("decision", "decisions/ADR-001-use-sqlite.md"),
        ("feature", "planning/FEATURE-001-use-sqlite.md"),
        ("retrospective", "retrospectives/RETRO-1970-01-01_use-sqlite.md"),
        ("something else", "Use SQLite.md"),
    ],
)
def test_a_type_with_a_rule_names_the_file(desk: Desk, type_name: str, path: str) -> None:
    app = msgspec.structs.replace(desk.app, clock=SettableClock(1_000))
    done = Desk(app, desk.root).written("Use SQLite", "text", type=type_name)

    assert done.path == path


def test_numbers_go_on_and_another_folder_gets_a_hint(desk: Desk) -> None:
    first = desk.written("One", "text", type="decision")
    second = desk.written("Two", "text", type="decision")
    third = desk.written("Three", "text", type="decision", folder="elsewhere")

    assert [first.path[:17], second.path[:17]] == ["decisions/ADR-001", "decisions/ADR-002"]
    assert third.path == "elsewhere/Three.md"
    assert "decisions/ADR-003-three.md" in third.hints[0]


@pytest.mark.invariant("notes-no-lost-update")
def test_what_is_there_is_not_written_over_unless_its_version_is_named(desk: Desk) -> None:
    first = desk.written("A thing", "mine")

    refused = desk.write("A thing", "yours")
    unread = desk.write("A thing", "yours", overwrite=True)
    stale = desk.write("A thing", "yours", overwrite=True, version="0" * 12)

    for refusal in (refused, unread):
        assert isinstance(refusal, NoteExists)
        assert "-mine" in refusal.diff
        assert "+yours" in refusal.diff
    assert isinstance(stale, NoteChanged)
    assert desk.read("A thing").text.endswith("mine")
    done = desk.written("A thing", "yours", overwrite=True, version=first.version)
    assert done.result == "replaced"
    assert desk.read("A thing").text.endswith("yours")


def test_writing_over_keeps_what_the_frontmatter_says_besides(desk: Desk) -> None:
    desk.file("n.md", "---\ntitle: N\nmine: [1, 2]\nstatus: done\n---\nold")

    version = desk.read("N").version
    desk.written("N", "new", overwrite=True, version=version, metadata={"status": "open"})

    note = parse((desk.folder / "n.md").read_text(), path="n.md")
    assert note.front.values["mine"] == ["1", "2"]
    assert note.front.values["status"] == "open"
    assert note.body.strip() == "new"


def test_the_same_text_again_is_no_change(desk: Desk) -> None:
    first = desk.written("A thing", "text")
    stamp = (desk.folder / first.path).stat().st_mtime_ns

    again = desk.written("A thing", "text")

    assert (again.result, again.version) == ("unchanged", first.version)
    assert (desk.folder / first.path).stat().st_mtime_ns == stamp


def test_nearly_the_same_title_is_refused_until_it_is_said_to_be_another(desk: Desk) -> None:
    desk.written("ADR-007: Use SQLite", "text", type="decision")

    alike = desk.write("use sqlite!", "text")

    assert isinstance(alike, LooksLike)
    assert alike.path == "decisions/ADR-007-use-sqlite.md"
    assert desk.written("use sqlite!", "text", is_separate=True).result == "created"
    assert desk.written("Use SQLite twice", "text").result == "created"


@pytest.mark.parametrize("folder", ["../out", "a/../../b", ".hidden", "a/\0b", "~/x/../.."])
def test_no_title_and_no_folder_leads_out_of_the_notes(desk: Desk, folder: str) -> None:
    before = sorted(desk.root.parent.rglob("*"))

    assert isinstance(desk.write("T", "text", folder=folder), BadName)

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
    assert isinstance(desk.write("T", "text", folder="way"), BadName)
    assert list(outside.iterdir()) == [outside / "secret.md"]


def test_frontmatter_that_nobody_can_read_is_left_alone(desk: Desk) -> None:
    text = "---\ntitle: [\n---\nbody\n"
    path = desk.file("n.md", text)

    version = desk.read("n").version
    over = desk.write("n", "new", overwrite=True, version=version)
    status = desk.edit("n", None, metadata={"status": "done"})

    assert isinstance(over, FrontUnreadable)
    assert isinstance(status, FrontUnreadable)
    assert path.read_text() == text
    assert isinstance(desk.edit("n", edits.Append("more")), Done), "the text below may be changed"
    assert path.read_text() == text + "more\n"


def test_what_replaces_a_section_says_what_it_has_read(desk: Desk) -> None:
    path = desk.file("n.md", "# N\n\n## One\nold\n\n## Two\nstays\n")
    change = edits.ReplaceSection("One", "new")

    unread = desk.edit("n", change)
    version = desk.read("n").version
    desk.edit("n", edits.Append("by somebody else"))
    stale = desk.edit("n", change, version=version)

    assert isinstance(unread, VersionWanted)
    assert isinstance(stale, NoteChanged)
    assert "somebody else" in stale.diff or "old" in stale.diff
    assert isinstance(desk.edit("n", change, version=stale.version), Done)
    assert path.read_text() == "# N\n\n## One\nnew\n\n## Two\nstays\nby somebody else\n"


def test_the_same_call_within_a_minute_is_carried_out_once(desk: Desk) -> None:
    clock = SettableClock()
    at = Desk(msgspec.structs.replace(desk.app, clock=clock), desk.root)
    path = desk.file("n.md", "text\n")
    call = asked("edit_note", "somebody", ["n", "line"], None)

    first = at.edit("n", edits.Append("line"), call)
    again = at.edit("n", edits.Append("line"), call)
    other = at.edit("n", edits.Append("line"), asked("edit_note", "another", ["n", "line"], None))

    assert first == again
    assert isinstance(other, Done)
    assert path.read_text() == "text\nline\nline\n"
    clock.at_ms += UNNAMED_VALID_MS + 1
    at.edit("n", edits.Append("line"), call)
    assert path.read_text() == "text\nline\nline\nline\n"


def test_a_named_call_is_carried_out_once_for_ever_and_names_nothing_else(desk: Desk) -> None:
    clock = SettableClock()
    at = Desk(msgspec.structs.replace(desk.app, clock=clock), desk.root)
    call = asked("write_note", "somebody", ["T", "text"], "request-1")
    first = at.written("T", "text", call=call)
    at.edit("T", edits.Append("by another"))
    clock.at_ms += 10 * UNNAMED_VALID_MS

    again = at.written("T", "text", call=call)

    assert (again.result, again.path) == (first.result, first.path)
    assert again.version == at.read("T").version
    assert "by another" in at.read("T").text
    other = asked("write_note", "somebody", ["U", "text"], "request-1")
    assert isinstance(at.write("U", "text", call=other), RequestReused)


def test_a_call_that_was_noted_and_never_written_is_carried_out(desk: Desk) -> None:
    """Killed between the note of the call and the file: told by the file, which is as it was."""
    path = desk.file("n.md", "text\n")
    call = asked("edit_note", "somebody", ["n"], None)
    desk.edit("n", edits.Append("line"), call)

    path.write_text("text\n")

    assert isinstance(desk.edit("n", edits.Append("line"), call), Done)
    assert path.read_text() == "text\nline\n"


def test_a_call_that_came_too_late_is_not_taken_for_done_when_it_comes_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.file("n.md", "text\n")
    call = asked("edit_note", "somebody", ["n"], None)
    whole = whole_file.replaced

    def an_editor_was_faster(*arguments: Any) -> Any:
        path.write_text("by an editor\n")
        return whole(*arguments)

    with monkeypatch.context() as moment:
        moment.setattr(whole_file, "replaced", an_editor_was_faster)
        assert isinstance(desk.edit("n", edits.Append("line"), call), NoteChanged)

    assert isinstance(desk.edit("n", edits.Append("line"), call), Done)
    assert path.read_text() == "by an editor\nline\n"


def test_a_note_that_moves_keeps_its_permalink_and_says_which_links_are_lost(desk: Desk) -> None:
    desk.file("plain.md", "no frontmatter")
    desk.file("a.md", "[[folder/plain]] and [[plain]]")
    done = desk.written("Target", "text", folder="one")
    desk.written("Source", "[[one/target]]")

    moved = rename(desk.app, desk.notes, "Target", "two/", None)
    plain = rename(desk.app, desk.notes, "plain", "folder/renamed.md", None)

    assert isinstance(moved, Done)
    assert (moved.path, moved.permalink, moved.hints) == ("two/Target.md", done.permalink, ())
    assert desk.read("one/target").path == "two/Target.md"
    assert not (desk.folder / "one").exists()
    assert isinstance(plain, Done)
    assert plain.hints == ("links to the old name stand in a.md",)


def test_a_note_is_deleted_by_whoever_has_read_it(desk: Desk) -> None:
    desk.written("Keep", "[[Gone]]")
    done = desk.written("Gone", "text")

    assert isinstance(delete(desk.app, desk.notes, "Gone", "", None), VersionWanted)
    desk.edit("Gone", edits.Append("more"))
    stale = delete(desk.app, desk.notes, "Gone", done.version, None)
    assert isinstance(stale, NoteChanged)
    deleted = delete(desk.app, desk.notes, "Gone", stale.version, None)

    assert isinstance(deleted, Done)
    assert deleted.hints == ("Keep.md still link to it",)
    assert desk.found("more") == []
    assert not (desk.folder / "Gone.md").exists()


WRITER = """
import sys
from pathlib import Path
from typing import Any
from interlock.app.context import open_app
from interlock.app.notes.refusals import NoteChanged
from interlock.workspace import whole_file
from tests.app.notes.desk import Desk
home, root, name, count = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
desk = Desk(open_app(home), root)
seen = 0
for number in range(count):
    while True:
        note = desk.read("Shared")
        body = note.text.partition("---\\n")[2].partition("---\\n")[2]
        text = f"{body}{name} {number}\\n"
        done = desk.write("Shared", text, overwrite=True, version=note.version)
        if not isinstance(done, NoteChanged):
            break
        assert done.diff
        seen += 1
print(seen)
"""


@pytest.mark.invariant("notes-no-lost-update")
def test_of_eight_who_write_over_one_note_none_loses_a_line(app: App, desk: Desk) -> None:
    desk.written("Shared", "begin\n")
    count = 12

    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, app.home, desk.root, name, str(count)],
            cwd=Path(__file__).parents[3],
            stdout=subprocess.PIPE,
        )
        for name in "abcdefgh"
    ]
    told = [int(writer.communicate()[0]) for writer in writers]

    assert [writer.returncode for writer in writers] == [0] * 8
    lines = desk.read("Shared").text.partition("begin\n")[2].splitlines()
    assert sorted(lines) == sorted(f"{name} {n}" for name in "abcdefgh" for n in range(count))
    assert sum(told) > 0, "the second one is told, with a diff"


def test_two_projects_never_see_each_others_notes(desk: Desk, other: Desk) -> None:
    desk.written("Ours", "a word of ours")
    other.written("Theirs", "a word of theirs, see [[Ours]]")

    assert desk.found("word") == ["Ours.md"]
    assert other.found("word") == ["Theirs.md"]
    assert desk.notes.index.backlinks(("Ours.md",)) == {}
    for name in ("Ours", "../project/.interlock/notes/Ours.md", "memory://../Ours", "/Ours"):
        assert "word of ours" not in str(other.edit(name, edits.Append("x")))


@pytest.mark.invariant("notes-stay-apart")
def test_the_folder_is_one_of_the_project_unless_the_user_says_otherwise(
    app: App, desk: Desk, tmp_path: Path
) -> None:
    config = desk.root / ".interlock" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[notes]\nfolder = "docs/notes"\n')
    assert open_notes(app, desk.root) == FolderNotTrusted("docs/notes")
    trust(app.home, desk.root, at_ms=1)
    assert desk.written("Here", "text").path == "Here.md"
    assert (desk.root / "docs" / "notes" / "Here.md").is_file()

    config.write_text('[notes]\nfolder = "../vault"\n')
    trust(app.home, desk.root, at_ms=1)
    assert open_notes(app, desk.root) == FolderOutside("../vault")
    vault = tmp_path / "vault"
    (app.home / "config.toml").write_text(f'[notes.folders]\n"{desk.root}" = "{vault}"\n')
    desk.written("There", "text")
    assert (vault / "There.md").is_file()
    config.write_text("[notes\n")
    assert isinstance(open_notes(app, desk.root), Unsettled)


def test_a_folder_that_is_a_link_is_not_taken_even_within_the_project(app: App, desk: Desk) -> None:
    desk.folder.parent.mkdir(parents=True)
    desk.folder.symlink_to(desk.root)

    assert open_notes(app, desk.root) == FolderOutside(".interlock/notes")


@pytest.mark.parametrize("folder", ["vault", "~nosuchuser/x", "\\u0000bad"])
def test_a_vault_of_the_users_is_an_absolute_path(app: App, desk: Desk, folder: str) -> None:
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text(f'[notes.folders]\n"{desk.root}" = "{folder}"\n')

    assert isinstance(open_notes(app, desk.root), Unsettled)


def test_a_project_is_meant_however_its_directory_is_spelled(
    app: App, desk: Desk, tmp_path: Path
) -> None:
    link, vault = tmp_path / "link", tmp_path / "vault"
    link.symlink_to(desk.root)
    (app.home / "config.toml").write_text(f'[notes.folders]\n"{link}/" = "{vault}"\n')

    desk.written("There", "text")

    assert (vault / "There.md").is_file()


def test_many_projects_do_not_use_up_what_a_process_may_open(app: App, tmp_path: Path) -> None:
    for number in range(OPENED_MAX + 8):
        Desk(app, tmp_path / str(number)).written("A note", "text")

    assert len(app.notes) == OPENED_MAX
    assert Desk(app, tmp_path / "0").found("text") == ["A note.md"]


def test_no_note_holds_a_nul(desk: Desk) -> None:
    assert isinstance(desk.write("T", "a\0b"), NotWritten)
    assert not desk.folder.exists()


def test_the_same_call_again_says_what_is_true_now(desk: Desk) -> None:
    path = desk.file("n.md", "text\n")
    call = asked("edit_note", "somebody", ["n"], None)
    first = desk.edit("n", edits.Append("- x"), call)
    desk.edit("n", edits.FindReplace("- x", "- y"))

    again = desk.edit("n", edits.Append("- x"), call)

    assert again.version == desk.read("n").version != first.version
    assert "changed since" in again.hints[0]
    assert path.read_text() == "text\n- y\n"


def test_a_move_that_comes_again_moves_what_has_the_name_now(desk: Desk) -> None:
    desk.file("a.md", "one")
    call = asked("move_note", "somebody", ["a", "b"], None)
    assert isinstance(rename(desk.app, desk.notes, "a", "b.md", call), Done)
    assert isinstance(rename(desk.app, desk.notes, "b", "c.md", None), Done)
    desk.file("a.md", "two")
    desk.file("b.md", "somebody else's")

    again = rename(desk.app, desk.notes, "a.md", "b.md", call)

    assert not isinstance(again, Done)
    assert (desk.folder / "a.md").read_text() == "two"


def test_where_there_is_no_project_there_are_no_notes(app: App, tmp_path: Path) -> None:
    assert open_notes(app, tmp_path) == NoProject(str(tmp_path))


@pytest.mark.parametrize("title", ["", "  \n", "\u202e\u200b", "\x1b\0", "\U000e0041"], ids=ascii)
def test_a_title_that_shows_nothing_is_refused(desk: Desk, title: str) -> None:
    assert isinstance(desk.write(title, "text"), BadName)
    assert isinstance(desk.write(title, "text", type="decision"), BadName)
    assert not desk.folder.exists()


def test_a_notes_folder_behind_a_link_is_explained_as_that(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    desk.folder.parent.mkdir(exist_ok=True)
    desk.folder.symlink_to(tmp_path / "elsewhere")
    refusal = open_notes(desk.app, desk.root)
    assert isinstance(refusal, FolderOutside)

    said = explain_note(refusal)

    assert "link" in said.error
    assert "config" not in said.error
