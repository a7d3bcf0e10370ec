"""Delegation: hand work to a specialist agent, take its result, record what was decided.

Every change is planned from the state that the events add up to. The same call again within a
minute, or with the same request id, is answered from the first. When the history of delegations
grows long, the older part of it leaves the state in the same append (`HistoryCompacted`).
"""

from collections.abc import Mapping, Sequence

import msgspec

from interlock.core import canonical, ids
from interlock.core.canonical import Json, NotCanonical
from interlock.core.ids import DelegationId, is_made_by_call
from interlock.core.protocol.delegation_plan import events_with_reviews, plan_events
from interlock.core.protocol.delegation_refusals import (
    DelegationRefusal,
    DelegationUnclear,
    RequestIdReused,
    invalid_delegation,
)
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.protocol.specialists import REMEMBERED, is_agent_name, normalise_agent
from interlock.core.refusal import PlainRefusal
from interlock.core.session.delegation_events import (
    AgentCompleted,
    AgentInvoked,
    AgentStatus,
    DecisionJudged,
    DecisionRecorded,
    DecisionType,
    HandoffReceived,
    VerdictGiven,
)
from interlock.core.session.orchestration import (
    AgentInvocation,
    AgentOutput,
    Decision,
    Orchestration,
)
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.state import SessionState, timestamp

REPEATED_MS = 60_000
CANDIDATES_MAX = 5  # of the names that a refusal shows
TEXT_CHARS_MAX = 50_000  # of all that one call records; more belongs into files


class DelegationRequest(msgspec.Struct, frozen=True):
    """A request to hand work to an agent."""

    agent: str
    prompt: str
    context: Mapping[str, Json] = {}
    artifacts: tuple[str, ...] = ()
    reason: str = ""
    request_id: str | None = None
    host_agent: str = ""
    """The id that a host gave to its subagent, where a hook tells of it."""


class CompletionRequest(msgspec.Struct, frozen=True):
    """The result of an agent. `named` is the id of the delegation or the name of the agent."""

    named: str
    summary: str
    status: AgentStatus = "completed"
    artifacts: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    handoff_to: str = ""
    handoff_reason: str = ""
    preserved_context: Mapping[str, Json] = {}
    verdict: VerdictGiven | None = None


class DecisionRequest(msgspec.Struct, frozen=True):
    type: DecisionType
    description: str
    rationale: str
    decided_by: str
    request_id: str | None = None


def delegate(
    stream: Stream,
    state: SessionState,
    request: DelegationRequest,
    *,
    at_ms: int,
    received: Sequence[HandoffReceived] = (),
) -> Plan | DelegationRefusal | None:
    """Plan the start of a delegation; None if the same one was started before.

    `received`: hand-offs of other sessions that it takes up.
    """
    if refusal := _refuse(state, request, request.agent, request.prompt, request.context):
        return refusal
    repeated = find_repeated(state, request, at_ms=at_ms)
    if repeated and _content_of(repeated) != _content_of(request):
        return RequestIdReused(request.request_id or request.host_agent)
    if repeated:
        return None
    event = AgentInvoked(
        _delegation_id(stream, request),
        request.agent,
        request.prompt,
        dict(request.context),
        request.artifacts,
        request.reason,
        "hook" if request.host_agent else "agent",
    )
    return plan_events(stream, state, [*received, event], at_ms)


def find_repeated(
    state: SessionState, request: DelegationRequest, *, at_ms: int
) -> AgentInvocation | None:
    """Find the delegation that the same call has started before: by its name, or just now."""
    since = timestamp(at_ms - REPEATED_MS)
    named = named_id(state.session_id, request)
    for invocation in reversed(state.work.agent_history):
        is_open = invocation.status == "in_progress"
        is_just_now = is_made_by_call(invocation.id) and invocation.started_at >= since
        is_same = _content_of(invocation) == _content_of(request)
        if invocation.id == named or (not named and is_open and is_just_now and is_same):
            return invocation
    return None


def _content_of(made: AgentInvocation | DelegationRequest) -> tuple[object, ...]:
    given = made.input if isinstance(made, AgentInvocation) else made
    return made.agent, given.prompt, dict(given.context), tuple(given.artifacts)


def find_completed(
    state: SessionState, request: CompletionRequest, *, at_ms: int
) -> AgentInvocation | DelegationUnclear:
    """Find the delegation that a result is of: the one that ended with it just now, or an open one.

    By its id, or the latest of the agent.
    """
    work = state.work
    agent = normalise_agent(request.named)
    meant = [one for one in work.agent_history if one.id == request.named] or [
        one for one in work.agent_history if one.agent == agent
    ]
    since = timestamp(at_ms - REPEATED_MS)
    for one in reversed(meant):
        is_recent = one.id == request.named or (one.completed_at or "") >= since
        if is_recent and _is_result(work, one, request):
            return one
        if one.status == "in_progress":
            break  # whatever ended before it began is not what is meant
    opened = [one for one in meant if one.status == "in_progress"]
    if opened:
        return opened[-1]
    open_ids = tuple(one.id for one in work.open_invocations)
    return DelegationUnclear(request.named, open_ids)


def _is_result(
    work: Orchestration, invocation: AgentInvocation, request: CompletionRequest
) -> bool:
    """Whether this is what the delegation has ended with."""
    output = AgentOutput(
        request.summary, request.artifacts, request.recommendations, request.blockers
    )
    ended = (invocation.output, invocation.status, invocation.handoff_to or "")
    if ended != (output, status_of(request), request.handoff_to):
        return False
    return request.verdict is None or any(
        (verdict.agent, verdict.timestamp, verdict.outcome)
        == (invocation.agent, invocation.completed_at, request.verdict.outcome)
        for verdict in work.verdicts
    )


def status_of(request: CompletionRequest) -> AgentStatus:
    return "blocked" if request.blockers and request.status != "failed" else request.status


def complete(
    stream: Stream, state: SessionState, request: CompletionRequest, *, at_ms: int
) -> Plan | DelegationRefusal | None:
    """Plan the end of a delegation; None if it has ended with the same result."""
    agents = (request.handoff_to,) if request.handoff_to else ()
    if refusal := _refuse(state, request, *agents, request.summary, request.preserved_context):
        return refusal
    target = find_completed(state, request, at_ms=at_ms)
    if isinstance(target, DelegationUnclear):
        return target
    if target.status != "in_progress":
        return None
    event = AgentCompleted(
        target.id,
        status_of(request),
        request.summary,
        request.artifacts,
        request.recommendations,
        request.blockers,
        request.handoff_to,
        request.handoff_reason,
        dict(request.preserved_context),
        request.verdict,
    )
    return plan_events(
        stream, state, events_with_reviews(stream, state, event, at_ms), at_ms, kept=target.id
    )


def record_decision(
    stream: Stream, state: SessionState, request: DecisionRequest, *, at_ms: int
) -> Plan | DelegationRefusal | None:
    """Plan the record of a decision; None if the same one was recorded just now."""
    if refusal := _refuse(state, request, request.decided_by, request.description, {}):
        return refusal
    repeated = find_repeated_decision(state, request, at_ms=at_ms)
    if repeated and (repeated.description, repeated.decided_by) != (
        request.description,
        request.decided_by,
    ):
        return RequestIdReused(request.request_id or "")
    if repeated:
        return None
    event = DecisionRecorded(
        ids.decision_id(stream.session, request.request_id or _seed(stream, request)),
        request.type,
        request.description,
        request.rationale,
        request.decided_by,
    )
    return plan_events(stream, state, [event], at_ms)


def find_repeated_decision(
    state: SessionState, request: DecisionRequest, *, at_ms: int
) -> Decision | None:
    since = timestamp(at_ms - REPEATED_MS)
    named = ids.decision_id(state.session_id, request.request_id) if request.request_id else None
    for decision in reversed(state.work.decisions):
        made = (decision.type, decision.description, decision.rationale, decision.decided_by)
        asked = (request.type, request.description, request.rationale, request.decided_by)
        is_same = made == asked
        if decision.id == named or (not named and is_same and decision.timestamp >= since):
            return decision
    return None


def judge_decision(
    stream: Stream, state: SessionState, named: str, agent: str, *, is_approved: bool, at_ms: int
) -> Plan | DelegationRefusal | None:
    """Plan the judgement of an agent about a decision; None if it has given the same one."""
    if state.status == "ended":
        return SessionEnded(state.session_id)
    decisions = {one.id: one for one in state.work.decisions}
    if named not in decisions:
        newest = tuple(decisions)[-CANDIDATES_MAX:]
        hint = "Name one of this session." if newest else "None is recorded in this session yet."
        return PlainRefusal("unknown_decision", f"No decision `{named}`", hint, newest)
    judged_by = decisions[named].approved_by if is_approved else decisions[named].rejected_by
    if agent in judged_by:
        return None
    return plan_events(stream, state, [DecisionJudged(named, agent, is_approved)], at_ms)


def earlier_context(work: Orchestration, agent: str) -> AgentOutput | None:
    """Return a specialist's last result, from which it continues."""
    if agent not in REMEMBERED:
        return None
    invocations = reversed(work.agent_history)
    return next((one.output for one in invocations if one.agent == agent and one.output), None)


def _refuse(
    state: SessionState,
    request: DelegationRequest | CompletionRequest | DecisionRequest,
    *texts: str | Mapping[str, Json],
) -> SessionEnded | PlainRefusal | None:
    """`texts`: the names of agents, then what was said, then what was given along."""
    if state.status == "ended":
        return SessionEnded(state.session_id)
    *agents, said, given = texts
    try:
        canonical.check_canonical(msgspec.to_builtins(given))
        chars = len(msgspec.json.encode(request))
    except (NotCanonical, RecursionError, UnicodeError) as error:
        return invalid_delegation(f"What is given along cannot be recorded: {error}")
    if chars > TEXT_CHARS_MAX:
        return PlainRefusal(
            "invalid_arguments",
            f"This is {chars:,} characters long; at most {TEXT_CHARS_MAX:,} are recorded",
            "Write it to a file or a note, and name that in `artifacts`.",
        )
    if not str(said).strip():
        return invalid_delegation("It says nothing")
    bad = next((name for name in agents if not is_agent_name(str(name))), None)
    return None if bad is None else invalid_delegation(f"`{bad}` is no name of an agent")


def _delegation_id(stream: Stream, request: DelegationRequest) -> DelegationId:
    named = named_id(stream.session, request)
    return named or ids.delegation_id(stream.session, _seed(stream, request))


def _seed(stream: Stream, request: DelegationRequest | DecisionRequest) -> str:
    """Return what names a thing that is made at this place of the stream."""
    return f"{stream.version} {canonical.short_digest(request)}"


def named_id(session: str, request: DelegationRequest) -> DelegationId | None:
    if request.host_agent:
        return DelegationId(request.host_agent)
    return ids.delegation_id(session, request.request_id) if request.request_id else None
