"""Notes are written, and never over what somebody else has written."""

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.notes.move_or_delete import remove_note
from interlock.app.notes.refusals import (
    BadNoteName,
    FrontmatterUnreadable,
    NoteChanged,
    NoteExists,
    NoteNotWritten,
    SimilarNoteExists,
    VersionRequired,
)
from interlock.app.notes.results import NoteChangeResult
from interlock.core.notes import edits
from interlock.core.notes.grammar import parse_note
from tests.app.notes.desk import Desk
from tests.app.races import at_once
from tests.scenes import SettableClock


def test_a_note_is_a_file_that_says_where_it_comes_from(desk: Desk) -> None:
    done = desk.written("Use SQLite", "- [decision] one file #storage", tags=("db",))

    text = (desk.folder / done.path).read_text()
    note = parse_note(text, path=done.path)
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
    assert desk.read("A thing").text.endswith("mine\n")
    done = desk.written("A thing", "yours", overwrite=True, version=first.version)
    assert done.result == "replaced"
    assert desk.read("A thing").text.endswith("yours\n")


def test_writing_over_keeps_what_the_frontmatter_says_besides(desk: Desk) -> None:
    desk.file("n.md", "---\ntitle: N\nmine: [1, 2]\nstatus: done\n---\nold")

    version = desk.read("N").version
    desk.written("N", "new", overwrite=True, version=version, metadata={"status": "open"})

    note = parse_note((desk.folder / "n.md").read_text(), path="n.md")
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

    assert isinstance(alike, SimilarNoteExists)
    assert alike.path == "decisions/ADR-007-use-sqlite.md"
    assert desk.written("use sqlite!", "text", is_separate=True).result == "created"
    assert desk.written("Use SQLite twice", "text").result == "created"


def test_frontmatter_that_nobody_can_read_is_left_alone(desk: Desk) -> None:
    text = "---\ntitle: [\n---\nbody\n"
    path = desk.file("n.md", text)

    version = desk.read("n").version
    over = desk.write("n", "new", overwrite=True, version=version)
    status = desk.edit("n", None, metadata={"status": "done"})

    assert isinstance(over, FrontmatterUnreadable)
    assert isinstance(status, FrontmatterUnreadable)
    assert path.read_text() == text
    assert isinstance(desk.edit("n", edits.Append("more")), NoteChangeResult), (
        "the text below may be changed"
    )
    assert path.read_text() == text + "more\n"


def test_what_replaces_a_section_says_what_it_has_read(desk: Desk) -> None:
    path = desk.file("n.md", "# N\n\n## One\nold\n\n## Two\nstays\n")
    change = edits.ReplaceSection("One", "new")

    unread = desk.edit("n", change)
    version = desk.read("n").version
    desk.edit("n", edits.Append("by somebody else"))
    stale = desk.edit("n", change, version=version)

    assert isinstance(unread, VersionRequired)
    assert isinstance(stale, NoteChanged)
    assert {"-old", "+new"} <= set(stale.diff.splitlines())
    assert isinstance(desk.edit("n", change, version=stale.version), NoteChangeResult)
    assert path.read_text() == "# N\n\n## One\nnew\n\n## Two\nstays\nby somebody else\n"


def test_a_note_is_deleted_by_whoever_has_read_it(desk: Desk) -> None:
    desk.written("Keep", "[[Gone]]")
    done = desk.written("Gone", "text")

    assert isinstance(remove_note(desk.app, desk.notes, "Gone", "", None), VersionRequired)
    desk.edit("Gone", edits.Append("more"))
    stale = remove_note(desk.app, desk.notes, "Gone", done.version, None)
    assert isinstance(stale, NoteChanged)
    deleted = remove_note(desk.app, desk.notes, "Gone", stale.version, None)

    assert isinstance(deleted, NoteChangeResult)
    assert deleted.hints == ("Keep.md still link to it",)
    assert desk.found("more") == []
    assert not (desk.folder / "Gone.md").exists()


@pytest.mark.invariant("notes-no-lost-update")
def test_of_several_who_write_over_one_note_none_loses_a_line(app: App, desk: Desk) -> None:
    desk.written("Shared", "begin\n")
    count, refusals = 12, list[NoteChanged]()

    def write(own: App, writer: int) -> None:
        theirs = Desk(own, desk.root)
        for number in range(count):
            while True:
                note = theirs.read("Shared")
                text = f"{note.text[note.text.index('begin') :]}{writer} {number}\n"
                done = theirs.write("Shared", text, overwrite=True, version=note.version)
                if not isinstance(done, NoteChanged):
                    break
                refusals.append(done)

    at_once(app.home, write)

    lines = desk.read("Shared").text.partition("begin\n")[2].splitlines()
    assert sorted(lines) == sorted(f"{writer} {n}" for writer in range(6) for n in range(count))
    assert refusals, "the second one is refused, with a diff"
    assert all(refusal.diff for refusal in refusals)


def test_no_note_holds_a_nul(desk: Desk) -> None:
    assert isinstance(desk.write("T", "a\0b"), NoteNotWritten)
    assert not desk.folder.exists()


@pytest.mark.parametrize("title", ["", "  \n", "\u202e\u200b", "\x1b\0", "\U000e0041"], ids=ascii)
def test_a_title_that_shows_nothing_is_refused(desk: Desk, title: str) -> None:
    assert isinstance(desk.write(title, "text"), BadNoteName)
    assert isinstance(desk.write(title, "text", type="decision"), BadNoteName)
    assert not desk.folder.exists()


def test_a_number_that_is_taken_is_not_in_the_title_either(desk: Desk) -> None:
    desk.file("decisions/ADR-001-first.md", "---\ntype: decision\n---\n")
    desk.file("decisions/ADR-004-other.md", "---\ntype: decision\n---\n")

    done = desk.written("ADR-001: Clash", "text", type="decision")
    free = desk.written("ADR-003: Free", "text", type="decision")
    placed = desk.written("ADR-001: Third", "text", type="decision", folder="decisions")

    assert done.path == "decisions/ADR-005-clash.md"
    assert desk.read(done.path).title == "ADR-005: Clash"
    (hint,) = done.hints
    assert "ADR-001 is decisions/ADR-001-first.md already" in hint
    assert "ADR-005" in hint
    assert (free.hints, desk.read(free.path).title) == ((), "ADR-003: Free")
    assert any("ADR-001 is decisions/ADR-001-first.md already" in hint for hint in placed.hints)


def test_a_note_that_is_written_ends_with_a_newline(desk: Desk) -> None:
    for title, content, end in (("A", "text", "\ntext\n"), ("B", "text\n", "\ntext\n")):
        assert desk.read(desk.written(title, content).path).text.endswith(end)
    path = desk.written("C", "one\r\ntwo").path
    assert (desk.folder / path).read_bytes().endswith(b"one\r\ntwo\r\n")
    assert desk.written("A", "text").result == "unchanged"
