"""Browse the notes of a project: one page of them, and the values to filter by."""

import os
from pathlib import Path

import msgspec
from msgspec.structs import astuple

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.results import NoteSearchHit, NoteSearchResult, NoteSummary
from interlock.app.notes.search import NoteQuery, note_summary, search
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal
from interlock.store.notes.rows import FilterChoices, IndexCounts

CHOICES_MAX = 100
SESSION_NOTES_MAX = 20


class NoteListRow(msgspec.Struct, frozen=True):
    hit: NoteSearchHit
    linked_from: int
    """The number of notes that link to it."""


class NoteListPage(msgspec.Struct, frozen=True):
    rows: tuple[NoteListRow, ...]
    is_loose: bool
    has_more: bool
    pending: int
    counts: IndexCounts
    """The counts of all notes, whatever the query."""
    choices: FilterChoices
    unreadable: tuple[str, ...]
    """Paths that could not be scanned; an empty path is the folder itself."""


class SessionNote(NoteSummary, frozen=True):
    """A note that was written in a session."""

    node: str = ""
    """The node that was pending then, as the note names it: anybody may have written that."""


@refuse_on_disk_failure
def browse_notes(app: App, notes: OpenedNotes, query: NoteQuery) -> NoteListPage | Refusal:
    result = search(app, notes, query)
    if not isinstance(result, NoteSearchResult):
        return result
    backlinks = notes.index.backlink_counts([hit.note.path for hit in result.hits])
    return NoteListPage(
        tuple(NoteListRow(hit, backlinks.get(hit.note.path, 0)) for hit in result.hits),
        result.is_loose,
        result.has_more,
        result.pending,
        notes.index.counts(),
        notes.index.filter_choices(limit=CHOICES_MAX),
        notes.last_sync.unreadable,
    )


def notes_of_session(app: App, workspace: str, session: SessionId) -> tuple[SessionNote, ...]:
    """Return the notes whose frontmatter names the session, as far as they are indexed already.

    The files are not scanned: the page of a session is rendered at every step of it. For the same
    reason no failure of the notes can keep that page from being shown.
    """
    try:
        location = notes_location(app.home, Path(workspace))
        if not isinstance(location, NotesLocation) or not os.path.isdir(location.folder):
            return ()
        notes = open_notes(app, Path(workspace))
        if not isinstance(notes, OpenedNotes):
            return ()
        rows = notes.index.find_by_frontmatter("session", session, limit=SESSION_NOTES_MAX)
    except (StoreFailure, OSError):
        return ()
    return tuple(
        SessionNote(*astuple(note_summary(row)), node=str(row.front.get("node") or ""))
        for row in rows
    )
