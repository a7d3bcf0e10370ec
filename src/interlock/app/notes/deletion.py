"""Delete a note whose current version the caller has read."""

from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteChanged, VersionRequired
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.write_and_index import (
    index_transaction,
    refuse_on_disk_failure,
    shown_permalink,
    truncate_lines,
    withdraw_request_on_failure,
    write_refusal,
)
from interlock.core.notes.versions import version_matches, version_of
from interlock.core.refusal import Refusal
from interlock.workspace.files.atomic_file import FileConflict
from interlock.workspace.files.sandboxed_path import InvalidNotePath

LINKS_MAX = 100
LINKS_SHOWN_MAX = 5


@refuse_on_disk_failure
def remove_note(
    app: App, notes: OpenedNotes, identifier: str, version: str, call: RequestKey | None = None
) -> NoteChangeResult | Refusal:
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
    links = notes.index.links_to(path, limit=LINKS_MAX)
    linking_paths = sorted({link.path for link in links} - {path})
    if not linking_paths:
        return ()
    shown = ", ".join(linking_paths[:LINKS_SHOWN_MAX])
    hidden_count = len(linking_paths) - LINKS_SHOWN_MAX
    more = f" and {hidden_count} more" if hidden_count > 0 else ""
    return (f"{shown}{more} still link to it",)
