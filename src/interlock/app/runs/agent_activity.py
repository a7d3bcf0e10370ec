"""The running, idle and finished sessions of all projects in the store."""

from collections.abc import Iterator, Mapping, Set

import msgspec

from interlock.app.context import App
from interlock.app.sessions.statuses import Observer
from interlock.core.ids import SessionId
from interlock.core.session import context as contexts
from interlock.core.session.events import OutputAppended
from interlock.core.session.nodes import Node, node_of
from interlock.core.session.run_head import RunHead
from interlock.core.views.activity import (
    AgentLine,
    SessionActivity,
    UnattendedLine,
    band_of,
    blocked_first,
    pass_text,
)
from interlock.core.views.sentences import last_sentence
from interlock.store import queries
from interlock.store.failures import StoreFailure
from interlock.store.records import ListedSession, SessionFilter

SESSIONS_MAX = 500  # that are looked at: those in which something was recorded last
RUNNING_MAX, IDLE_MAX, FINISHED_MAX = 40, 10, 10
COMPARED_MAX = 100  # whose steps are looked at for the order of those who work


class AgentBand(msgspec.Struct, frozen=True):
    count: int
    lines: tuple[AgentLine, ...]
    """The first ones."""


class AgentsNow(msgspec.Struct, frozen=True):
    running: AgentBand
    """Running sessions, blocked ones first."""
    idle: AgentBand
    """Queued, paused, disconnected and idle sessions, newest activity first."""
    finished: AgentBand
    """The newest comes first."""


def list_agents_now(app: App, works: Mapping[SessionId, UnattendedLine] | None = None) -> AgentsNow:
    """Return all sessions in their bands. `works`: the unfinished unattended work."""
    works, observer, now_ms = works or {}, Observer(app), app.clock.now_ms()
    bands: dict[str | None, list[SessionActivity]] = {}
    for listed in _sessions(app, works.keys()):
        activity = _activity(observer, listed, works.get(listed.session))
        bands.setdefault(band_of(activity, now_ms=now_ms), []).append(activity)
    running = bands.get("running", [])
    # By what is known without their steps: refused attempts, and silence.
    likely_first = sorted(running, key=lambda activity: blocked_first(AgentLine(activity)))
    lines = (_agent_line(app, activity) for activity in likely_first[:COMPARED_MAX])
    shown = [_with_work(line, works) for line in sorted(lines, key=blocked_first)[:RUNNING_MAX]]
    return AgentsNow(
        AgentBand(len(running), tuple(shown)),
        _newest_first(app, works, bands.get("idle", []), IDLE_MAX),
        _newest_first(app, works, bands.get("finished", []), FINISHED_MAX),
    )


def _sessions(app: App, unattended: Set[SessionId]) -> Iterator[ListedSession]:
    """Those in which something was recorded last, and all with unattended work that is not over."""
    newest = app.reader.list_sessions(SessionFilter(), before=None, limit=SESSIONS_MAX).sessions
    yield from newest
    others = unattended - {listed.session for listed in newest}
    if others:
        wanted = SessionFilter(is_archived=None, sessions=tuple(others))  # it costs all the same
        yield from app.reader.list_sessions(wanted, before=None, limit=len(others)).sessions


def _with_work(line: AgentLine, works: Mapping[SessionId, UnattendedLine]) -> AgentLine:
    activity = line.activity
    state = activity.head.unattended if activity.is_unattended else None
    if state is None:
        return line
    work = works.get(activity.session, UnattendedLine(None, state.spent))
    return msgspec.structs.replace(line, work=work)


def _activity(
    observer: Observer, listed: ListedSession, work: UnattendedLine | None
) -> SessionActivity:
    session, head, run = listed.session, listed.head, listed.latest_run
    return SessionActivity(
        session=session,
        head=head,
        run=run,
        last_ms=observer.last_ms(session, head),
        status=observer.status(
            session, head, run, waits_because=work.waits_because if work else ""
        ),
        client_name=observer.client_name(session, head),
    )


def _newest_first(
    app: App,
    works: Mapping[SessionId, UnattendedLine],
    activities: list[SessionActivity],
    limit: int,
) -> AgentBand:
    newest = sorted(activities, key=lambda activity: -activity.last_ms)[:limit]
    lines = (_with_work(_agent_line(app, activity), works) for activity in newest)
    return AgentBand(len(activities), tuple(lines))


def _agent_line(app: App, activity: SessionActivity) -> AgentLine:
    run = activity.run
    if run is None or run.tip is None:
        return AgentLine(activity)
    # Two steps: the pending one with its attempts, and the one whose notes led to it.
    line = app.reader.ask(queries.line_to(run.tip, steps=2, checkpoints=1))
    given = next((one for one in line.nodes if node_of(one).created.node_kind == "step"), None)
    outputs = sorted(line.outputs.values(), key=lambda envelope: envelope.seq)
    notes = [one.event.notes for one in outputs if isinstance(one.event, OutputAppended)]
    tip = node_of(line.nodes[0])
    return AgentLine(
        activity,
        tip.created.number if tip.created.step_id else 0,
        _pass_text(app, run, tip),
        given.at_ms if given else 0,
        last_sentence(next((text for text in reversed(notes) if text.strip()), "")),
    )


def _pass_text(app: App, run: RunHead, tip: Node) -> str:
    position = tip.created.position
    if len(position) == 1 or tip.created.step_id is None:
        return ""
    try:
        workflow = app.pinned_workflow(run.workflow_hash)
        context = contexts.decode(app.reader.blob(tip.created.context))
    except StoreFailure:
        return ""  # the step is known all the same
    return pass_text(workflow, position, context)
