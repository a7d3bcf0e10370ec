"""The notes of all known projects: the newest of each, or those that a search finds there.

Scores of one project mean nothing beside those of another, so each has a list of its own. A page
waits for this: what takes too long is left for the next look, and said.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.notes.browse import NoteListPage, browse_notes
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.search import NoteQuery

PROJECTS_MAX = 30  # fewer than may be open at once, so that no page closes what it opens again
SECONDS_MAX = 1.0


class ProjectListing(msgspec.Struct, frozen=True):
    project: str
    listing: NoteListPage


class NotesOverview(msgspec.Struct, frozen=True):
    listings: tuple[ProjectListing, ...]
    """Those with a note to show; for a search those that have all its words, if there are any."""
    unread: tuple[str, ...]
    """Projects whose notes could not be looked at, or not in time."""


def with_notes(app: App, projects: Sequence[str]) -> list[str]:
    """Return the projects that have a folder of notes, each folder once."""
    by_folder: dict[Path, str] = {}
    for project in projects:
        location = notes_location(app.home, Path(project))
        if isinstance(location, NotesLocation) and os.path.isdir(location.folder):
            by_folder.setdefault(location.folder, project)
    return list(by_folder.values())


def browse_all_notes(app: App, projects: Sequence[str], query: NoteQuery) -> NotesOverview:
    """Return what the query finds in each of these projects, the one with the best note first."""
    deadline = time.monotonic() + SECONDS_MAX
    listings: list[ProjectListing] = []
    unread: list[str] = list(projects[PROJECTS_MAX:])
    for project in projects[:PROJECTS_MAX]:
        seconds_left = deadline - time.monotonic()
        listing = _browse(app, project, query, seconds_left) if seconds_left > 0 else None
        if listing is None:
            unread.append(project)
        else:
            listings.append(ProjectListing(project, listing))
    with_rows = [one for one in listings if one.listing.rows]
    strict = [one for one in with_rows if not one.listing.is_loose] or with_rows
    strict.sort(key=_rank, reverse=True)
    return NotesOverview(tuple(strict), tuple(unread))


def _rank(one: ProjectListing) -> tuple[float, int]:
    """The score of its best note, and the time of its newest: without words there is no score."""
    hits = [row.hit for row in one.listing.rows]
    return max(hit.score for hit in hits), max(hit.note.modified_ms for hit in hits)


def _browse(app: App, project: str, query: NoteQuery, seconds_left: float) -> NoteListPage | None:
    try:
        notes = open_notes(app, Path(project))
        if not isinstance(notes, OpenedNotes):
            return None
        listing = browse_notes(app, notes, msgspec.structs.replace(query, seconds_max=seconds_left))
    except StoreFailure:
        return None
    return listing if isinstance(listing, NoteListPage) else None
