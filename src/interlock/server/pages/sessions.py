"""Sessions: the list of all of them, to filter, to search, and to put aside several at once."""

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec
from starlette.routing import Route

from interlock.app.runs import user_actions
from interlock.app.runs.waiting import SessionWait, wait_in_session
from interlock.app.sessions.lookup import (
    STATUS_FILTERS,
    ListedSession,
    SessionFilter,
    SessionGroup,
    session_groups,
    session_page,
    title_of,
)
from interlock.app.sessions.search import SearchHit, SearchResult, search
from interlock.app.sessions.statuses import Observer
from interlock.core.ids import SessionId
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.server.console import Console, Page, PageRedirect, PageRequest

PER_PAGE = 50
HITS_MAX = 100
PROJECTS_SHOWN = 8
PICKED = "pick-"
"""The fields of the form that name selected sessions begin with it."""
STATUSES = {
    "": ("all", SessionFilter()),
    **{name: (name, chosen) for name, chosen in STATUS_FILTERS.items()},
    "waiting": ("waiting for you", STATUS_FILTERS["waiting"]),
    "archived": ("archived", SessionFilter(is_archived=True)),
}
_FILTERS = {"q", "status", "workflow", "project"}


class SessionListRow(msgspec.Struct, frozen=True):
    session: str
    head: Head
    run: RunHead | None
    """The newest one."""
    title: str
    more: int
    """The number of runs besides the newest."""
    wait: SessionWait
    notes: tuple[SearchHit, ...]
    """The submitted notes that the search has found in it."""


class FilterChip(msgspec.Struct, frozen=True):
    """A filter, with the number of sessions that it would show."""

    name: str
    address: str
    """The list with this filter, or without it if it is in use."""
    count: int | None
    """None where the search has not looked."""
    is_current: bool
    meaning: str = ""


class RowGroup(msgspec.Struct, frozen=True):
    workspace: str
    """Empty where all rows are one group."""
    rows: tuple[SessionListRow, ...]


def routes(console: Console) -> list[Route]:
    return [
        console.page("/sessions", sessions),
        console.action("/sessions/archive", archive_several),
    ]


def sessions(request: PageRequest) -> Page:
    app, project = request.app, request.word("project")
    status = request.word("status") if request.word("status") in STATUSES else ""
    is_archived = STATUSES[status][1].is_archived is True
    query = request.word("q").strip()
    result = search(app, query, limit=HITS_MAX, is_archived=is_archived) if query else None
    ranks = _rank_sessions(result) if result else None
    everything = SessionFilter(
        workflow=request.word("workflow"),
        is_archived=is_archived if query else None,
        sessions=tuple(ranks) if ranks is not None else None,
    )
    wanted = msgspec.structs.replace(
        STATUSES[status][1],
        workflow=everything.workflow,
        workspace=project,
        sessions=everything.sessions,
    )
    page = session_page(
        app, wanted, after=request.word("after"), limit=HITS_MAX if query else PER_PAGE
    )
    observer = Observer(app)
    rows = [
        _row(listed, ranks[listed.session] if ranks else (), observer) for listed in page.sessions
    ]
    if ranks:
        order = list(ranks)
        rows.sort(key=lambda row: order.index(SessionId(row.session)))
    groups = session_groups(app, everything)
    return Page(
        "sessions.html",
        "Sessions",
        {
            "groups": _by_project(rows) if request.word("group") else [RowGroup("", tuple(rows))],
            "statuses": _status_chips(request, groups, status, project),
            "projects": _project_chips(request, groups, STATUSES[status][1], project),
            "projects_shown": PROJECTS_SHOWN,
            "result": result,
            "next": request.without(after=page.next) if page.next else "",
            "first": request.without("after") if request.word("after") else "",
            "asked": request,
            "several": f"/sessions/archive?{urlencode(request.query)}",
            "is_archived": is_archived,
            "is_filtered": bool(request.query.keys() & _FILTERS),
        },
        live="",
    )


def archive_several(request: PageRequest) -> PageRedirect:
    """Archive the selected sessions, or bring them back. One that is gone by now is passed over."""
    is_archived = request.word("to") != "list"
    for name in request.form:
        if name.startswith(PICKED):
            user_actions.set_archived(
                request.app, name.removeprefix(PICKED), is_archived=is_archived
            )
    query = urlencode({name: word for name, word in request.query.items() if name != "after"})
    message = "several_archived" if is_archived else "several_unarchived"
    return PageRedirect(f"/sessions?{query}" if query else "/sessions", message)


def _rank_sessions(result: SearchResult) -> dict[SessionId, tuple[SearchHit, ...]]:
    """The sessions with hits, the best first, each with what was found in its notes."""
    ranks: dict[SessionId, tuple[SearchHit, ...]] = {}
    for hit in result.hits:
        in_notes = (hit,) if hit.kind == "notes" else ()
        ranks[hit.session] = (*ranks.get(hit.session, ()), *in_notes)
    return ranks


def _status_chips(
    request: PageRequest, groups: Sequence[SessionGroup], status: str, project: str
) -> list[FilterChip]:
    return [
        FilterChip(
            name,
            request.without("after", status="" if key == status else key),
            sum(g.count for g in groups if _fits(g, wanted) and project in ("", g.workspace))
            if wanted.is_archived is STATUSES[status][1].is_archived or not request.word("q")
            else None,
            key == status,
        )
        for key, (name, wanted) in STATUSES.items()
    ]


def _project_chips(
    request: PageRequest, groups: Sequence[SessionGroup], wanted: SessionFilter, project: str
) -> list[FilterChip]:
    """A filter for each project, the one in use first, then those in which work was done last."""
    counts = {project: 0} if project else dict[str, int]()
    for group in sorted(groups, key=lambda group: -group.updated_ms):
        count = group.count if _fits(group, wanted) else 0
        counts[group.workspace] = counts.get(group.workspace, 0) + count
    return [
        FilterChip(
            workspace.rstrip("/").rpartition("/")[2] or workspace,
            request.without("after", project="" if workspace == project else workspace),
            count,
            workspace == project,
            workspace,
        )
        for workspace, count in counts.items()
    ]


def _fits(group: SessionGroup, wanted: SessionFilter) -> bool:
    return (
        group.is_archived is wanted.is_archived
        and (not wanted.statuses or group.status in wanted.statuses)
        and wanted.needs_user in (None, group.needs_user)
    )


def _by_project(rows: Sequence[SessionListRow]) -> list[RowGroup]:
    grouped: dict[str, list[SessionListRow]] = {}
    for row in rows:
        grouped.setdefault(row.head.workspace, []).append(row)
    return [RowGroup(workspace, tuple(members)) for workspace, members in grouped.items()]


def _row(listed: ListedSession, notes: tuple[SearchHit, ...], observer: Observer) -> SessionListRow:
    head, run = listed.head, listed.latest_run
    return SessionListRow(
        session=listed.session,
        head=head,
        run=run,
        title=title_of(run, head),
        more=max(0, head.run_count - 1),
        wait=wait_in_session(listed, observer.status(listed.session, head, run)),
        notes=notes,
    )
