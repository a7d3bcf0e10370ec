"""A note goes by its names: the same everywhere, and what is nearly one leads to it."""

import pytest

from interlock.app.notes.inspect import read_note_text
from interlock.app.notes.neighbourhood import build_context
from interlock.app.notes.refusals import NoSuchNote, SeveralNotes
from interlock.app.notes.results import NoteContext
from tests.app.notes.desk import Desk


def shown(desk: Desk, name: str) -> list[str]:
    """What a context begins with."""
    found = build_context(desk.app, desk.notes, name, depth=0)
    assert isinstance(found, NoteContext), found
    return [one.note.path for one in found.notes]


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("Againn", "Again.md"),
        ("bakcups", "ops/Backups.md"),
        ("memory://mcp-oen", "mcp-one.md"),
        ("decisions/use-sqlit", "decisions/ADR-001-use-sqlite.md"),
    ],
)
def test_a_name_that_is_mistyped_leads_to_the_right_one(desk: Desk, asked: str, path: str) -> None:
    desk.file("Again.md", "text")
    desk.file("ops/Backups.md", "text")
    desk.file("mcp-one.md", "text")
    desk.file("decisions/ADR-001-use-sqlite.md", "---\npermalink: decisions/use-sqlite\n---\n")
    desk.file("quite another.md", "text")

    missing = read_note_text(desk.app, desk.notes, asked)

    assert isinstance(missing, NoSuchNote)
    assert missing.similar[:1] == (path,)
    assert "quite another.md" not in missing.similar


def test_the_number_of_a_typed_note_is_a_name(desk: Desk) -> None:
    desk.written("Use SQLite", "text", type="decision")
    desk.file("from.md", "see [[ADR-001]]")

    assert desk.read("ADR-001").path == "decisions/ADR-001-use-sqlite.md"
    assert desk.read("adr-001").linked_from == ("from.md",)
    assert desk.edit("ADR-001", None, metadata={"status": "accepted"}).result == "changed"
    assert shown(desk, "ADR-001") == ["decisions/ADR-001-use-sqlite.md"]


def test_a_title_is_meant_before_a_number_and_one_number_of_two_is_of_neither(desk: Desk) -> None:
    desk.file("specs/a/tasks/TASK-001-x.md", "text")
    desk.file("specs/b/tasks/TASK-001-y.md", "text")
    several = read_note_text(desk.app, desk.notes, "TASK-001")
    assert isinstance(several, SeveralNotes)
    assert len(several.paths) == 2

    desk.file("note.md", "---\ntitle: TASK-001\n---\n")

    assert desk.read("TASK-001").path == "note.md"


def test_a_file_is_meant_by_its_own_path_before_any_other(desk: Desk) -> None:
    desk.file("pre.md", "one")
    desk.file("pre.md.md", "two")
    desk.file("other.md", "---\ntitle: address\n---\n")
    desk.file("addressed.md", "---\npermalink: address\n---\n")

    for name in ("pre.md", "pre.md.md", "address"):
        assert shown(desk, name) == [desk.read(name).path]
    assert desk.read("pre.md.md").path == "pre.md.md"
    assert desk.read("address").path == "addressed.md"


def test_a_title_with_a_star_names_its_note_before_it_is_a_pattern(desk: Desk) -> None:
    done = desk.written("Why *args", "text")
    desk.file("why-other-args.md", "text")

    assert desk.read("Why *args").path == done.path
    assert shown(desk, "why-*") != [done.path]


def test_a_title_has_spaces_and_no_tabs(desk: Desk) -> None:
    done = desk.written("A\ttitle", "text")

    assert "\ntitle: A title\n" in desk.read("A title").text
    assert desk.read("A title").title == "A title"
    desk.edit("A title", None, metadata={"title": "An\tother"})
    assert desk.read("An other").path == done.path
