"""Delegations in an attended session: each change is one append in the process that got the call.

The gate does not depend on them. The session's note follows, as after other changes; if it cannot
be written now, the next start of a session does that.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.callers.session_record import ensure_attended, state_of
from interlock.app.context import App
from interlock.app.protocol.gated_sessions import effective_policy_of, publish_note
from interlock.app.protocol.left_handoffs import LeftHandoff, received_event, take_left_handoffs
from interlock.core.ids import DelegationId, SessionId, is_made_by_call
from interlock.core.protocol import delegation, delegation_plan
from interlock.core.protocol.delegation import CompletionRequest, DecisionRequest, DelegationRequest
from interlock.core.protocol.delegation_refusals import DelegationRefusal, RequestIdReused
from interlock.core.refusal import Refusal
from interlock.core.session.delegation_events import AgentStatus, HistoryCompacted
from interlock.core.session.orchestration import (
    AgentInvocation,
    AgentOutput,
    Decision,
    Handoff,
    Orchestration,
    decode_history,
)
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.progress import PROMPT_CHARS_MAX, RESULT_CHARS_MAX, clean_text
from interlock.core.session.progress_events import SubagentOutcome
from interlock.core.session.state import SessionState
from interlock.core.views.agent_stats import SessionStats, agent_stats


class StartedDelegation(msgspec.Struct, frozen=True):
    invocation: AgentInvocation
    taken_over: tuple[Handoff, ...]
    """The hand-offs that waited for this agent."""
    earlier: AgentOutput | None
    """The specialist's last result; it continues from there."""


Refusing = TypeVar("Refusing", bound=Refusal)


def delegate(
    app: App, session: SessionId, request: DelegationRequest
) -> StartedDelegation | DelegationRefusal:
    at_ms = app.clock.now_ms()
    before: list[SessionState] = []
    left: list[LeftHandoff] = []

    def decide(stream: Stream, state: SessionState) -> Plan | DelegationRefusal | None:
        before[:] = [state]
        planned = delegation.delegate(stream, state, request, at_ms=at_ms)
        named = delegation.named_id(session, request)
        if named and isinstance(planned, Plan) and _is_recorded(app, session, named):
            return RequestIdReused(named)  # it has been compacted since
        if isinstance(planned, Plan):
            left[:] = take_left_handoffs(app, state, request.agent)
            received = [received_event(one) for one in left]
            planned = delegation.delegate(stream, state, request, at_ms=at_ms, received=received)
        return planned

    after = record_change(app, session, decide)
    if not isinstance(after, SessionState):
        return after
    invocation = delegation.find_repeated(after, request, at_ms=at_ms)
    assert invocation is not None, "it is in the history, as the newest of its kind"
    work = before[0].work
    handoffs = (*work.pending_handoffs, *(one.handoff for one in left))
    return StartedDelegation(
        invocation,
        tuple(one for one in handoffs if one.to_agent == request.agent),
        delegation.earlier_context(work, request.agent),
    )


def _is_recorded(app: App, session: SessionId, name: DelegationId) -> bool:
    return app.log.event_with_key(session, delegation_plan.invocation_key(name)) is not None


class CompletedDelegation(msgspec.Struct, frozen=True):
    id: DelegationId
    agent: str
    status: AgentStatus
    work: Orchestration
    """All the work as it stands then."""


def complete(
    app: App, session: SessionId, request: CompletionRequest
) -> CompletedDelegation | DelegationRefusal:
    """Record the result of an agent."""
    at_ms = app.clock.now_ms()
    found: list[AgentInvocation] = []

    def decide(stream: Stream, state: SessionState) -> Plan | DelegationRefusal | None:
        target = delegation.find_completed(state, request, at_ms=at_ms)
        found[:] = [target] if isinstance(target, AgentInvocation) else []
        return delegation.complete(stream, state, request, at_ms=at_ms)

    work = _orchestration(record_change(app, session, decide))
    if not isinstance(work, Orchestration):
        return work
    status = delegation.status_of(request)
    return CompletedDelegation(found[0].id, found[0].agent, status, work)


def record_decision(
    app: App, session: SessionId, request: DecisionRequest
) -> Decision | DelegationRefusal:
    at_ms = app.clock.now_ms()
    after = record_change(
        app,
        session,
        lambda stream, state: delegation.record_decision(stream, state, request, at_ms=at_ms),
    )
    if not isinstance(after, SessionState):
        return after
    decision = delegation.find_repeated_decision(after, request, at_ms=at_ms)
    assert decision is not None, "it was recorded"
    return decision


def similar_decision(app: App, session: SessionId, decision: Decision) -> str:
    """Return the earlier decision of the session that says nearly the same; empty if none does."""
    from difflib import get_close_matches  # noqa: PLC0415 (1 ms at the start of a server)

    decisions = state_of(app, session).work.decisions
    known = {one.description.casefold(): one.id for one in decisions if one.id != decision.id}
    close = get_close_matches(decision.description.casefold(), known, n=1, cutoff=0.9)
    return known[close[0]] if close else ""


def judge_decision(
    app: App, session: SessionId, named: str, agent: str, *, is_approved: bool
) -> Orchestration | DelegationRefusal:
    at_ms = app.clock.now_ms()
    return _orchestration(
        record_change(
            app,
            session,
            lambda stream, state: delegation.judge_decision(
                stream, state, named, agent, is_approved=is_approved, at_ms=at_ms
            ),
        )
    )


def full_history(app: App, session: SessionId) -> list[AgentInvocation]:
    """All delegations of a session, oldest first, also those that were compacted."""
    envelopes = app.reader.history(session)
    compacted = [
        delegation
        for envelope in envelopes
        if isinstance(envelope.event, HistoryCompacted)
        for delegation in decode_history(app.reader.blob(envelope.event.history)).delegations
    ]
    history = state_of(app, session).work.agent_history
    return sorted((*compacted, *history), key=lambda x: x.started_at)


def session_stats(app: App, session: SessionId) -> SessionStats:
    """How long each agent of a session worked, and how often in vain."""
    envelopes = app.reader.history(session)
    agents, compactions = agent_stats(envelopes)
    size = len(msgspec.json.encode(state_of(app, session)))
    return SessionStats(session, agents, compactions, size)


def start_subagent(
    app: App, session: SessionId, agent: str, host_agent: str, prompt: str
) -> AgentOutput | None:
    """Record that a client started a known agent; return that agent's earlier results.

    Where the work was delegated by a call, that is the record, and its result comes by a call too.
    """
    work = state_of(app, session).work
    if not any(one.agent == agent and is_made_by_call(one.id) for one in work.open_invocations):
        name = _next_name(work, host_agent)
        text = clean_text(prompt, PROMPT_CHARS_MAX) or "(the client did not report the prompt)"
        delegate(app, session, DelegationRequest(agent, text, host_agent=name))
    return delegation.earlier_context(work, agent)


def end_subagent(
    app: App, session: SessionId, host_agent: str, outcome: SubagentOutcome, result: str
) -> None:
    """Record that a known agent, started by the client, has stopped."""
    opened = state_of(app, session).work.open_invocations
    names = [one.id for one in opened if _is_of(host_agent, one.id)]
    text = clean_text(result, RESULT_CHARS_MAX) or "(it said nothing)"
    for name in names[-1:]:
        status = "completed" if outcome == "completed" else "failed"
        complete(app, session, CompletionRequest(name, text, status))


def _next_name(work: Orchestration, host_agent: str) -> str:
    """The name of a delegation to a subagent, which its host may start again under its own."""
    taken = [one for one in work.agent_history if _is_of(host_agent, one.id)]
    is_open = any(one.status == "in_progress" for one in taken)
    return taken[-1].id if is_open else f"{host_agent}#{len(taken) + 1}" if taken else host_agent


def _is_of(host_agent: str, delegation_id: str) -> bool:
    return delegation_id == host_agent or delegation_id.startswith(f"{host_agent}#")


def _orchestration(after: SessionState | DelegationRefusal) -> Orchestration | DelegationRefusal:
    return after.work if isinstance(after, SessionState) else after


def record_change(
    app: App,
    session: SessionId,
    decide: Callable[[Stream, SessionState], Plan | Refusing | None],
) -> SessionState | Refusing:
    """Append what `decide` plans, publish the note of the session, and return its new state."""
    ensure_attended(app, session)

    def decide_on_stream() -> Plan | Refusing | None:
        with app.log.snapshot():
            stream = app.log.known_stream(session)
            state = state_of(app, session, app.log)
        return decide(stream, state)

    refused = append_plan(app, decide_on_stream)
    if refused is not None:
        return refused
    publish_note(app, session, effective_policy_of(app, session))
    return state_of(app, session, app.log)
