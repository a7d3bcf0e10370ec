"""Look through the notes of a project: a page of them, and what there is to choose from."""

import os
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.notes.project_notes import NotesLocation, OpenedNotes, notes_location, open_notes
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.results import NoteSearchHit, NoteSearchResult, NoteSummary
from interlock.app.notes.search import NoteQuery, note_summary, search
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.ids import SessionId
from interlock.store.notes.rows import FilterChoices, IndexCounts

CHOICES_MAX = 100
SESSION_NOTES_MAX = 20


class NoteListRow(msgspec.Struct, frozen=True):
    hit: NoteSearchHit
    linked_from: int
    """How many other notes name it."""


class NoteListPage(msgspec.Struct, frozen=True):
    rows: tuple[NoteListRow, ...]
    is_loose: bool
    has_more: bool
    pending: int
    counts: IndexCounts
    """Of all notes, whatever was asked for."""
    choices: FilterChoices
    unreadable: tuple[str, ...]
    """What could not be looked at; an empty path is the folder itself."""


@refuse_on_disk_failure
def browse_notes(app: App, notes: OpenedNotes, query: NoteQuery) -> NoteListPage | NoteRefusal:
    hits = search(app, notes, query)
    if not isinstance(hits, NoteSearchResult):
        return hits
    linked = notes.index.backlink_counts([hit.note.path for hit in hits.hits])
    return NoteListPage(
        tuple(NoteListRow(hit, linked.get(hit.note.path, 0)) for hit in hits.hits),
        hits.is_loose,
        hits.has_more,
        hits.pending,
        notes.index.counts(),
        notes.index.filter_choices(limit=CHOICES_MAX),
        notes.last_sync.unreadable,
    )


def notes_of_session(app: App, workspace: str, session: SessionId) -> tuple[NoteSummary, ...]:
    """Notes whose frontmatter names the session, as far as the index knows them already.

    The files are not looked at: a session's page is shown at every step of it. For the same reason
    nothing about notes can keep that page from being shown.
    """
    try:
        place = notes_location(app.home, Path(workspace))
        if not isinstance(place, NotesLocation) or not os.path.isdir(place.folder):
            return ()
        notes = open_notes(app, Path(workspace))
        if not isinstance(notes, OpenedNotes):
            return ()
        rows = notes.index.find_by_frontmatter("session", session, limit=SESSION_NOTES_MAX)
    except (StoreFailure, OSError):
        return ()
    return tuple(note_summary(row) for row in rows)
