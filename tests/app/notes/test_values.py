"""What is written into frontmatter is something that Interlock itself can read and follow."""

from typing import Any

import pytest

from interlock.app.notes.results import NoteChangeResult
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.grammar import parse_note
from tests.app.notes.desk import Desk

NONSENSE: list[dict[str, Any]] = [
    {"": "x"},
    {" ": "x"},
    {"permalink": "../../x y"},
    {"permalink": "/x"},
    {"permalink": ""},
    {"type": ""},
    {"type": ["a"]},
    {"title": " "},
    {"type": "decision", "status": "sleepy"},
    {"status": ""},
]


@pytest.mark.parametrize("metadata", NONSENSE, ids=str)
def test_nonsense_is_refused_and_nothing_is_written(desk: Desk, metadata: dict[str, Any]) -> None:
    path = desk.file("n.md", "---\ntitle: N\ntype: note\n---\ntext\n")
    before = path.read_text()

    edited = desk.edit("n.md", None, metadata=metadata)
    written = desk.write("Another", "text", metadata=metadata)

    for refusal in (edited, written):
        assert isinstance(refusal, BadValue)
        assert refusal.explain().hint
    assert path.read_text() == before
    assert [one.name for one in desk.folder.iterdir()] == ["n.md"]


def test_a_status_is_one_of_the_type_of_the_note(desk: Desk) -> None:
    desk.file("t.md", "---\ntype: task\n---\n")

    refused = desk.edit("t.md", None, metadata={"status": "implemented"})

    assert isinstance(refused, BadValue)
    assert "todo" in refused.instead
    assert desk.edit("t.md", None, metadata={"status": "In Progress"}).result == "changed"
    assert isinstance(desk.write("T", "x", type="task", metadata={"status": "open"}), BadValue)
    content = "---\ntype: decision\nstatus: sleepy\n---\ntext"
    assert isinstance(desk.write("In the text", content, type="decision"), BadValue)
    desk.written("A recipe", "x", type="recipe", metadata={"status": "simmering"})


@pytest.mark.parametrize("tags", ["[a, b]", '["a", #b]', "a, b", ["a", "b"]], ids=str)
def test_tags_are_a_list_however_they_are_given(desk: Desk, tags: object) -> None:
    desk.file("n.md", "---\ntags: [old]\n---\n")

    desk.edit("n.md", None, metadata={"tags": tags})
    done = desk.written("New", "text", metadata={"tags": tags})

    for path in ("n.md", done.path):
        note = parse_note((desk.folder / path).read_text(), path=path)
        assert note.tags == ("a", "b")
        assert note.front.values["tags"] == ["a", "b"]


def test_metadata_does_not_say_otherwise_than_the_parameters(desk: Desk) -> None:
    title = desk.write("T", "text", metadata={"title": "U"})
    kind = desk.write("T", "text", metadata={"type": "decision"})
    same = desk.write("T", "text", type="bug", metadata={"title": "T", "type": "bug"})
    address = desk.written("V", "text", metadata={"permalink": "my/own"})

    for refusal, name in ((title, "title"), (kind, "type")):
        assert isinstance(refusal, BadValue)
        assert f"`{name}`" in refusal.instead
    assert isinstance(same, NoteChangeResult)
    assert address.permalink == "my/own"
    assert desk.read("my/own").path == address.path


def test_a_type_of_nothing_but_spaces_is_none(desk: Desk) -> None:
    done = desk.written("Plain", "text", type=" \n")

    assert "type: note" in (desk.folder / done.path).read_text()
