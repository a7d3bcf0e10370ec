"""Who works now, who has gone quiet and who has finished, of all projects in the store."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

import msgspec

from interlock.app.context import App
from interlock.app.coordination.local_facts import latest_hook_lines
from interlock.core.ids import SessionId
from interlock.core.session import context as contexts
from interlock.core.session.events import OutputAppended, decode_envelope
from interlock.core.session.nodes import Node, node_of
from interlock.core.session.run_head import RunHead
from interlock.core.unattended.order import UnattendedState
from interlock.core.unattended.phases import phase_of
from interlock.core.views.activity import (
    AgentLine,
    ClientState,
    SessionActivity,
    UnattendedLine,
    band_of,
    is_users,
    pass_text,
    stuck_first,
    unattended_band,
)
from interlock.core.views.sentences import last_sentence
from interlock.store import queries
from interlock.store.failures import StoreFailure
from interlock.store.records import ListedSession, SessionFilter
from interlock.workspace.machine.clients import Key, Presence, look_for_clients

SESSIONS_MAX = 500  # that are looked at: those in which something was recorded last
WORKING_MAX, QUIET_MAX, FINISHED_MAX = 40, 10, 10
EVENTS_MAX = 100  # of a session that are looked through for the last one of its agent
_USERS_KEYS = ("approval-resolved:", "gap-resolved:", "unblocked:", "preferences:", "archived:")
COMPARED_MAX = 100  # whose steps are looked at for the order of those who work


class AgentBand(msgspec.Struct, frozen=True):
    count: int
    lines: tuple[AgentLine, ...]
    """The first ones."""


class AgentsNow(msgspec.Struct, frozen=True):
    working: AgentBand
    """Those who seem to be stuck come first."""
    quiet: AgentBand
    """The one that has gone quiet last comes first."""
    finished: AgentBand
    """The newest comes first."""


def list_agents_now(app: App, works: Mapping[SessionId, UnattendedLine] | None = None) -> AgentsNow:
    """All sessions in their bands. `works`: how unattended work stands that is not over."""
    works = works or {}
    now_ms = app.clock.now_ms()
    presence, heard = look_for_clients(app.home), latest_hook_lines(app)
    decided = _decision_moments(app)
    bands: dict[str | None, list[SessionActivity]] = {}
    for listed in _sessions(app, works.keys()):
        activity = _activity(listed, presence, heard, listed.head.updated_ms)
        if activity.is_unattended and (state := listed.head.unattended):
            phase = _work(activity, state, works).phase
            bands.setdefault(unattended_band(state, phase, now_ms=now_ms), []).append(activity)
            continue
        band = band_of(activity, now_ms=now_ms)
        moments = decided.get(listed.session, frozenset[int]())
        if band in ("working", "quiet") and listed.head.updated_ms in moments:
            activity = _activity(listed, presence, heard, _agents_last_ms(app, listed, moments))
            band = band_of(activity, now_ms=now_ms)
        bands.setdefault(band, []).append(activity)
    working = bands.get("working", [])
    # By what is known without their steps: refused attempts, and silence.
    likely_stuck = sorted(working, key=lambda activity: stuck_first(AgentLine(activity)))
    lines = (_agent_line(app, activity) for activity in likely_stuck[:COMPARED_MAX])
    shown = [_with_work(line, works) for line in sorted(lines, key=stuck_first)[:WORKING_MAX]]
    return AgentsNow(
        AgentBand(len(working), tuple(shown)),
        _newest_first(app, works, bands.get("quiet", []), QUIET_MAX),
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
    return msgspec.structs.replace(line, work=_work(activity, state, works)) if state else line


def _work(
    activity: SessionActivity,
    state: UnattendedState,
    works: Mapping[SessionId, UnattendedLine],
) -> UnattendedLine:
    at_rest = UnattendedLine(phase_of(state, (), is_driver_alive=False), state.spent)
    return works.get(activity.session, at_rest)


def _activity(
    listed: ListedSession, presence: Presence, heard: Mapping[Key, int], recorded_ms: int
) -> SessionActivity:
    hosts = listed.head.attended.hosts if listed.head.attended else ()
    client: ClientState = "unknown"
    if presence.held.keys() & set(hosts):
        client = "running"
    elif hosts and hosts[-1] in presence.gone:
        client = "ended"
    last_ms = max((recorded_ms, *(heard.get(host, 0) for host in hosts)))
    return SessionActivity(listed.session, listed.head, listed.latest_run, last_ms, client)


def _decision_moments(app: App) -> Mapping[SessionId, Set[int]]:
    """When the user or a deadline decided something, by session."""
    moments: defaultdict[SessionId, set[int]] = defaultdict(set)
    for envelope in app.reader.events_by_prefixes(_USERS_KEYS, sessions_max=SESSIONS_MAX):
        if is_users(envelope.event):
            moments[envelope.session].add(envelope.at_ms)
    return moments


def _agents_last_ms(app: App, listed: ListedSession, decided: Set[int]) -> int:
    """The time of the newest event that was not recorded with a decision of somebody else."""
    stream = app.reader.stream(listed.session)
    version = stream.version if stream else 0  # it may have been deleted meanwhile
    at_ms = listed.head.updated_ms
    for link in app.reader.links_before(listed.session, version, limit=EVENTS_MAX):
        at_ms = decode_envelope(link.body).at_ms
        if at_ms not in decided:
            break
    return at_ms


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
