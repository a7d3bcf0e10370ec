"""Delegation: hand work to a specialist agent, take its result, record what was decided.

Every change is planned from the state that the events add up to. The same call again within a
minute, or with the same request id, is answered from the first. When the history of delegations
grows long, the older part of it leaves the state in the same append (`HistoryCompacted`).
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from interlock.core import canonical, ids
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.ids import BlobRef, DelegationId
from interlock.core.protocol.gated_session import SessionEnded, change_drafts
from interlock.core.protocol.specialists import REMEMBERED
from interlock.core.refusal import Refusal
from interlock.core.session.delegation_events import (
    AgentCompleted,
    AgentInvoked,
    AgentStatus,
    DecisionJudged,
    DecisionRecorded,
    DecisionType,
    DelegationEvent,
    HistoryCompacted,
    VerdictGiven,
)
from interlock.core.session.orchestration import (
    AgentInvocation,
    AgentOutput,
    Decision,
    Orchestration,
    apply_delegation_event,
)
from interlock.core.session.plan import Plan, Stream, plan
from interlock.core.session.state import SessionState, timestamp

HISTORY_MAX = 10
HISTORY_KEPT = 3
REPEATED_MS = 60_000
TEXT_CHARS_MAX = 50_000  # of all that one call records; more belongs into files


class DelegationUnclear(Refusal, frozen=True):
    """No delegation is open that the call could mean."""

    named: str
    open_delegations: tuple[str, ...]

    def explain(self) -> Explanation:
        opened = ", ".join(self.open_delegations)
        hint = f"Open: {opened}." if opened else "None is open. `delegate` opens one."
        return Explanation("unknown_delegation", f"No delegation `{self.named}` is open", hint)


class DecisionUnknown(Refusal, frozen=True):
    named: str
    decisions: tuple[str, ...]

    def explain(self) -> Explanation:
        known = ", ".join(self.decisions)
        hint = f"There are: {known}." if known else "None is recorded in this session yet."
        return Explanation("unknown_decision", f"No decision `{self.named}`", hint)


class InputTooLarge(Refusal, frozen=True):
    chars: int

    def explain(self) -> Explanation:
        return Explanation(
            "invalid_arguments",
            f"This is {self.chars:,} characters long; at most {TEXT_CHARS_MAX:,} are recorded",
            "Write it to a file or a note, and name that in `artifacts`.",
        )


DelegationRefusal: TypeAlias = DelegationUnclear | DecisionUnknown | InputTooLarge | SessionEnded


class CompactedHistory(msgspec.Struct, frozen=True):
    """The content of the blob that keeps what was compacted."""

    delegations: tuple[AgentInvocation, ...]


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
    stream: Stream, state: SessionState, request: DelegationRequest, *, at_ms: int
) -> Plan | DelegationRefusal | None:
    """Plan the start of a delegation; None if the same one was started just now."""
    if refusal := _refuse(state, request):
        return refusal
    if find_repeated(state, request, at_ms=at_ms):
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
    return _plan_events(stream, state, [event], at_ms)


def find_repeated(
    state: SessionState, request: DelegationRequest, *, at_ms: int
) -> AgentInvocation | None:
    """Find the delegation that the same call has started before."""
    work = state.orchestrator_workflow
    since = timestamp(at_ms - REPEATED_MS)
    named = _named_id(state.session_id, request)
    for invocation in reversed(work.agent_history if work else ()):
        given = (invocation.agent, invocation.input.prompt, invocation.input.artifacts)
        is_same = given == (request.agent, request.prompt, request.artifacts)
        is_just_now = invocation.status == "in_progress" and invocation.started_at >= since
        if invocation.id == named or (not named and is_same and is_just_now):
            return invocation
    return None


def complete(
    stream: Stream, state: SessionState, request: CompletionRequest, *, at_ms: int
) -> Plan | DelegationRefusal | None:
    """Plan the end of a delegation; None if it has ended with the same result."""
    if refusal := _refuse(state, request):
        return refusal
    work = state.orchestrator_workflow
    invocations = work.agent_history if work else ()
    meant = [one for one in invocations if request.named in (one.id, one.agent)]
    opened = [one for one in meant if one.status == "in_progress"]
    if not opened:
        output = _output(request)
        if meant and meant[-1].output == output:
            return None
        open_ids = tuple(one.id for one in (work.open_invocations if work else ()))
        return DelegationUnclear(request.named, open_ids)
    status: AgentStatus = "blocked" if request.blockers else request.status
    event = AgentCompleted(
        opened[-1].id,
        "failed" if request.status == "failed" else status,
        request.summary,
        request.artifacts,
        request.recommendations,
        request.blockers,
        request.handoff_to,
        request.handoff_reason,
        dict(request.preserved_context),
        request.verdict,
    )
    return _plan_events(stream, state, [event], at_ms)


def record_decision(
    stream: Stream, state: SessionState, request: DecisionRequest, *, at_ms: int
) -> Plan | DelegationRefusal | None:
    """Plan the record of a decision; None if the same one was recorded just now."""
    if refusal := _refuse(state, request):
        return refusal
    if find_repeated_decision(state, request, at_ms=at_ms):
        return None
    event = DecisionRecorded(
        ids.decision_id(stream.session, request.request_id or _seed(stream, request)),
        request.type,
        request.description,
        request.rationale,
        request.decided_by,
    )
    return _plan_events(stream, state, [event], at_ms)


def find_repeated_decision(
    state: SessionState, request: DecisionRequest, *, at_ms: int
) -> Decision | None:
    work = state.orchestrator_workflow
    since = timestamp(at_ms - REPEATED_MS)
    named = ids.decision_id(state.session_id, request.request_id) if request.request_id else None
    for decision in reversed(work.decisions if work else ()):
        is_same = (decision.description, decision.type) == (request.description, request.type)
        if decision.id == named or (not named and is_same and decision.timestamp >= since):
            return decision
    return None


def judge_decision(
    stream: Stream, state: SessionState, named: str, agent: str, *, is_approved: bool, at_ms: int
) -> Plan | DelegationRefusal | None:
    """Plan the judgement of an agent about a decision; None if it has given the same one."""
    if state.status == "ended":
        return SessionEnded(state.session_id)
    work = state.orchestrator_workflow
    decisions = {one.id: one for one in (work.decisions if work else ())}
    if named not in decisions:
        return DecisionUnknown(named, tuple(decisions))
    judged_by = decisions[named].approved_by if is_approved else decisions[named].rejected_by
    if agent in judged_by:
        return None
    return _plan_events(stream, state, [DecisionJudged(named, agent, is_approved)], at_ms)


def earlier_context(work: Orchestration | None, agent: str) -> AgentOutput | None:
    """Return what a specialist handed in last, so that it goes on from there."""
    if agent not in REMEMBERED:
        return None
    invocations = reversed(work.agent_history if work else ())
    return next((one.output for one in invocations if one.agent == agent and one.output), None)


def history_note_name(session: str, at_ms: int) -> str:
    return f"sessions/session-{session}-history-{at_ms}"


def _refuse(
    state: SessionState, request: DelegationRequest | CompletionRequest | DecisionRequest
) -> SessionEnded | InputTooLarge | None:
    if state.status == "ended":
        return SessionEnded(state.session_id)
    chars = len(msgspec.json.encode(request))
    return InputTooLarge(chars) if chars > TEXT_CHARS_MAX else None


def _delegation_id(stream: Stream, request: DelegationRequest) -> DelegationId:
    named = _named_id(stream.session, request)
    return named or ids.delegation_id(stream.session, _seed(stream, request))


def _seed(stream: Stream, request: DelegationRequest | DecisionRequest) -> str:
    """Return what names a thing that is made at this place of the stream."""
    return f"{stream.version} {canonical.short_digest(request)}"


def _named_id(session: str, request: DelegationRequest) -> DelegationId | None:
    if request.host_agent:
        return DelegationId(request.host_agent)
    return ids.delegation_id(session, request.request_id) if request.request_id else None


def _output(request: CompletionRequest) -> AgentOutput:
    return AgentOutput(
        request.summary, request.artifacts, request.recommendations, request.blockers
    )


def _plan_events(
    stream: Stream, state: SessionState, events: Sequence[DelegationEvent], at_ms: int
) -> Plan:
    work = state.orchestrator_workflow
    for event in events:
        work = apply_delegation_event(work, event, timestamp(at_ms))
    assert work is not None, "something was applied"
    events, blobs = [*events], dict[BlobRef, bytes]()
    if compaction := _compaction(stream, work, blobs, at_ms):
        events.append(compaction)
    return plan(stream, change_drafts(stream, "delegation", events), blobs=blobs, at_ms=at_ms)


def _compaction(
    stream: Stream, work: Orchestration, blobs: dict[BlobRef, bytes], at_ms: int
) -> HistoryCompacted | None:
    """Compact a long history: the last ones stay, what is open, and what specialists found."""
    if len(work.agent_history) <= HISTORY_MAX:
        return None
    # A specialist goes on from what it found last, however long ago that was.
    newest = {one.agent: one.id for one in work.agent_history if one.output}
    remembered = {newest.get(agent) for agent in REMEMBERED}
    older = [
        one
        for one in work.agent_history[:-HISTORY_KEPT]
        if one.status != "in_progress" and one.id not in remembered
    ]
    if not older:
        return None
    content = canonical.encode(CompactedHistory(tuple(older)))
    history = canonical.blob_ref(content)
    blobs[history] = content
    counts: dict[str, int] = {}
    for one in older:
        counts[one.agent] = counts.get(one.agent, 0) + 1
    summary = ", ".join(f"{agent} {count}" for agent, count in sorted(counts.items()))
    note = history_note_name(stream.session, at_ms)
    return HistoryCompacted(tuple(one.id for one in older), history, note, summary)
