"""Notes: what a project knows, to look through and to search."""

from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from interlock.app.notes.browse import NoteListPage, browse_notes
from interlock.app.notes.polling import notes_state
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.projects import known_project, known_projects, newest_project
from interlock.app.notes.search import NoteFilter, NoteQuery
from interlock.core.explanation import Explanation
from interlock.core.notes import fts_query
from interlock.core.notes.note import NoteStatus
from interlock.server.console import Console, Page, PageRequest
from interlock.server.http_refusals import status_of

PER_PAGE = 50
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
    projects = known_projects(request.app)
    project = request.word("in") or newest_project(request.app, projects)
    facts: dict[str, Any] = {
        "asked": request,
        "project": project,
        "projects": projects,
        "problem": None,
        "found": None,
        "statuses": STATUSES,
        "tags_shown": TAGS_SHOWN,
        "is_filtered": any(request.word(name) for name in FILTERS),
        "to": _NotesPageLink(request, project),
        "note_at": partial(note_address, project),
        "parts": partial(fts_query.split_at_matches, query=request.word("q")),
    }
    if not project:
        return Page("notes.html", "Notes", facts)
    seen = open_project_notes(request, project)
    if isinstance(seen.notes, Explanation):
        return _problem(facts, seen.notes, seen.stream)
    page = page_number(request)
    listing = browse_notes(request.app, seen.notes, _search(request, page))
    if not isinstance(listing, NoteListPage):
        return _problem(facts, listing.explain(), seen.stream)
    facts |= {
        "found": listing,
        "folder": str(seen.notes.folder.root),
        "page": page,
        "why": request.word("explain") == "yes",
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
    # Before anything is read: what changes while the page is made is told to it.
    state = notes_state(request.app, known)
    stream = f"/live/notes?{urlencode({'in': project, 'since': state})}"
    return ProjectNotes(outcome if isinstance(outcome, OpenedNotes) else outcome.explain(), stream)


def note_address(project: str, path: str, **more: str) -> str:
    return f"/notes/note?{urlencode({'in': project, 'path': path, **more}, errors='replace')}"


def notes_address(project: str, **more: str) -> str:
    return f"/notes?{urlencode({'in': project, **more}, errors='replace')}"


class _NotesPageLink:
    """This page with other filters, and always with its project: the newest may be another soon."""

    def __init__(self, request: PageRequest, project: str) -> None:
        names = (*FILTERS, "explain")
        self._kept = {name: request.word(name) for name in names if request.word(name)}
        self._project = project

    def __call__(self, **changed: object) -> str:
        whole = self._kept | {name: str(value) for name, value in changed.items()}
        return notes_address(self._project, **{k: v for k, v in whole.items() if v})


def _problem(facts: dict[str, Any], problem: Explanation, stream: str) -> Page:
    """A page that shows the problem, and on which another project can be chosen."""
    status = status_of(problem.code)
    return Page("notes.html", "Notes", facts | {"problem": problem}, stream=stream, status=status)


def _search(request: PageRequest, page: int) -> NoteQuery:
    type_, tag, status = request.word("type"), request.word("tag"), request.word("status")
    folder = request.word("folder").strip("/")
    wanted = NoteFilter(
        types=(type_,) if type_ else (),
        tags=(tag,) if tag else (),
        statuses=(status,) if status else (),
        prefix=f"{folder}/" if folder else "",
    )
    is_explained = request.word("explain") == "yes"
    return NoteQuery(request.word("q"), wanted, PER_PAGE, page, is_explained=is_explained)


def page_number(request: PageRequest) -> int:
    """The number of the page asked for, from 1; the first if that is no number."""
    text = request.word("page")
    is_number = text.isascii() and text.isdigit() and len(text) < 6  # noqa: PLR2004
    return min(max(int(text), 1), PAGE_MAX) if is_number else 1
