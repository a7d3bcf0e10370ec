"""Look through the notes of a project: a page of them, and what there is to choose from."""

import os
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.notes.project_notes import OpenedNotes, Place, open_notes, place_of
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.results import Described, Hit, Hits
from interlock.app.notes.search import Search, described, search
from interlock.app.notes.write_and_index import told
from interlock.core.ids import SessionId
from interlock.store.notes.rows import FilterChoices, IndexCounts

CHOICES_MAX = 100
OF_SESSION_MAX = 20


class Listed(msgspec.Struct, frozen=True):
    hit: Hit
    linked_from: int
    """How many other notes name it."""


class Browsed(msgspec.Struct, frozen=True):
    rows: tuple[Listed, ...]
    is_loose: bool
    has_more: bool
    pending: int
    counts: IndexCounts
    """Of all notes, whatever was asked for."""
    choices: FilterChoices
    unreadable: tuple[str, ...]
    """What could not be looked at; an empty path is the folder itself."""


@told
def browse(app: App, notes: OpenedNotes, asked: Search) -> Browsed | NoteRefusal:
    hits = search(app, notes, asked)
    if not isinstance(hits, Hits):
        return hits
    linked = notes.index.backlink_counts([hit.note.path for hit in hits.hits])
    return Browsed(
        tuple(Listed(hit, linked.get(hit.note.path, 0)) for hit in hits.hits),
        hits.is_loose,
        hits.has_more,
        hits.pending,
        notes.index.counts(),
        notes.index.filter_choices(limit=CHOICES_MAX),
        notes.synced.unreadable,
    )


def notes_of_session(app: App, workspace: str, session: SessionId) -> tuple[Described, ...]:
    """Notes whose frontmatter names the session, as far as the index knows them already.

    The files are not looked at: a session's page is shown at every step of it. For the same reason
    nothing about notes can keep that page from being shown.
    """
    try:
        place = place_of(app.home, Path(workspace))
        if not isinstance(place, Place) or not os.path.isdir(place.folder):
            return ()
        notes = open_notes(app, Path(workspace))
        if not isinstance(notes, OpenedNotes):
            return ()
        rows = notes.index.find_by_frontmatter("session", session, limit=OF_SESSION_MAX)
    except (StoreFailure, OSError):
        return ()
    return tuple(described(row) for row in rows)
