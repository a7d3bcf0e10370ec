"""Hand-offs that an earlier session in the same directory has left: the next one takes them on.

A session that delegates to the agent of such a hand-off first records in the other session that it
takes it (of two, one is the first), then in itself that it has received it. If it ends in between,
the hand-off still waits for it.
"""

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.callers.session_record import state_of
from interlock.app.context import App
from interlock.core import canonical
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation_plan import handoff_key, plan_events
from interlock.core.session.delegation_events import HandoffPassedOn, HandoffReceived
from interlock.core.session.orchestration import Handoff, Orchestration
from interlock.core.session.plan import Plan
from interlock.core.session.state import SessionState, timestamp
from interlock.core.workflow.operators import clip
from interlock.store.records import SessionFilter

EARLIER_SESSIONS_MAX = 50
FILE_CHARS_MAX = 20_000  # all of it is in the notes that the file has become
FILE_AGENT = "hand-off file"
"""Who hands on what a file says. Nobody works in a session that was only begun for it."""
FILE_RECEIVER = "orchestrator"


class LeftHandoff(msgspec.Struct, frozen=True):
    session: SessionId
    """The session that has left it."""
    handoff: Handoff


def left_handoffs(app: App, state: SessionState) -> list[LeftHandoff]:
    """The hand-offs that this session can take on, oldest first.

    Only sessions whose heads say that they have some are read.
    """
    listed = app.reader.list_sessions(
        SessionFilter(workspace=state.worktree), before=None, limit=EARLIER_SESSIONS_MAX
    )
    found: list[LeftHandoff] = []
    for earlier in reversed(listed.sessions):
        attended, is_own = earlier.head.attended, earlier.session == state.session_id
        if attended is None or is_own or (attended.status != "ended" and attended.hosts):
            continue
        if attended.awaited_agents or state.session_id in attended.passed_to:
            left = state_of(app, earlier.session, app.log).work
            found += [
                LeftHandoff(earlier.session, handoff)
                for handoff in _available(left, state.session_id)
                if attended.status == "ended" or handoff.from_agent == FILE_AGENT
            ]
    keys = {handoff_key(received_event(left)): left for left in found}
    received = app.log.events_with_keys(SessionId(state.session_id), list(keys)) if keys else {}
    return [left for key, left in keys.items() if key not in received]


def take_left_handoffs(app: App, state: SessionState, agent: str) -> list[LeftHandoff]:
    """Take the hand-offs that wait for an agent; they must be recorded here as received then."""
    return [
        left
        for left in left_handoffs(app, state)
        if left.handoff.to_agent == agent and _take(app, left, SessionId(state.session_id))
    ]


def receive_from_file(app: App, session: SessionId, file_name: str, text: str) -> None:
    """Let a hand-off wait in a session for whoever takes on what a file says; once."""
    at_ms, name = app.clock.now_ms(), _storable(file_name)
    context = clip(_storable(text), FILE_CHARS_MAX)

    def decide() -> Plan | None:
        with app.log.snapshot():
            stream, state = app.log.stream(session), state_of(app, session, app.log)
        if stream is None or state.status == "ended":
            return None
        event = HandoffReceived(
            name, FILE_AGENT, FILE_RECEIVER, f"from {name}", context, timestamp(at_ms)
        )
        return plan_events(stream, state, [event], at_ms)

    append_plan(app, decide)


def _storable(text: str) -> str:
    """The text without the bytes of a file that are no text."""
    return text.encode("utf-8", "replace").decode()


def received_event(left: LeftHandoff) -> HandoffReceived:
    handoff = left.handoff
    return HandoffReceived(
        left.session,
        handoff.from_agent,
        handoff.to_agent,
        handoff.reason,
        handoff.context,
        handoff.created_at,
        handoff.artifacts,
        handoff.preserved_context,
    )


def _available(work: Orchestration, session: str) -> tuple[Handoff, ...]:
    taken = (one.handoff for one in work.passed_handoffs if one.session == session)
    return (*work.pending_handoffs, *taken)


def _take(app: App, left: LeftHandoff, session: SessionId) -> bool:
    """Record in the session that left it who takes it; False if another one was faster."""
    name = canonical.short_digest(left.handoff)

    def decide() -> Plan | None:
        with app.log.snapshot():
            stream = app.log.stream(left.session)
            state = state_of(app, left.session, app.log) if stream else None
        if stream is None or state is None:
            return None  # it was deleted just now
        if left.handoff not in state.work.pending_handoffs:
            return None
        event = HandoffPassedOn(name, left.handoff.to_agent, session)
        return plan_events(stream, state, [event], app.clock.now_ms())

    append_plan(app, decide)
    stream = app.log.stream(left.session)
    passed = state_of(app, left.session, app.log).work.passed_handoffs if stream else ()
    return any((one.session, one.handoff) == (session, left.handoff) for one in passed)
