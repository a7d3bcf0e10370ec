"""Turns and Diff of a session with unattended work: what was said and done, and what it changed."""

from collections.abc import Iterable

from starlette.routing import Route

from interlock.app.sessions import session_views
from interlock.app.sessions.session_views import ViewedSession
from interlock.app.unattended.journal_views import read_turns
from interlock.app.unattended.worktrees import changes_of
from interlock.core.explanation import Explanation
from interlock.core.ids import NodeId
from interlock.core.session.unattended_control import NotUnattended
from interlock.core.session.unattended_events import UnattendedSteered, steer_key
from interlock.core.unattended.order import UnattendedState
from interlock.core.views.changed_files import changed_files
from interlock.core.views.turns import AddedText, StepStart, TurnRow
from interlock.server.console import Console, Page, PageRequest
from interlock.server.pages.session import read_number, session_page, view_session

TURNS_PER_PAGE = 100
FILES_MAX = 200


def routes(console: Console) -> list[Route]:
    return [
        console.page("/sessions/{session}/turns", turns),
        console.background_page("/sessions/{session}/diff", diff),
    ]


def turns(request: PageRequest) -> Page | Explanation:
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    if viewed.head.unattended is None:
        return NotUnattended(viewed.session).explain()
    before = request.word("before")
    page = read_turns(request.app, viewed.session, before=read_number(before), limit=TURNS_PER_PAGE)
    facts = {
        "page": page,
        "authors": _authors(request, viewed, page.rows),
        "nodes": _step_nodes(request, viewed, page.rows),
        "older": request.without(before=str(page.older)) if page.older else "",
        "newest": request.without("before") if before else "",
    }
    return session_page(request, viewed, "turns", facts)


def diff(request: PageRequest) -> Page | Explanation:
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    state = viewed.head.unattended
    if state is None:
        return NotUnattended(viewed.session).explain()
    files = changed_files(changes_of(state))
    facts = {
        "files": files[:FILES_MAX],
        "more_files": max(0, len(files) - FILES_MAX),
        "added": sum(file.added for file in files),
        "removed": sum(file.removed for file in files),
        "why_none": "" if files else _why_none(state),
    }
    return session_page(request, viewed, "diff", facts)


def _authors(
    request: PageRequest, viewed: ViewedSession, rows: Iterable[TurnRow]
) -> dict[str, UnattendedSteered]:
    """The messages of people among the rows, as they were written, by their ids."""
    names = [row.added.steer for row in rows if isinstance(row, AddedText) and row.added.steer]
    said = request.app.reader.events_with_keys(viewed.session, [steer_key(one) for one in names])
    events = (one.event for one in said.values())
    return {event.steer: event for event in events if isinstance(event, UnattendedSteered)}


def _step_nodes(
    request: PageRequest, viewed: ViewedSession, rows: Iterable[TurnRow]
) -> dict[int, NodeId]:
    """The node at which each step that begins here was pending, by the number of its row."""
    nodes = session_views.read_nodes(request.app, viewed)
    found: dict[int, NodeId] = {}
    for row in rows:
        if not isinstance(row, StepStart):
            continue
        for node in reversed(nodes.placed):
            is_step = node.run == row.begun.run and node.created.step_id == row.begun.step
            if is_step and node.at_ms <= row.at_ms:
                found[row.seq] = node.id
                break
    return found


def _why_none(state: UnattendedState) -> str:
    if not state.worktree:
        return "Its worktree is made when the work begins."
    if state.order.is_read_only:
        return "It was asked for read-only: its tools change nothing."
    if state.is_over:
        branch = f" What was committed is on the branch {state.branch}." if state.branch else ""
        return f"It has changed nothing, or its worktree is gone.{branch}"
    return "Nothing is changed yet."
