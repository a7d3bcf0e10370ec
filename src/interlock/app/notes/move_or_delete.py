"""Move a note, or delete one whose current version the caller has read.

A permalink that is written in its frontmatter stays, and links to it keep working. One that is
derived from the path changes with it: moving a note does not change the text of any file.
"""

from collections.abc import Mapping

from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteChanged, NoteNotWritten, NotePathTaken, VersionRequired
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.sync import parse_note_text
from interlock.app.notes.write_and_index import (
    index_transaction,
    index_written,
    refuse_on_disk_failure,
    shown_permalink,
    truncate_lines,
    withdraw_request_on_failure,
    write_refusal,
)
from interlock.core.notes.keys import KeyRank, key_of, keys_of
from interlock.core.notes.versions import version_matches, version_of
from interlock.core.refusal import Refusal
from interlock.workspace.files.atomic_file import FileConflict, FileContent
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects.notes_folder import CaseCollision

LINKS_MAX = 20
CHECKED_LINKS_MAX, LINKS_SHOWN_MAX = 100, 5


@refuse_on_disk_failure
def rename_note(
    app: App, notes: OpenedNotes, identifier: str, to: str, call: RequestKey | None = None
) -> NoteChangeResult | Refusal:
    """Move the note to `to`: a path, or a folder if it ends with a slash."""
    notes.refresh(app)
    with notes.lock.hold():
        if (earlier_result := repeated_calls.find_earlier_result(app, notes, call)) is not None:
            return earlier_result
        lookup = find_note_file(notes, identifier)
        if not isinstance(lookup, tuple):
            return lookup
        row, note_file = lookup
        path = _new_path(row.path, to)
        version = version_of(note_file.digest)
        note, problem = parse_note_text(path, note_file.text)
        hints = _lost_link_hints(
            notes, row.path, keys_of(path, title=note.title, permalink=note.permalink)
        )
        result = NoteChangeResult(
            "moved", path, shown_permalink(note.permalink, path), version, hints
        )
        if path == row.path:
            return result
        repeated_calls.remember(
            app, notes, call, result, path=row.path, previous_digest=note_file.digest
        )
        now_ms = app.clock.now_ms()
        with withdraw_request_on_failure(notes, call):
            moved_file = notes.folder.move(row.path, path, expected=note_file.digest)
        if isinstance(moved_file, FileConflict | CaseCollision | InvalidNotePath):
            repeated_calls.withdraw(notes, call)
            return _move_refusal(notes, row.path, path, note_file, moved_file)
        with index_transaction(notes, call):
            notes.index.remove([row.path])
            index_written(notes, path, note, moved_file, now_ms=now_ms, problem=problem)
            notes.acknowledge_own_write(row.path, None)
        return result


def _move_refusal(
    notes: OpenedNotes,
    old_path: str,
    path: str,
    note_file: FileContent,
    refusal: FileConflict | CaseCollision | InvalidNotePath,
) -> Refusal:
    if not isinstance(refusal, FileConflict):
        return write_refusal(path, note_file.text, refusal)
    current_file = notes.folder.read(old_path)
    if isinstance(current_file, FileContent) and current_file.digest == note_file.digest:
        return NotePathTaken(path)
    return NoteNotWritten(
        f"`{old_path}` was changed in this very moment", "Look at it, and try again."
    )


def _new_path(old_path: str, to: str) -> str:
    name = old_path.rpartition("/")[2]
    to = to.strip()
    if to.endswith("/"):
        return f"{to.strip('/')}/{name}" if to.strip("/") else name
    return to if to.endswith(".md") else f"{to}.md"


def _lost_link_hints(
    notes: OpenedNotes, old_path: str, names: Mapping[str, KeyRank]
) -> tuple[str, ...]:
    """Return a hint about links that use the old path, not the title or the permalink.

    They lead nowhere after the move.
    """
    links = notes.index.links_to(old_path, limit=LINKS_MAX)
    linking_paths = sorted({link.path for link in links if key_of(link.target) not in names})
    if not linking_paths:
        return ()
    return (f"links to the old name stand in {', '.join(linking_paths)}",)


@refuse_on_disk_failure
def remove_note(
    app: App, notes: OpenedNotes, identifier: str, version: str, call: RequestKey | None = None
) -> NoteChangeResult | Refusal:
    """Delete the note, if `version` is its current one."""
    notes.refresh(app)
    with notes.lock.hold():
        if (earlier_result := repeated_calls.find_earlier_result(app, notes, call)) is not None:
            return earlier_result
        lookup = find_note_file(notes, identifier)
        if not isinstance(lookup, tuple):
            return lookup
        row, note_file = lookup
        if not version:
            return VersionRequired(row.path, version_of(note_file.digest), "deleting a note")
        if not version_matches(version, note_file.digest):
            current_text = truncate_lines(note_file.text.splitlines())
            return NoteChanged(row.path, version_of(note_file.digest), current_text=current_text)
        permalink = shown_permalink(row.permalink, row.path)
        result = NoteChangeResult(
            "deleted", row.path, permalink, "", _dangling_link_hints(notes, row.path)
        )
        repeated_calls.remember(
            app, notes, call, result, path=row.path, previous_digest=note_file.digest
        )
        with withdraw_request_on_failure(notes, call):
            deletion = notes.folder.delete(row.path, expected=note_file.digest)
        if isinstance(deletion, FileConflict | InvalidNotePath):
            repeated_calls.withdraw(notes, call)
            return write_refusal(row.path, "", deletion)
        with index_transaction(notes, call):
            notes.index.remove([row.path])
            notes.acknowledge_own_write(row.path, None)
        return result


def _dangling_link_hints(notes: OpenedNotes, path: str) -> tuple[str, ...]:
    links = notes.index.links_to(path, limit=CHECKED_LINKS_MAX)
    linking_paths = sorted({link.path for link in links} - {path})
    if not linking_paths:
        return ()
    shown = ", ".join(linking_paths[:LINKS_SHOWN_MAX])
    hidden_count = len(linking_paths) - LINKS_SHOWN_MAX
    more = f" and {hidden_count} more" if hidden_count > 0 else ""
    return (f"{shown}{more} still link to it",)
