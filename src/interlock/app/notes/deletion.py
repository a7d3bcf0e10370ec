"""Delete a note that the caller has read."""

from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.lookup import find_text
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import (
    NoteChanged,
    NoteRefusal,
    VersionWanted,
)
from interlock.app.notes.results import Done
from interlock.app.notes.write_and_index import (
    bounded,
    not_put,
    settled,
    shown_permalink,
    told,
    withdrawn_if_it_fails,
)
from interlock.core.notes.versions import version_matches, version_of
from interlock.workspace.files.atomic_file import Moved
from interlock.workspace.files.sandboxed_path import Outside

LINKS_MAX = 100
LINKS_SHOWN_MAX = 5


@told
def delete(
    app: App, notes: OpenedNotes, asked: str, version: str, call: RequestKey | None = None
) -> Done | NoteRefusal:
    notes.refresh(app)
    with notes.lock.held():
        if (before := repeated_calls.repeated(app, notes, call)) is not None:
            return before
        meant = find_text(notes, asked)
        if not isinstance(meant, tuple):
            return meant
        row, found = meant
        if not version:
            return VersionWanted(row.path, version_of(found.digest), "deleting a note")
        if not version_matches(version, found.digest):
            there = bounded(found.text.splitlines())
            return NoteChanged(row.path, version_of(found.digest), now=there)
        permalink = shown_permalink(row.permalink, row.path)
        done = Done("deleted", row.path, permalink, "", _left(notes, row.path))
        repeated_calls.remember(app, notes, call, done, path=row.path, before=found.digest)
        with withdrawn_if_it_fails(notes, call):
            gone = notes.folder.delete(row.path, expected=found.digest)
        if isinstance(gone, Moved | Outside):
            repeated_calls.withdraw(notes, call)
            return not_put(row.path, "", gone)
        with settled(notes, call):
            notes.index.remove([row.path])
            notes.overlook(row.path, None)
        return done


def _left(notes: OpenedNotes, path: str) -> tuple[str, ...]:
    links = notes.index.links_to(path, limit=LINKS_MAX)
    linking = sorted({link.path for link in links} - {path})
    if not linking:
        return ()
    shown = ", ".join(linking[:LINKS_SHOWN_MAX])
    more = f" and {len(linking) - LINKS_SHOWN_MAX} more" if len(linking) > LINKS_SHOWN_MAX else ""
    return (f"{shown}{more} still link to it",)
