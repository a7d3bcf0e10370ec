"""A check says what is wrong with every file of the folder, whatever one of them is like."""

import os
from pathlib import Path

import pytest

from interlock.app.context import open_app
from interlock.app.notes.check import check_notes
from interlock.app.notes.results import NoteFinding, NotesCheckReport
from interlock.workspace.files.atomic_file import BYTES_MAX
from tests.app.notes.desk import Desk
from tests.unprivileged import nobody, place_of_nobody


def checked(desk: Desk) -> NotesCheckReport:
    found = check_notes(desk.app, desk.notes)
    assert isinstance(found, NotesCheckReport), found
    return found


def grave(found: NotesCheckReport) -> dict[str, list[NoteFinding]]:
    """What is to be mended, by path."""
    paths = {one.path for one in found.findings if one.severity != "hint"}
    return {
        path: [one for one in found.findings if one.path == path and one.severity != "hint"]
        for path in paths
    }


def test_a_file_that_is_too_large_is_one_error_among_the_others(desk: Desk) -> None:
    desk.file("huge.md", "x" * (BYTES_MAX + 1))
    desk.file("broken.md", "---\ntitle: [\n---\n")

    found = grave(checked(desk))

    assert sorted(found) == ["broken.md", "huge.md"]
    (huge,) = found["huge.md"]
    assert huge.severity == "error"
    assert "bytes" in huge.what


def test_a_file_that_nobody_may_read_is_one_error_among_the_others() -> None:
    with place_of_nobody() as place, nobody():
        desk = Desk(open_app(place / "home"), place / "project")
        locked = desk.file("locked.md", "text")
        late = desk.file("late.md", "text")
        desk.file("broken.md", "---\ntitle: [\n---\n")
        late.chmod(0)
        assert desk.found("text") == ["locked.md"]
        locked.chmod(0)

        all_found = checked(desk)
        found = grave(all_found)

        assert sorted(found) == ["broken.md", "late.md", "locked.md"]
        for path in ("late.md", "locked.md"):
            (unread,) = found[path]
            assert unread.severity == "error"
            assert "cannot be read" in unread.what
        assert all_found.unreadable == (), "each is said once"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (b"nul.md", "device on Windows"),
        (b"CON", "device on Windows"),
        (b"Upper.MD", "`.md`"),
        (b"b\xff.md", "character"),
        (b"link.md", "link"),
    ],
)
def test_a_file_that_is_not_taken_for_a_note_is_named(desk: Desk, name: bytes, why: str) -> None:
    desk.file("fine.md", "text")
    path = os.path.join(os.fsencode(desk.folder), name)
    if name == b"CON":
        os.mkdir(path)
    elif name == b"link.md":
        os.symlink("fine.md", path)
    else:
        Path(os.fsdecode(path)).write_text("text")

    ((shown, (finding,)),) = grave(checked(desk)).items()

    assert shown == name.decode("utf-8", "replace")
    assert finding.severity == "warning"
    assert why in finding.what


def test_what_is_no_text_or_not_utf_8_is_an_error(desk: Desk) -> None:
    desk.file("nul-in-it.md", "a\0b")
    desk.file("latin.md", "---\ntitle: T\n---\nfine\ncaf\udce9\n")

    found = grave(checked(desk))

    assert [one.severity for path in found for one in found[path]] == ["error", "error"]
    assert "not text" in found["nul-in-it.md"][0].what
    assert "UTF-8" in found["latin.md"][0].what
    assert found["latin.md"][0].line == 5


def test_frontmatter_without_an_end_is_an_error_and_is_left_alone(desk: Desk) -> None:
    text = "---\ntitle: T\nstatus: open\n\n# Text\n"
    path = desk.file("open.md", text)
    desk.file("rule.md", "---\n\nA line above, and no frontmatter.\n")

    found = grave(checked(desk))
    refused = desk.edit("open.md", None, metadata={"status": "done"})

    assert list(found) == ["open.md"]
    assert "no `---` at its end" in found["open.md"][0].what
    assert type(refused).__name__ == "FrontmatterUnreadable"
    assert path.read_text() == text
    assert desk.edit("rule.md", None, metadata={"status": "done"}).result == "changed"


def test_a_link_that_may_mean_several_names_them(desk: Desk) -> None:
    desk.file("one/a.md", "---\ntitle: Dup\n---\n")
    desk.file("two/b.md", "---\ntitle: Dup\n---\n")
    desk.file("from.md", "text\n[[Dup]]\n")
    desk.file("one/beside.md", "[[Dup]]\n")

    found = grave(checked(desk))

    assert list(found) == ["from.md"], "a neighbour is meant before others"
    (link,) = found["from.md"]
    assert link.line == 2
    assert "one/a.md" in link.what
    assert "two/b.md" in link.what


def test_what_is_grave_comes_first_and_quality_last(desk: Desk) -> None:
    desk.file("a.md", "text")
    desk.file("b.md", "[[Nowhere]]")
    desk.file("tasks/thing.md", "---\ntype: task\n---\n")
    desk.file("z.md", "---\ntitle: [\n---\n")
    for name in ("a", "b"):
        desk.file(f"decisions/ADR-001-{name}.md", "---\ntype: decision\n---\ntext")

    found = checked(desk).findings

    assert [(one.path, one.severity) for one in found[:2]] == [
        ("decisions/ADR-001-b.md", "error"),
        ("z.md", "error"),
    ]
    assert [one.severity for one in found[2:4]] == ["warning", "warning"]
    assert "Nowhere" in found[4].what
    assert {one.rule for one in found[5:]} == {"observations", "relations", "tags"}
