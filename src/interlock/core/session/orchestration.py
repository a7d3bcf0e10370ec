"""The work of an agent that has others work for it: delegations, decisions, verdicts, hand-offs.

A part of the state of a session (`state`), and like it a fold of events. A delegation is in the
history until it is compacted: then only the summary stays here, and the rest is in a blob.
"""

import re
from typing import Annotated, Any, Literal, assert_never

import msgspec
from msgspec import Meta

from interlock.core.canonical import short_digest
from interlock.core.ids import DelegationId
from interlock.core.session.delegation_events import (
    AgentCompleted,
    AgentInvoked,
    DecisionJudged,
    DecisionRecorded,
    DecisionType,
    DelegationEvent,
    HandoffPassedOn,
    HandoffReceived,
    HistoryCompacted,
    VerdictGiven,
)
from interlock.core.session.events import Phase
from interlock.core.session.feature_review import (
    FeatureReview,
    new_review,
    with_outcome,
    with_verdict,
)
from interlock.core.session.review_events import (
    FeatureReviewed,
    FeatureReviewRequested,
    ReviewEvent,
)
from interlock.core.session.timestamps import Timestamp
from interlock.core.session.verdict_outcomes import DECISIONS, VerdictDecision, VerdictOutcome

# A word stands for the first outcome that is shown with it.
_OUTCOMES: dict[str, VerdictOutcome] = {
    DECISIONS[outcome]: outcome for outcome in reversed(DECISIONS)
}
_FORMS = {
    "approve": "approved accept accepted ok lgtm passed approval",
    "conditional": (
        "conditionally_approved conditional_approval approve_with_conditions"
        " approved_with_conditions approved_conditionally"
    ),
    "needs_revision": (
        "needs_revisions needs_rework needs_changes needs_work changes_requested request_changes"
        " changes_needed revise"
    ),
    "reject": "rejection decline declined refused",
}
"""Other forms in which models send the words."""
_OUTCOMES.update(
    {form: _OUTCOMES[word] for word, forms in _FORMS.items() for form in forms.split()}
)


class OrchestrationPart(msgspec.Struct, frozen=True, rename="camel"):
    pass


class AgentInput(OrchestrationPart, frozen=True):
    prompt: str
    context: dict[str, Any] = {}
    artifacts: tuple[str, ...] = ()


class AgentOutput(OrchestrationPart, frozen=True):
    summary: str
    artifacts: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()


class AgentInvocation(OrchestrationPart, frozen=True):
    id: DelegationId
    agent: str
    started_at: Timestamp
    input: AgentInput
    status: Literal["in_progress", "completed", "failed", "blocked"] = "in_progress"
    completed_at: Timestamp | None = None
    output: AgentOutput | None = None
    handoff_from: str | None = None
    handoff_to: str | None = None
    handoff_reason: str = ""


class Decision(OrchestrationPart, frozen=True):
    id: str
    type: DecisionType
    description: str
    rationale: str
    decided_by: str
    timestamp: Timestamp
    approved_by: tuple[str, ...] = ()
    rejected_by: tuple[str, ...] = ()


class Verdict(OrchestrationPart, frozen=True):
    agent: str
    decision: VerdictDecision
    outcome: VerdictOutcome
    confidence: Annotated[int, Meta(ge=0, le=100)] | None
    reasoning: str
    timestamp: Timestamp
    conditions: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()


class Handoff(OrchestrationPart, frozen=True):
    from_agent: str
    to_agent: str
    reason: str
    context: str
    created_at: Timestamp
    artifacts: tuple[str, ...] = ()
    preserved_context: dict[str, Any] = {}


class PassedHandoff(OrchestrationPart, frozen=True):
    """A hand-off that another session has taken up."""

    handoff: Handoff
    session: str


class CompactedHistory(msgspec.Struct, frozen=True):
    """The content of the blob that keeps what was compacted."""

    delegations: tuple[AgentInvocation, ...]


class Compaction(OrchestrationPart, frozen=True):
    note_path: str
    compacted_at: Timestamp
    count: int
    agents_summary: str


class Orchestration(OrchestrationPart, frozen=True):
    started_at: Timestamp
    last_agent_change: Timestamp
    active_agent: str | None = None
    workflow_phase: Phase = "planning"
    agent_history: tuple[AgentInvocation, ...] = ()
    decisions: tuple[Decision, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    pending_handoffs: tuple[Handoff, ...] = ()
    passed_handoffs: tuple[PassedHandoff, ...] = ()
    compaction_history: tuple[Compaction, ...] = ()
    feature_reviews: tuple[FeatureReview, ...] = ()

    @property
    def known_phase(self) -> str:
        """The phase; empty for the first one, which nobody may ever have set."""
        return "" if self.workflow_phase == "planning" else self.workflow_phase

    @property
    def open_invocations(self) -> tuple[AgentInvocation, ...]:
        return tuple(one for one in self.agent_history if one.status == "in_progress")


NO_WORK = Orchestration("", "")
"""The work of a session without delegations and decisions."""
decode_history = msgspec.json.Decoder(CompactedHistory).decode


def outcome_of(word: str, *, has_blockers: bool) -> VerdictOutcome | None:
    """Return the outcome that a word of either vocabulary stands for; None if it is no such word.

    A rejection that names what stands in the way is critical.
    """
    folded = re.sub(r"[\W_]+", "_", word.casefold()).strip("_")
    outcome = _OUTCOMES.get(folded)
    if outcome == "REJECTED" and has_blockers:
        return "CRITICAL_FAIL"
    return outcome or next((known for known in DECISIONS if known == folded.upper()), None)


def apply_delegation_event(
    before: Orchestration | None, event: DelegationEvent | ReviewEvent, at: str
) -> Orchestration:
    work = before or Orchestration(at, at)
    change = msgspec.structs.replace
    match event:
        case AgentInvoked():
            return _with_invocation(work, event, at)
        case AgentCompleted():
            return _with_completion(work, event, at)
        case DecisionRecorded():
            decision = Decision(
                *(event.decision, event.type, event.description, event.rationale),
                event.decided_by,
                at,
            )
            return change(work, decisions=(*work.decisions, decision))
        case DecisionJudged():
            return change(
                work, decisions=tuple(_with_judgement(one, event) for one in work.decisions)
            )
        case HistoryCompacted():
            gone = set(event.delegations)
            kept = tuple(one for one in work.agent_history if one.id not in gone)
            entry = Compaction(event.note, at, len(gone), event.agents_summary)
            compactions = (*work.compaction_history, entry)
            return change(work, agent_history=kept, compaction_history=compactions)
        case HandoffReceived():
            handoff = Handoff(
                *(event.from_agent, event.to_agent, event.reason, event.context, event.created_at),
                event.artifacts,
                event.preserved_context,
            )
            return change(work, pending_handoffs=(*work.pending_handoffs, handoff))
        case HandoffPassedOn():
            return _without_handoff(work, event)
        case FeatureReviewRequested():
            return change(work, feature_reviews=(*work.feature_reviews, new_review(event, at)))
        case FeatureReviewed():
            reviews = tuple(with_outcome(one, event, at) for one in work.feature_reviews)
            return change(work, feature_reviews=reviews)
        case _:
            assert_never(event)


def _with_invocation(work: Orchestration, event: AgentInvoked, at: str) -> Orchestration:
    is_review = event.by == "review"
    waiting = [
        one for one in work.pending_handoffs if one.to_agent == event.agent and not is_review
    ]
    # What is taken up comes first; else it is the one who worked until now that hands it on.
    handed_by = waiting[-1].from_agent if waiting else None if is_review else work.active_agent
    invocation = AgentInvocation(
        event.delegation,
        event.agent,
        at,
        AgentInput(event.prompt, event.context, event.artifacts),
        handoff_from=handed_by,
        handoff_reason=event.reason or (waiting[-1].reason if waiting else ""),
    )
    return msgspec.structs.replace(
        work,
        active_agent=event.agent,
        last_agent_change=at,
        agent_history=(*work.agent_history, invocation),
        pending_handoffs=tuple(one for one in work.pending_handoffs if one not in waiting),
    )


def _without_handoff(work: Orchestration, event: HandoffPassedOn) -> Orchestration:
    gone = [one for one in work.pending_handoffs if short_digest(one) == event.handoff]
    return msgspec.structs.replace(
        work,
        pending_handoffs=tuple(one for one in work.pending_handoffs if one not in gone),
        passed_handoffs=(
            *work.passed_handoffs,
            *(PassedHandoff(handoff, event.session) for handoff in gone[:1]),
        ),
    )


def _with_completion(work: Orchestration, event: AgentCompleted, at: str) -> Orchestration:
    change = msgspec.structs.replace
    invocation = next((one for one in work.agent_history if one.id == event.delegation), None)
    if invocation is None:
        return work  # a bundle of somebody else's may say anything
    done = change(
        invocation,
        status=event.status,
        completed_at=at,
        output=AgentOutput(event.summary, event.artifacts, event.recommendations, event.blockers),
        handoff_to=event.handoff_to or None,
    )
    history = tuple(done if one.id == done.id else one for one in work.agent_history)
    reviews = tuple(with_verdict(one, event) for one in work.feature_reviews)
    work = change(work, agent_history=history, last_agent_change=at, feature_reviews=reviews)
    still_open = work.open_invocations
    work = change(work, active_agent=still_open[-1].agent if still_open else None)
    if event.handoff_to:
        handoff = Handoff(
            *(done.agent, event.handoff_to, event.handoff_reason, event.summary, at),
            event.artifacts,
            event.preserved_context,
        )
        work = change(work, pending_handoffs=(*work.pending_handoffs, handoff))
    if event.verdict:
        verdicts = (*work.verdicts, _verdict(done.agent, event.verdict, at))
        work = change(work, verdicts=verdicts)
    return work


def _verdict(agent: str, given: VerdictGiven, at: str) -> Verdict:
    return Verdict(
        agent,
        DECISIONS[given.outcome],
        given.outcome,
        given.confidence,
        given.reasoning,
        at,
        given.conditions,
        given.blockers,
    )


def _with_judgement(decision: Decision, event: DecisionJudged) -> Decision:
    if decision.id != event.decision:
        return decision
    approved = tuple(agent for agent in decision.approved_by if agent != event.agent)
    rejected = tuple(agent for agent in decision.rejected_by if agent != event.agent)
    if event.is_approved:
        approved = (*approved, event.agent)
    else:
        rejected = (*rejected, event.agent)
    return msgspec.structs.replace(decision, approved_by=approved, rejected_by=rejected)
