"""Notes: what the projects know, to search and to look through, one of them or all."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from interlock.app.notes.all_projects import (
    browse_all_notes,
    known_project,
    known_projects,
    with_notes,
)
from interlock.app.notes.browse import NoteListPage, browse_notes
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.search import NoteFilter, NoteQuery
from interlock.core.explanation import Explanation
from interlock.core.notes import fts_query
from interlock.core.notes.note import NoteStatus
from interlock.server.console import Console, Page, PageRequest
from interlock.server.formatting import path_tail
from interlock.server.http_refusals import status_of
from interlock.server.pages.note_addresses import briefing_address, note_address, notes_stream

PER_PAGE = 50
PER_PROJECT = 5
PAGE_MAX = 10_000
READ_SECONDS_MAX = 0.5  # other pages wait as long; a first index goes on with the next look
TAGS_SHOWN = 5
FILTERS = ("q", "type", "tag", "status", "folder")
STATUSES: dict[NoteStatus, tuple[str, str]] = {
    "open": ("soft", "dot"),
    "active": ("busy", "work"),
    "blocked": ("bad", "blocked"),
    "done": ("good", "done"),
    "closed": ("soft", "archive"),
}
"""The tone and the icon of each."""


def routes(console: Console) -> list[Route]:
    return [console.page("/notes", notes)]


def notes(request: PageRequest) -> Page:
    project, projects = request.word("in"), known_projects(request.app)
    noted = with_notes(request.app, projects)
    names = _names(projects)
    facts: dict[str, Any] = {
        "asked": request,
        "project": project,
        "projects": [(names[one], one) for one in noted],
        "other_projects": [(names[one], one) for one in projects if one not in noted],
        "row_id": _row_id,
        "problem": None,
        "overview": None,
        "choices": {},
        "statuses": STATUSES,
        "tags_shown": TAGS_SHOWN,
        "is_filtered": any(request.word(name) for name in FILTERS),
        "why": request.word("explain") == "yes",
        "to": NotesPageLink(request),
        "note_at": note_address,
        "briefing_at": briefing_address,
        "parts": partial(fts_query.split_at_matches, query=request.word("q")),
    }
    if project:
        return _project_notes(request, project, facts)
    stream = notes_stream(request, *map(Path, noted)) if noted else ""
    query = _query(request, limit=PER_PROJECT)
    overview = browse_all_notes(request.app, noted, query)
    facts |= {"overview": overview, "names": names}
    return Page("notes.html", "Notes", facts, stream=stream)


def _project_notes(request: PageRequest, project: str, facts: dict[str, Any]) -> Page:
    seen = open_project_notes(request, project)
    if isinstance(seen.notes, Explanation):
        return _problem(facts, seen.notes, seen.stream)
    page = page_number(request)
    listing = browse_notes(request.app, seen.notes, _query(request, page=page))
    if not isinstance(listing, NoteListPage):
        return _problem(facts, listing.explain(), seen.stream)
    facts |= {
        "found": listing,
        "choices": {
            "type": listing.choices.types,
            "status": listing.choices.statuses,
            "tag": listing.choices.tags,
            "folder": listing.choices.directories,
        },
        "folder": str(seen.notes.folder.root),
        "page": page,
    }
    return Page("notes.html", "Notes", facts, stream=seen.stream)


class ProjectNotes(NamedTuple):
    notes: OpenedNotes | Explanation
    stream: str
    """The address of the stream of changes from now on; empty where the page may not look."""


def open_project_notes(request: PageRequest, project: str) -> ProjectNotes:
    """The notes of a project. An address cannot name just any directory."""
    known = known_project(request.app, project)
    if isinstance(known, Explanation):
        return ProjectNotes(known, "")
    outcome = open_notes(request.app, known)
    if isinstance(outcome, OpenedNotes):
        outcome.refresh(request.app, seconds_max=READ_SECONDS_MAX)
    stream = notes_stream(request, known)
    return ProjectNotes(outcome if isinstance(outcome, OpenedNotes) else outcome.explain(), stream)


class NotesPageLink:
    """This page with other filters, or with another project."""

    def __init__(self, request: PageRequest) -> None:
        names = ("in", *FILTERS, "explain")
        self._unchanged = {name: request.word(name) for name in names if request.word(name)}

    def __call__(self, project: str | None = None, **changed: object) -> str:
        query = self._unchanged | {name: str(value) for name, value in changed.items()}
        if project is not None and project != query.get("in", ""):
            query |= {"in": project, "folder": ""}
        query = {name: value for name, value in query.items() if value}
        return f"/notes?{urlencode(query, errors='replace')}" if query else "/notes"

    def without_filters(self) -> str:
        return self(**dict.fromkeys((*FILTERS, "explain"), ""))


def _names(projects: Sequence[str]) -> dict[str, str]:
    """For each project the last part of its path; the whole path where others end alike."""
    counts = Counter(map(path_tail, projects))
    return {one: path_tail(one) if counts[path_tail(one)] == 1 else one for one in projects}


def _row_id(project: str, path: str) -> str:
    """The id of the row of a note on the page, whose path may have anything in it."""
    name = f"{project}\0{path}".encode("utf-8", "surrogatepass")
    return f"note-{hashlib.blake2b(name, digest_size=6).hexdigest()}"


def _problem(facts: dict[str, Any], problem: Explanation, stream: str) -> Page:
    """A page that shows the problem, and on which another project can be chosen."""
    status = status_of(problem.code)
    return Page("notes.html", "Notes", facts | {"problem": problem}, stream=stream, status=status)


def _query(request: PageRequest, *, limit: int = PER_PAGE, page: int = 1) -> NoteQuery:
    type_, tag, status = request.word("type"), request.word("tag"), request.word("status")
    folder = request.word("folder").strip("/")
    wanted = NoteFilter(
        types=(type_,) if type_ else (),
        tags=(tag,) if tag else (),
        statuses=(status,) if status else (),
        prefix=f"{folder}/" if folder else "",
    )
    is_explained = request.word("explain") == "yes"
    return NoteQuery(request.word("q"), wanted, limit, page, is_explained=is_explained)


def page_number(request: PageRequest) -> int:
    """The number of the page asked for, from 1; the first if that is no number."""
    text = request.word("page")
    is_number = text.isascii() and text.isdigit() and len(text) < 6  # noqa: PLR2004
    return min(max(int(text), 1), PAGE_MAX) if is_number else 1
