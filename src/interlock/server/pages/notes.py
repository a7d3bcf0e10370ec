"""Notes: what a project knows, to look through and to search."""

from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.routing import Route

from interlock.app.explanation import Explanation
from interlock.app.notes.browse import NoteListPage, browse_notes
from interlock.app.notes.explain import explain_note_refusal
from interlock.app.notes.polling import notes_state
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.projects import known_project, known_projects, newest_project
from interlock.app.notes.search import NoteFilter, NoteQuery
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


def notes(asked: PageRequest) -> Page:
    projects = known_projects(asked.app)
    project = asked.word("in") or newest_project(asked.app, projects)
    facts: dict[str, Any] = {
        "asked": asked,
        "project": project,
        "projects": projects,
        "problem": None,
        "found": None,
        "statuses": STATUSES,
        "tags_shown": TAGS_SHOWN,
        "is_filtered": any(asked.word(name) for name in FILTERS),
        "to": _NotesPageLink(asked, project),
        "note_at": partial(note_address, project),
        "parts": partial(fts_query.split_at_matches, query=asked.word("q")),
    }
    if not project:
        return Page("notes.html", "Notes", facts)
    seen = open_project_notes(asked, project)
    if isinstance(seen.notes, Explanation):
        return _problem(facts, seen.notes, seen.stream)
    page = page_number(asked)
    found = browse_notes(asked.app, seen.notes, _search(asked, page))
    if not isinstance(found, NoteListPage):
        return _problem(facts, explain_note_refusal(found), seen.stream)
    facts |= {
        "found": found,
        "folder": str(seen.notes.folder.root),
        "page": page,
        "why": asked.word("explain") == "yes",
    }
    return Page("notes.html", "Notes", facts, stream=seen.stream)


class ProjectNotes(NamedTuple):
    notes: OpenedNotes | Explanation
    stream: str
    """What tells the page of changes since now; empty where it may not look."""


def open_project_notes(asked: PageRequest, project: str) -> ProjectNotes:
    """The notes of a project. An address cannot name just any directory."""
    known = known_project(asked.app, project)
    if isinstance(known, Explanation):
        return ProjectNotes(known, "")
    found = open_notes(asked.app, known)
    if isinstance(found, OpenedNotes):
        found.refresh(asked.app, seconds_max=READ_SECONDS_MAX)
    # Before anything is read: what changes while the page is made is told to it.
    state = notes_state(asked.app, known)
    stream = f"/live/notes?{urlencode({'in': project, 'since': state})}"
    return ProjectNotes(
        found if isinstance(found, OpenedNotes) else explain_note_refusal(found), stream
    )


def note_address(project: str, path: str, **more: str) -> str:
    return f"/notes/note?{urlencode({'in': project, 'path': path, **more}, errors='replace')}"


def notes_address(project: str, **more: str) -> str:
    return f"/notes?{urlencode({'in': project, **more}, errors='replace')}"


class _NotesPageLink:
    """This page with other filters, and always with its project: the newest may be another soon."""

    def __init__(self, asked: PageRequest, project: str) -> None:
        names = (*FILTERS, "explain")
        self._kept = {name: asked.word(name) for name in names if asked.word(name)}
        self._project = project

    def __call__(self, **changed: object) -> str:
        whole = self._kept | {name: str(value) for name, value in changed.items()}
        return notes_address(self._project, **{k: v for k, v in whole.items() if v})


def _problem(facts: dict[str, Any], problem: Explanation, stream: str) -> Page:
    """What is wrong, on a page on which another project can be chosen."""
    status = status_of(problem.code)
    return Page("notes.html", "Notes", facts | {"problem": problem}, stream=stream, status=status)


def _search(asked: PageRequest, page: int) -> NoteQuery:
    type_, tag, status = asked.word("type"), asked.word("tag"), asked.word("status")
    folder = asked.word("folder").strip("/")
    wanted = NoteFilter(
        types=(type_,) if type_ else (),
        tags=(tag,) if tag else (),
        statuses=(status,) if status else (),
        prefix=f"{folder}/" if folder else "",
    )
    is_explained = asked.word("explain") == "yes"
    return NoteQuery(asked.word("q"), wanted, PER_PAGE, page, is_explained=is_explained)


def page_number(asked: PageRequest) -> int:
    """Which page is asked for, from 1; the first where that is no number."""
    text = asked.word("page")
    is_number = text.isascii() and text.isdigit() and len(text) < 6  # noqa: PLR2004
    return min(max(int(text), 1), PAGE_MAX) if is_number else 1
