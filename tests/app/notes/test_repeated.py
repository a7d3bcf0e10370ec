"""A call that comes again is carried out once, and is never called done if it was not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers.request_key import UNNAMED_VALID_MS, request_key
from interlock.app.notes.move_or_delete import remove_note, rename_note
from interlock.app.notes.refusals import NoteChanged, NoteNotWritten
from interlock.app.notes.results import NoteChangeResult
from interlock.app.refusals import RequestReused
from interlock.core.notes import edits
from interlock.store.failures import StoreDamaged, StoreFailure, StoreFull, StoreUnusable
from interlock.store.notes.index import NoteIndex
from interlock.workspace.files import atomic_file
from tests.app.notes.desk import Desk
from tests.scenes import SettableClock


def test_the_same_call_within_a_minute_is_carried_out_once(desk: Desk) -> None:
    clock = SettableClock()
    at = Desk(msgspec.structs.replace(desk.app, clock=clock), desk.root)
    path = desk.file("n.md", "text\n")
    call = request_key("edit_note", "somebody", ["n", "line"], None)

    first = at.edit("n", edits.Append("line"), call)
    again = at.edit("n", edits.Append("line"), call)
    other = at.edit(
        "n", edits.Append("line"), request_key("edit_note", "another", ["n", "line"], None)
    )

    assert first == again
    assert isinstance(other, NoteChangeResult)
    assert path.read_text() == "text\nline\nline\n"
    clock.at_ms += UNNAMED_VALID_MS + 1
    at.edit("n", edits.Append("line"), call)
    assert path.read_text() == "text\nline\nline\nline\n"


def test_a_note_that_was_moved_is_not_moved_again(desk: Desk) -> None:
    desk.file("n.md", "text\n")
    call = request_key("move_note", "somebody", ["n", "other.md"], None)

    first = rename_note(desk.app, desk.notes, "n", "other.md", call)

    assert isinstance(first, NoteChangeResult)
    assert rename_note(desk.app, desk.notes, "n", "other.md", call) == first
    assert desk.read("other.md").text == "text\n"


def test_a_named_call_is_carried_out_once_for_ever_and_names_nothing_else(desk: Desk) -> None:
    clock = SettableClock()
    at = Desk(msgspec.structs.replace(desk.app, clock=clock), desk.root)
    call = request_key("write_note", "somebody", ["T", "text"], "request-1")
    first = at.written("T", "text", call=call)
    at.edit("T", edits.Append("by another"))
    clock.at_ms += 10 * UNNAMED_VALID_MS

    again = at.written("T", "text", call=call)

    assert (again.result, again.path) == (first.result, first.path)
    assert again.version == at.read("T").version
    assert "by another" in at.read("T").text
    other = request_key("write_note", "somebody", ["U", "text"], "request-1")
    assert isinstance(at.write("U", "text", call=other), RequestReused)


def test_a_call_that_was_noted_and_never_written_is_carried_out(desk: Desk) -> None:
    """Killed between the note of the call and the file: told by the file, which is as it was."""
    path = desk.file("n.md", "text\n")
    call = request_key("edit_note", "somebody", ["n"], None)
    desk.edit("n", edits.Append("line"), call)

    path.write_text("text\n")

    assert isinstance(desk.edit("n", edits.Append("line"), call), NoteChangeResult)
    assert path.read_text() == "text\nline\n"


class Killed(BaseException):
    """The process ends here."""


def disk_is_full(_: Path) -> None:
    raise OSError(28, "No space left on device")


def process_dies(_: Path) -> None:
    raise Killed


def editor_saves_first(path: Path) -> None:
    path.write_text("by an editor\n")


@pytest.mark.parametrize(
    ("happens", "outcome"),
    [(disk_is_full, NoteNotWritten), (process_dies, Killed), (editor_saves_first, NoteChanged)],
)
def test_a_call_that_was_not_carried_out_is_when_it_comes_again(
    desk: Desk, happens: Callable[[Path], None], outcome: type[object]
) -> None:
    """Though somebody else has changed the note meanwhile, so that it is not as it was."""
    path = desk.file("n.md", "text\n")
    call = request_key("edit_note", "somebody", ["n"], "request-1")
    whole = atomic_file.replace_file

    def replace_file(*arguments: Any) -> Any:
        happens(path)
        return whole(*arguments)

    with pytest.MonkeyPatch.context() as moment:
        moment.setattr(atomic_file, "replace_file", replace_file)
        try:
            found = desk.edit("n", edits.Append("line"), call)
        except Killed as killed:
            found = killed
    assert isinstance(found, outcome)
    path.write_text("by a person\n")

    assert isinstance(desk.edit("n", edits.Append("line"), call), NoteChangeResult)
    assert path.read_text() == "by a person\nline\n"


def test_the_same_call_again_says_what_is_true_now(desk: Desk) -> None:
    path = desk.file("n.md", "text\n")
    call = request_key("edit_note", "somebody", ["n"], None)
    first = desk.edit("n", edits.Append("- x"), call)
    desk.edit("n", edits.FindReplace("- x", "- y"))

    again = desk.edit("n", edits.Append("- x"), call)

    assert again.version == desk.read("n").version != first.version
    assert "changed since" in again.hints[0]
    assert path.read_text() == "text\n- y\n"


def test_a_move_that_comes_again_moves_what_has_the_name_now(desk: Desk) -> None:
    desk.file("a.md", "one")
    call = request_key("move_note", "somebody", ["a", "b"], None)
    assert isinstance(rename_note(desk.app, desk.notes, "a", "b.md", call), NoteChangeResult)
    assert isinstance(rename_note(desk.app, desk.notes, "b", "c.md", None), NoteChangeResult)
    desk.file("a.md", "two")
    desk.file("b.md", "somebody else's")

    again = rename_note(desk.app, desk.notes, "a.md", "b.md", call)

    assert not isinstance(again, NoteChangeResult)
    assert (desk.folder / "a.md").read_text() == "two"


def test_to_go_back_to_what_was_set_before_is_a_change(desk: Desk) -> None:
    path = desk.file("n.md", "---\nstatus: draft\n---\ntext\n")

    for status in ("open", "done", "open"):
        call = request_key("edit_note", "somebody", ["n", status], None)
        done = desk.edit("n", None, call, metadata={"status": status})
        assert done.result == "changed"
        assert f"status: {status}" in path.read_text()


def test_a_note_that_is_moved_back_and_forth_is_where_it_is_said_to_be(desk: Desk) -> None:
    desk.file("n.md", "text")

    for folder in ("a/", "b/", "a/"):
        call = request_key("move_note", "somebody", ["n", folder], None)
        done = rename_note(desk.app, desk.notes, "n", folder, call)
        assert isinstance(done, NoteChangeResult)
        assert [*desk.folder.rglob("n.md")] == [desk.folder / done.path]


def _appends(desk: Desk) -> Any:
    return desk.edit("n", edits.Append("line"), request_key("edit_note", "a", ["n"], "r"))


def _moves(desk: Desk) -> Any:
    return rename_note(desk.app, desk.notes, "n", "moved.md", None)


def _deletes(desk: Desk) -> Any:
    return remove_note(desk.app, desk.notes, "n", desk.read("n").version, None)


@pytest.mark.parametrize("failure", [StoreDamaged, StoreUnusable, StoreFull])
@pytest.mark.parametrize(
    ("act", "result", "left"),
    [
        (_appends, "changed", {"n.md": "text\nline\n"}),
        (_moves, "moved", {"moved.md": "text\n"}),
        (_deletes, "deleted", {}),
    ],
)
def test_what_was_done_to_a_file_is_done_whatever_the_index_says(
    desk: Desk,
    act: Callable[[Desk], Any],
    result: str,
    left: dict[str, str],
    failure: type[StoreFailure],
) -> None:
    desk.file("n.md", "text\n")
    desk.read("n")

    def fails(*_: object, **__: object) -> None:
        raise failure("the index", "")

    with pytest.MonkeyPatch.context() as moment:
        moment.setattr(NoteIndex, "put", fails)
        moment.setattr(NoteIndex, "remove", fails)
        assert act(desk).result == result

    assert {path.name: path.read_text() for path in desk.folder.rglob("*.md")} == left
    assert desk.found("text") == [*left], "and the index knows at the next use"
