"""Sessions: the list that the console opens with."""

import msgspec
from starlette.routing import Route

from interlock.app.runs.waiting import SessionWait, wait_in_session
from interlock.app.sessions.lookup import ListedSession, SessionFilter, session_page, title_of
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.server.console import Console, Page, PageRequest

PER_PAGE = 50
STATUSES = ("open", "waiting", "complete", "complete_with_gaps", "abandoned")


class SessionListRow(msgspec.Struct, frozen=True):
    session: str
    head: Head
    run: RunHead | None
    """The newest one."""
    title: str
    more: int
    """The number of runs besides the newest."""
    wait: SessionWait


def routes(console: Console) -> list[Route]:
    return [console.page("/sessions", sessions)]


def sessions(request: PageRequest) -> Page:
    status = request.word("status")
    wanted = SessionFilter(
        words=tuple(request.word("q").split())[:10],
        statuses=(status,) if status in STATUSES else (),
        workflow=request.word("workflow"),
        workspace=request.word("project"),
        is_archived=status == "archived",
    )
    page = session_page(request.app, wanted, after=request.word("after"), limit=PER_PAGE)
    rows = [_row(listed) for listed in page.sessions]
    return Page(
        "sessions.html",
        "Sessions",
        {
            "rows": rows,
            "next": request.without(after=page.next) if page.next else "",
            "first": request.without("after") if request.word("after") else "",
            "asked": request,
            "statuses": [{"key": s, "word": s} for s in (*STATUSES, "archived")],
            "is_filtered": bool(request.query.keys() & {"q", "status", "workflow", "project"}),
        },
        live="",
    )


def _row(listed: ListedSession) -> SessionListRow:
    head, run = listed.head, listed.latest_run
    return SessionListRow(
        listed.session,
        head,
        run,
        title_of(run),
        max(0, head.run_count - 1),
        wait_in_session(listed),
    )
