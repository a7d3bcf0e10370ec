"""One session: the path of a run and its times, its events, and beside them a node closely."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from starlette.routing import Route

from interlock.app.notes.browse import notes_of_session
from interlock.app.protocol.feature_reviews import settled_state
from interlock.app.refusals import NoSuchNode
from interlock.app.runs import user_actions
from interlock.app.sessions import session_views
from interlock.app.sessions.lookup import title_of
from interlock.app.sessions.session_views import ViewedSession
from interlock.core.explanation import Explanation
from interlock.core.gate.state import MODES
from interlock.core.ids import NodeId
from interlock.core.preferences import AUTONOMIES, RISK_POLICIES
from interlock.core.session.state import timestamp
from interlock.core.session.verdict_outcomes import DECISIONS
from interlock.core.views.node_panel import NodePanel
from interlock.core.views.progress_lines import progress_parts
from interlock.core.views.run_nodes import SessionNodes
from interlock.server.console import Console, Page, PageRequest
from interlock.server.pages.note_addresses import note_address
from interlock.server.pages.session_actions import CONFIRMATIONS
from interlock.server.pages.session_place import SessionPlace, place_in_view
from interlock.server.pages.work_view import view_work

EVENTS_PER_PAGE = 100
NODE_TABS = {"handed": "Submitted", "prompt": "Prompt", "context": "Context", "trace": "Trace"}


def routes(console: Console) -> list[Route]:
    return [
        console.page("/sessions/{session}", path),
        console.page("/sessions/{session}/timeline", timeline),
        console.page("/sessions/{session}/events", events),
        console.page("/sessions/{session}/events/{seq}", event),
        console.page("/sessions/{session}/agents", agents),
    ]


def path(request: PageRequest) -> Page | Explanation:
    return _outline_page(request, "path")


def timeline(request: PageRequest) -> Page | Explanation:
    """The same steps, with the time that each took."""
    return _outline_page(request, "timeline")


def _outline_page(request: PageRequest, view: str) -> Page | Explanation:
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    nodes = session_views.read_nodes(request.app, viewed)
    if viewed.run is None:
        return session_page(request, viewed, view, {"outline": None}, nodes)
    place = place_in_view(request, viewed.session, view)
    outline = session_views.outline(
        request.app,
        viewed.run,
        nodes.of_run(viewed.run.run),
        looked_at=NodeId(request.word("node")) if request.word("node") else None,
        opened=place.folds("open"),
        closed=place.folds("shut"),
    )
    details = session_views.outline_details(request.app, viewed.session, viewed.run, outline)
    facts = {"outline": outline, "details": details}
    return session_page(request, viewed, view, facts, nodes if view == "path" else None)


def events(request: PageRequest) -> Page | Explanation:
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    before = request.word("before")
    page = session_views.events(
        request.app,
        viewed,
        before=read_number(before),
        limit=EVENTS_PER_PAGE,
        only_failures=request.word("only") == "failures",
        words=request.word("q"),
    )
    facts = {
        "page": page,
        "older": request.without(before=str(page.next)) if page.next else "",
        "newest": request.without("before") if before else "",
    }
    return session_page(request, viewed, "events", facts)


def event(request: PageRequest) -> Page | Explanation:
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    seq = read_number(request.params["seq"])
    envelope = session_views.event(request.app, viewed, seq) if seq is not None else None
    text = msgspec.json.format(msgspec.json.encode(envelope), indent=2).decode() if envelope else ""
    facts = {"seq": request.params["seq"], "text": text}
    return session_page(request, viewed, "events", facts, template="session_event.html")


def agents(request: PageRequest) -> Page | Explanation:
    """The agent's plan, task list and subagents, and the work that it handed to other agents."""
    viewed = view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    state = settled_state(request.app, viewed.session)
    work = state.orchestrator_workflow
    now = timestamp(request.app.clock.now_ms())
    invocations = [
        (one, _duration(one.started_at, one.completed_at or now))
        for one in reversed(work.agent_history if work else ())
    ]
    own_parts = progress_parts(state.progress)
    facts = {"work": work, "invocations": invocations, "own_parts": own_parts, "words": DECISIONS}
    return session_page(request, viewed, "agents", facts)


def view_session(request: PageRequest) -> ViewedSession | Explanation:
    outcome = session_views.view_session(
        request.app, request.params["session"], request.word("run")
    )
    return outcome if isinstance(outcome, ViewedSession) else outcome.explain()


def session_page(
    request: PageRequest,
    viewed: ViewedSession,
    view: str,
    facts: dict[str, Any],
    nodes: SessionNodes | None = None,
    *,
    template: str = "",
) -> Page | Explanation:
    """A view of a session, with a node beside it: the one that was asked for, or where it stands.

    `nodes`: those of the session, where the view has them; without, only a node that was
    asked for is shown.
    """
    run, runs = viewed.run, viewed.runs
    chosen, panel = request.word("node"), None
    name = chosen or (run.tip if run and nodes is not None else None)
    nodes = nodes or session_views.read_nodes(request.app, viewed)
    if name:
        panel = session_views.node(request.app, viewed, name, nodes)
        if isinstance(panel, NoSuchNode):
            return panel.explain()
    place = place_in_view(request, viewed.session, view)
    has_gaps = any(one.gaps_open for one in runs)
    attended = viewed.head.attended
    has_agents = bool(attended and (attended.delegation_count or attended.has_progress))
    state = viewed.head.unattended
    title = title_of(run, viewed.head)
    whole: dict[str, Any] = {
        "viewed": viewed,
        "run": run,
        "pass_text": session_views.pass_of(request.app, run, nodes) if run else "",
        "view": view,
        "views": tuple(
            _views(place, has_agents=view == "agents" or has_agents, has_turns=state is not None)
        ),
        "unattended": view_work(request.app, viewed.session, state) if state else None,
        "panel": panel,
        "is_chosen": bool(chosen),
        "tab": _tab(request, panel),
        "node_tabs": NODE_TABS,
        "heading": title,
        "asked": request,
        "place": place,
        "modes": MODES,
        "confirmations": CONFIRMATIONS,
        "autonomies": AUTONOMIES,
        "risks": RISK_POLICIES,
        "gaps": list(user_actions.open_gaps(request.app, viewed.session)) if has_gaps else [],
        "notes": [
            (note, note_address(viewed.head.workspace, note.path))
            for note in notes_of_session(request.app, viewed.head.workspace, viewed.session)
        ],
        "others": [other for other in reversed(runs) if other is not run],
    }
    return Page(
        template or f"session_{view}.html",
        title,
        whole | facts,
        live=viewed.session,
        # What a diff costs is spent only when the log tells of something.
        follows_work=state is not None and not state.is_over and view != "diff",
    )


def _tab(request: PageRequest, panel: NodePanel | None) -> str:
    """Return the initial tab of a node: its submission if there is one."""
    wanted = request.word("tab")
    if wanted in NODE_TABS:
        return wanted
    return "handed" if panel and (panel.handed_in or panel.notes) else "prompt"


def _views(
    place: SessionPlace, *, has_agents: bool, has_turns: bool
) -> Iterator[tuple[str, str, str]]:
    unattended = ("turns", "diff") if has_turns else ()
    agents = ("agents",) if has_agents else ()
    for key in ("path", "graph", "timeline", *unattended, "events", *agents):
        yield key, key.capitalize(), place.page(key)


def _duration(started_at: str, ended_at: str) -> str:
    took = datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)
    return str(timedelta(seconds=int(took.total_seconds())))


def read_number(text: str) -> int | None:
    """A place in a stream; longer numbers are nobody's."""
    is_number = text.isascii() and text.isdigit() and len(text) < 16  # noqa: PLR2004
    return int(text) if is_number else None
