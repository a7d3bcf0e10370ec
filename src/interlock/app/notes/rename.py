"""Give a note another path.

A permalink that is written in its frontmatter stays, and with it every link to that. One that is
only made from the path becomes another, since nobody's file is changed by moving it.
"""

from collections.abc import Mapping

from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteNotWritten, NotePathTaken, NoteRefusal
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.sync import parse_note_text
from interlock.app.notes.write_and_index import (
    index_transaction,
    index_written,
    refuse_on_disk_failure,
    shown_permalink,
    withdraw_request_on_failure,
    write_refusal,
)
from interlock.core.notes.keys import KeyRank, key_of, keys_of
from interlock.core.notes.versions import version_of
from interlock.workspace.files.atomic_file import FileConflict, FileContent
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects.notes_folder import CaseCollision

LINKS_MAX = 20


@refuse_on_disk_failure
def rename_note(
    app: App, notes: OpenedNotes, identifier: str, to: str, call: RequestKey | None = None
) -> NoteChangeResult | NoteRefusal:
    """`to` is a path, or a folder if it ends with a slash."""
    notes.refresh(app)
    with notes.lock.hold():
        if (before := repeated_calls.find_earlier_result(app, notes, call)) is not None:
            return before
        meant = find_note_file(notes, identifier)
        if not isinstance(meant, tuple):
            return meant
        row, found = meant
        path = _new_path(row.path, to)
        version = version_of(found.digest)
        note, problem = parse_note_text(path, found.text)
        hints = _lost_link_hints(
            notes, row.path, keys_of(path, title=note.title, permalink=note.permalink)
        )
        done = NoteChangeResult(
            "moved", path, shown_permalink(note.permalink, path), version, hints
        )
        if path == row.path:
            return done
        repeated_calls.remember(app, notes, call, done, path=row.path, previous_digest=found.digest)
        now_ms = app.clock.now_ms()
        with withdraw_request_on_failure(notes, call):
            moved = notes.folder.move(row.path, path, expected=found.digest)
        if isinstance(moved, FileConflict | CaseCollision | InvalidNotePath):
            repeated_calls.withdraw(notes, call)
            return _move_refusal(notes, row.path, path, found, moved)
        with index_transaction(notes, call):
            notes.index.remove([row.path])
            index_written(notes, path, note, moved, now_ms=now_ms, problem=problem)
            notes.acknowledge_own_write(row.path, None)
        return done


def _move_refusal(
    notes: OpenedNotes,
    before: str,
    path: str,
    found: FileContent,
    refusal: FileConflict | CaseCollision | InvalidNotePath,
) -> NoteRefusal:
    if not isinstance(refusal, FileConflict):
        return write_refusal(path, found.text, refusal)
    now = notes.folder.read(before)
    if isinstance(now, FileContent) and now.digest == found.digest:
        return NotePathTaken(path)
    return NoteNotWritten(
        f"`{before}` was changed in this very moment", "Look at it, and try again."
    )


def _new_path(before: str, to: str) -> str:
    name = before.rpartition("/")[2]
    to = to.strip()
    if to.endswith("/"):
        return f"{to.strip('/')}/{name}" if to.strip("/") else name
    return to if to.endswith(".md") else f"{to}.md"


def _lost_link_hints(
    notes: OpenedNotes, before: str, names: Mapping[str, KeyRank]
) -> tuple[str, ...]:
    """Links that named the old path, and not the title or the permalink, lead nowhere now."""
    linking = notes.index.links_to(before, limit=LINKS_MAX)
    lost = sorted({link.path for link in linking if key_of(link.target) not in names})
    return (f"links to the old name stand in {', '.join(lost)}",) if lost else ()
