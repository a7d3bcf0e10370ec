"""One session: the path of a run, its graph, its events, and a node looked at closely."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from starlette.routing import Route

from interlock.app.notes.browse import notes_of_session
from interlock.app.protocol.feature_reviews import settled_state
from interlock.app.refusals import NoSuchNode
from interlock.app.runs import user_actions
from interlock.app.sessions import session_views
from interlock.app.sessions.session_views import ViewedSession
from interlock.core.explanation import Explanation
from interlock.core.gate.state import MODES
from interlock.core.ids import NodeId
from interlock.core.preferences import AUTONOMIES, RISK_POLICIES
from interlock.core.session.events import Envelope
from interlock.core.session.state import SessionState, timestamp
from interlock.core.views.collapse import CONFIRM_ABOVE, collapse
from interlock.core.views.graph import run_graph
from interlock.core.views.layout import layout, svg_path
from interlock.server.console import Console, Page, PageRequest
from interlock.server.grid import LANE_PX, LANES, ROW_PX, ROWS
from interlock.server.pages.notes import note_address
from interlock.server.pages.session_actions import CONFIRMATIONS
from interlock.server.pages.session_place import SessionPlace, place_in_view, place_of

EVENTS_PER_PAGE = 100


def routes(console: Console) -> list[Route]:
    return [
        console.page("/sessions/{session}", path),
        console.page("/sessions/{session}/graph", graph),
        console.page("/sessions/{session}/events", events),
        console.page("/sessions/{session}/events/{seq}", event),
        console.page("/sessions/{session}/agents", agents),
        console.page("/sessions/{session}/nodes/{node}", node),
    ]


def path(request: PageRequest) -> Page | Explanation:
    viewed = _view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    envelopes = session_views.history(request.app, viewed) if viewed.run else ()
    run_path = session_views.path(request.app, viewed, envelopes)
    return _session_page(
        request, viewed, "session_path.html", "path", {"way": run_path}, envelopes=envelopes
    )


def graph(request: PageRequest) -> Page | Explanation:
    viewed = _view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    if viewed.run is None:
        return _session_page(request, viewed, "session_graph.html", "graph", {"drawn": None})
    envelopes = session_views.history(request.app, viewed)
    whole = run_graph(viewed.run.run, envelopes)
    count = len(whole.nodes)
    if count > CONFIRM_ABOVE and request.word("draw") != "yes":
        facts = {"drawn": None, "count": count, "anyway": request.without(draw="yes")}
        return _session_page(
            request, viewed, "session_graph.html", "graph", facts, envelopes=envelopes
        )
    forks = request.word("forks")
    expanded = {node.id for node in whole.nodes} if forks == "all" else _node_ids(forks)
    collapsed = collapse(whole, expanded=expanded)
    laid = layout(collapsed.graph, stubs=collapsed.stubs, ghosts=request.word("skipped") == "yes")
    if laid.width > LANES or laid.height > ROWS:
        facts = {"drawn": None, "count": count, "anyway": ""}
        return _session_page(
            request, viewed, "session_graph.html", "graph", facts, envelopes=envelopes
        )
    by_id = {node.id: node for node in collapsed.graph.nodes}
    facts: dict[str, Any] = {
        "drawn": laid,
        "count": count,
        "by_id": by_id,
        "width": laid.width * LANE_PX,
        "height": laid.height * ROW_PX,
        "edges": [
            (edge.kind, svg_path(edge, lane_px=LANE_PX, row_px=ROW_PX)) for edge in laid.edges
        ],
        "too_much": collapsed.is_too_much,
        "forks": forks,
        "stub_urls": [
            request.without(forks=" ".join([*_node_ids(forks), placed.stub.node]))
            for placed in laid.stubs
        ],
        "toggle": request.without("forks") if forks else request.without(forks="all"),
        "ghosts_url": request.without("skipped")
        if request.word("skipped")
        else request.without(skipped="yes"),
        "shows_ghosts": request.word("skipped") == "yes",
    }
    return _session_page(request, viewed, "session_graph.html", "graph", facts, envelopes=envelopes)


def events(request: PageRequest) -> Page | Explanation:
    viewed = _view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    before = request.word("before")
    page = session_views.events(
        request.app,
        viewed,
        before=_place(before),
        limit=EVENTS_PER_PAGE,
        only_failures=request.word("only") == "failures",
        words=request.word("q"),
    )
    facts = {
        "page": page,
        "older": request.without(before=str(page.next)) if page.next else "",
        "newest": request.without("before") if before else "",
    }
    return _session_page(request, viewed, "session_events.html", "events", facts)


def event(request: PageRequest) -> Page | Explanation:
    viewed = _view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    seq = _place(request.params["seq"])
    envelope = session_views.event(request.app, viewed, seq) if seq is not None else None
    text = msgspec.json.format(msgspec.json.encode(envelope), indent=2).decode() if envelope else ""
    return _session_page(
        request,
        viewed,
        "session_event.html",
        "events",
        {"seq": request.params["seq"], "text": text},
    )


def agents(request: PageRequest) -> Page | Explanation:
    """The work that was handed to other agents, and what came of it."""
    viewed = _view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    state = settled_state(request.app, viewed.session)
    work = state.orchestrator_workflow if isinstance(state, SessionState) else None
    now = timestamp(request.app.clock.now_ms())
    invocations = [
        (one, _duration(one.started_at, one.completed_at or now))
        for one in reversed(work.agent_history if work else ())
    ]
    facts = {"work": work, "invocations": invocations}
    return _session_page(request, viewed, "session_agents.html", "agents", facts)


def node(request: PageRequest) -> Page | Explanation:
    """The node alone: what a page fetches when somebody opens one."""
    viewed = _view_session(request)
    if isinstance(viewed, Explanation):
        return viewed
    envelopes = session_views.history(request.app, viewed)
    panel = session_views.node(request.app, viewed, request.params["node"], envelopes)
    if isinstance(panel, NoSuchNode):
        return panel.explain()
    facts = {"viewed": viewed, "panel": panel, "place": place_of(request, viewed.session)}
    return Page("session_node.html", panel.title or "Node", facts, live=viewed.session)


def _view_session(request: PageRequest) -> ViewedSession | Explanation:
    outcome = session_views.view_session(
        request.app, request.params["session"], request.word("run")
    )
    return outcome if isinstance(outcome, ViewedSession) else outcome.explain()


def _session_page(
    request: PageRequest,
    viewed: ViewedSession,
    template: str,
    tab: str,
    facts: dict[str, Any],
    *,
    envelopes: Sequence[Envelope] = (),
) -> Page | Explanation:
    """`envelopes`, where the view needed them already."""
    panel = None
    if name := request.word("node"):
        history = envelopes or session_views.history(request.app, viewed)
        panel = session_views.node(request.app, viewed, name, history)
        if isinstance(panel, NoSuchNode):
            return panel.explain()

    place = place_in_view(request, viewed.session, tab)
    run, runs = viewed.run, viewed.runs
    has_gaps = any(one.gaps_open for one in runs)
    has_agents = bool(viewed.head.attended and viewed.head.attended.delegation_count)
    title = (run.goal or run.workflow_id) if run else "Attended session"
    whole: dict[str, Any] = {
        "viewed": viewed,
        "run": run,
        "tab": tab,
        "tabs": tuple(_tabs(place, has_agents=tab == "agents" or has_agents)),
        "panel": panel,
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
    return Page(template, title, whole | facts, live=viewed.session)


def _tabs(place: SessionPlace, *, has_agents: bool) -> Iterator[tuple[str, str, str]]:
    for key, name in (("path", "Path"), ("graph", "Graph"), ("events", "Events")):
        yield key, name, place.page(key)
    if has_agents:
        yield "agents", "Agents", place.page("agents")


def _duration(started_at: str, ended_at: str) -> str:
    took = datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)
    return str(timedelta(seconds=int(took.total_seconds())))


def _place(text: str) -> int | None:
    """In a stream; longer numbers are nobody's."""
    is_number = text.isascii() and text.isdigit() and len(text) < 16  # noqa: PLR2004
    return int(text) if is_number else None


def _node_ids(names: str) -> list[NodeId]:
    return [NodeId(name) for name in names.split() if name != "all"]
