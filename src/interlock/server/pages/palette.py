"""The palette: whatever somebody types, the places that it may mean, best first."""

from collections.abc import Sequence

import msgspec
from starlette.routing import Route

from interlock.app.context import App
from interlock.app.notes.all_projects import browse_all_notes, with_notes
from interlock.app.notes.search import NoteQuery
from interlock.app.sessions.known_workspaces import known_workspaces
from interlock.app.sessions.lookup import SessionFilter, session_page, title_of
from interlock.app.sessions.search import search
from interlock.server.console import Console, Page, PageRequest
from interlock.server.formatting import path_tail
from interlock.server.pages.note_addresses import note_address

HITS_MAX = 12
RECENT_MAX = 5
PLACES_MAX = 4
NOTE_PROJECTS_MAX = 5  # the notes of so many are asked
EVENTS_MAX = 20_000  # it looks again at every letter


class PaletteNote(msgspec.Struct, frozen=True):
    title: str
    project: str
    address: str


def routes(console: Console) -> list[Route]:
    return [console.page("/palette", palette)]


def palette(request: PageRequest) -> Page:
    """The options as a part of a page, which the script puts into the dialog."""
    app, query = request.app, request.word("q").strip()
    words = query.lower().split()
    recent = (
        () if query else session_page(app, SessionFilter(), after="", limit=RECENT_MAX).sessions
    )
    workspaces = known_workspaces(app)
    notes = _find_notes(app, workspaces[:NOTE_PROJECTS_MAX], query) if query else []

    def fitting(names: list[str]) -> list[str]:
        return [name for name in names if all(word in name.lower() for word in words)]

    return Page(
        "palette.html",
        "Search",
        {
            "query": query,
            "result": search(app, query, limit=HITS_MAX, events_max=EVENTS_MAX),
            "recent": [
                (each.session, title_of(each.latest_run, each.head), each.head) for each in recent
            ],
            "notes": notes[:PLACES_MAX],
            "projects": fitting(list(workspaces))[:PLACES_MAX] if query else [],
            "workflows": fitting([usage.workflow for usage in app.reader.usage()])[:PLACES_MAX]
            if query
            else [],
        },
    )


def _find_notes(app: App, workspaces: Sequence[str], query: str) -> list[PaletteNote]:
    """The notes with all of the words."""
    overview = browse_all_notes(
        app, with_notes(app, workspaces), NoteQuery(query, limit=PLACES_MAX)
    )
    return [
        PaletteNote(
            row.hit.note.title, path_tail(project), note_address(project, row.hit.note.path)
        )
        for project, listing in ((one.project, one.listing) for one in overview.listings)
        if not listing.is_loose
        for row in listing.rows
    ]
