"""Events for people: each as one line in plain words, with links to what it is about."""

from typing import Literal, assert_never

import msgspec

from interlock.core.counting import pluralise
from interlock.core.session.approval_events import (
    SessionApprovalRequested,
    SessionApprovalResolved,
    SessionApprovalUsed,
)
from interlock.core.session.delegation_events import (
    AgentCompleted,
    AgentInvoked,
    DecisionJudged,
    DecisionRecorded,
    HandoffPassedOn,
    HandoffReceived,
    HistoryCompacted,
)
from interlock.core.session.delivery_events import (
    DeliveryEnded,
    DeliveryEvent,
    DeliveryRecorded,
    DeliveryRequested,
)
from interlock.core.session.events import (
    AdvanceRecorded,
    ApprovalRequested,
    ApprovalResolved,
    AssessmentRecorded,
    CapabilityObserved,
    ContextSet,
    DivergenceRecorded,
    Envelope,
    EvidenceRecorded,
    GapRecorded,
    GapResolved,
    HostBound,
    ModeChanged,
    NodeCreated,
    NoteWritten,
    ObservationRecorded,
    OutputAppended,
    PreferencesChanged,
    ProtocolStarted,
    RunAbandoned,
    RunCompleted,
    RunEvent,
    RunStarted,
    RunUnblocked,
    SessionArchived,
    SessionCreated,
    SessionEvent,
    StatusChanged,
    TraceAppended,
    ValidationPerformed,
    WorkChanged,
)
from interlock.core.session.progress_events import (
    PlanApproved,
    ProgressEvent,
    SubagentEnded,
    SubagentStarted,
    TasksUpdated,
)
from interlock.core.session.protocol_events import (
    ProtocolEnded,
    ProtocolEndRefused,
    ProtocolEndRequested,
    RequirementWaived,
    SessionCompleted,
)
from interlock.core.session.review_events import FeatureReviewed, FeatureReviewRequested
from interlock.core.session.unattended_events import (
    UnattendedControlled,
    UnattendedEvent,
    UnattendedLimitsRaised,
    UnattendedMoved,
    UnattendedRequested,
    UnattendedSteered,
)
from interlock.core.session.verdict_outcomes import DECISIONS
from interlock.core.unattended.order import limits_in_words
from interlock.core.views.decisions import decisions_in_words
from interlock.core.workflow.operators import clip

SUMMARY_CHARS_MAX = 300


class EventLink(msgspec.Struct, frozen=True, rename="camel"):
    what: Literal["run", "node", "approval", "gap"]
    id: str


class EventRow(msgspec.Struct, frozen=True, rename="camel"):
    seq: int
    at_ms: int
    kind: str
    """The kind as it is stored."""
    summary: str
    is_failure: bool
    """Whether it is a failure, which a person looks for first."""
    links: tuple[EventLink, ...]
    """The things it is about, the nearest first; each once."""


def event_row(envelope: Envelope) -> EventRow:
    event = envelope.event
    return EventRow(
        envelope.seq,
        envelope.at_ms,
        kind_of(event),
        event_summary(event),
        is_failure(event),
        _links(envelope),
    )


def kind_of(event: SessionEvent) -> str:
    return str(event.__struct_config__.tag)


def event_summary(event: SessionEvent) -> str:
    """Return a summary on one line, whatever an agent has written."""
    return clip(" ".join(_unclipped_summary(event).split()), SUMMARY_CHARS_MAX)


def is_failure(event: SessionEvent) -> bool:
    match event:
        case ValidationPerformed() | GapRecorded() | NodeCreated(node_kind="blocked"):
            return True
        case ApprovalResolved(verdict="denied") | CapabilityObserved(status="unavailable"):
            return True
        case AgentCompleted(status="blocked" | "failed") | SubagentEnded(outcome="failed"):
            return True
        case ProtocolEndRefused() | SessionApprovalResolved(verdict="denied"):
            return True
        case FeatureReviewed(is_blocking=True):
            return True
        case UnattendedMoved(status="parked") | UnattendedMoved(outcome="failed" | "gave_up"):
            return True
        case DeliveryRecorded(outcome="refused") | DeliveryEnded(outcome="refused" | "failed"):
            return True
        case _:
            return False


def _unclipped_summary(event: SessionEvent) -> str:
    if isinstance(event, UnattendedEvent | DeliveryEvent):
        return _unattended_summary(event)
    if isinstance(event, ProgressEvent):
        return _progress_summary(event)
    match event:
        case SessionCreated():
            origin = f", imported from {event.imported_from}" if event.imported_from else ""
            return f"session created in {event.workspace}{origin}"
        case ObservationRecorded():
            return f"git: {event.git_branch or 'detached'} at {(event.git_head or 'nothing')[:12]}"
        case HostBound():
            return f"conversation {event.host_session} of {event.host} ({event.source})"
        case ModeChanged():
            agreed = ", the user agreed" if event.is_agreed else ""
            return f"mode {event.mode}, by {event.by}{agreed}"
        case WorkChanged():
            about = f"feature {event.feature or '-'}, task {event.task or '-'}"
            return about if event.phase == "planning" else f"{about}, phase {event.phase}"
        case ProtocolStarted():
            return f"session started: {_pairs(event.evidence)}"
        case StatusChanged():
            return f"session {event.status}: {event.reason}"
        case ProtocolEndRequested():
            return f"the end of the session is wanted: {event.summary or '-'}"
        case ProtocolEndRefused():
            return f"the session cannot end yet: {'; '.join(event.blockers)}"
        case ProtocolEnded():
            return f"the protocol of the session has ended: {_pairs(event.evidence)}"
        case RequirementWaived():
            return f"{event.requirement} waived by {event.who}: {event.reason}"
        case SessionCompleted():
            commit = event.commit or event.commit_fault or "none"
            return f"the session is complete, commit: {commit}"
        case SessionApprovalRequested():
            return f"approval {event.approval} asked for: {event.title}: {event.content}"
        case SessionApprovalResolved():
            return _answer_summary(event)
        case SessionApprovalUsed():
            return f"approval {event.approval} was used: the call was let through"
        case NoteWritten():
            return f"wrote the note {event.note}"
        case SessionArchived():
            return "archived" if event.is_archived else "back from the archive"
        case AgentInvoked():
            return f"{event.agent} was given work: {event.prompt}"
        case AgentCompleted():
            verdict = f", verdict {DECISIONS[event.verdict.outcome]}" if event.verdict else ""
            handoff = f", hands on to {event.handoff_to}" if event.handoff_to else ""
            return f"{event.delegation} {event.status}{verdict}{handoff}: {event.summary}"
        case DecisionRecorded():
            return f"{event.decided_by} decided ({event.type}): {event.description}"
        case DecisionJudged():
            verb = "approves of" if event.is_approved else "rejects"
            return f"{event.agent} {verb} {event.decision}"
        case HistoryCompacted():
            count = pluralise(len(event.delegations), "delegation")
            return f"{count} compacted: {event.agents_summary}"
        case HandoffReceived():
            return f"hand-off to {event.to_agent} from {event.source}: {event.context}"
        case HandoffPassedOn():
            return f"the hand-off to {event.to_agent} was taken up in {event.session}"
        case FeatureReviewRequested():
            reviewers = ", ".join(one.agent for one in event.reviewers)
            return f"feature {event.feature} is to be reviewed by {reviewers}"
        case FeatureReviewed():
            verdict = DECISIONS[event.outcome]
            return f"feature {event.feature} was reviewed: {verdict} ({event.reason})"
        case _:
            return _run_event_summary(event)


def _progress_summary(event: ProgressEvent) -> str:
    match event:
        case PlanApproved():
            return f"plan approved by the user: {event.plan}"
        case TasksUpdated():
            done = sum(task.status == "completed" for task in event.tasks)
            return f"task list: {done} of {len(event.tasks)} completed"
        case SubagentStarted():
            return f"subagent {event.agent} started ({event.subagent}): {event.prompt or '-'}"
        case SubagentEnded():
            return f"subagent {event.subagent} ended ({event.outcome}): {event.result or '-'}"


def _unattended_summary(event: UnattendedEvent | DeliveryEvent) -> str:
    match event:
        case UnattendedRequested():
            return f"unattended work asked for by {event.who}: {event.order.goal}"
        case UnattendedControlled():
            return f"unattended work: {event.control.replace('_', ' ')}, by {event.who}"
        case UnattendedSteered():
            return f"message to the model by {event.who}: {event.text}"
        case UnattendedLimitsRaised():
            return f"limits set by {event.who}: {_pairs(limits_in_words(event.limits))}"
        case UnattendedMoved():
            why = event.outcome or event.reason or ""
            return " ".join(filter(None, (f"unattended work {event.status}", why, event.detail)))
        case DeliveryRequested():
            despite = ", secrets or not" if event.accepts_secrets else ""
            return f"delivery asked for by {event.who}{despite}"
        case DeliveryRecorded():
            name = f" of {event.repository}" if event.repository else ""
            facts = (f"delivery: {event.part}{name} {event.outcome}", event.detail, event.url)
            return " ".join(filter(None, facts))
        case DeliveryEnded():
            return " ".join(filter(None, (f"delivery ended: {event.outcome}", event.detail)))


def _run_event_summary(event: RunEvent) -> str:
    match event:
        case RunStarted():
            return f"run of {event.workflow_id} started: {event.goal}"
        case NodeCreated():
            return _node_summary(event)
        case AdvanceRecorded():
            return f"submitted, leads to {event.to}"
        case OutputAppended():
            return _output_summary(event)
        case ValidationPerformed():
            return "not accepted: " + "; ".join(blocker.message for blocker in event.blockers)
        case ContextSet():
            return f"context: {', '.join(event.changed) or 'unchanged'}"
        case PreferencesChanged():
            preferences = event.preferences
            return (
                f"preferences ({event.source}): {preferences.autonomy}, {preferences.risk_policy}"
            )
        case CapabilityObserved():
            return f"{event.capability} is {event.status}: {event.evidence}"
        case GapRecorded():
            return f"gap {event.gap} ({event.severity}): {event.summary}"
        case GapResolved():
            return f"gap {event.gap} closed by {event.by}: {event.how}"
        case DivergenceRecorded():
            return f"left the script ({event.reason}): {event.summary}"
        case TraceAppended():
            return "because: " + ("; ".join(decisions_in_words(event.entries)) or "next in order")
        case AssessmentRecorded():
            return f"assessed {event.assessment}: {_pairs(event.levels)}"
        case EvidenceRecorded():
            basis = "seen by a hook" if event.basis == "observed" else "as the agent says"
            return f"{event.step_id} is proven by `{event.command}` ({basis})"
        case ApprovalRequested():
            return f"approval {event.approval} asked for: {event.question}"
        case ApprovalResolved():
            return _answer_summary(event)
        case RunCompleted():
            return "run complete"
        case RunUnblocked():
            return "unblocked by the user"
        case RunAbandoned():
            return f"abandoned: {event.reason or '-'}"
        case _:
            assert_never(event)


def _answer_summary(event: ApprovalResolved | SessionApprovalResolved) -> str:
    by = event.who or event.by
    return f"approval {event.approval} {event.verdict} ({by}): {event.reason or '-'}"


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _node_summary(event: NodeCreated) -> str:
    if event.node_kind == "checkpoint":
        return "checkpoint"
    if event.node_kind == "approval":
        return "waits for an approval"
    if event.node_kind == "blocked":
        return f"step given again: {event.step_title}"
    return f"step given: {event.step_title}" if event.step_id else "no step left"


def _output_summary(event: OutputAppended) -> str:
    kinds = ", ".join(artifact.kind or "artifact" for artifact in event.artifacts)
    lines = event.notes.strip().splitlines()
    first_line = f"{lines[0]}{' …' if len(lines) > 1 else ''}" if lines else "(none)"
    return f"notes: {first_line}" + (f" [{kinds}]" if kinds else "")


def _links(envelope: Envelope) -> tuple[EventLink, ...]:
    links: list[EventLink] = []
    match envelope.event:
        case (
            ApprovalRequested()
            | SessionApprovalRequested()
            | SessionApprovalResolved()
            | SessionApprovalUsed()
        ) as event:
            links.append(EventLink("approval", event.approval))
        case ApprovalResolved() as event:
            links += (EventLink("approval", event.approval), EventLink("node", event.to))
        case GapRecorded() | GapResolved() as event:
            links.append(EventLink("gap", event.gap))
        case AdvanceRecorded() as event:
            links.append(EventLink("node", event.to))
        case NodeCreated(parent=str() as parent):
            # Itself first, then its parent.
            links += [EventLink("node", envelope.node)] if envelope.node else []
            links.append(EventLink("node", parent))
        case _:
            pass
    links += [EventLink("node", envelope.node)] if envelope.node else []
    links += [EventLink("run", envelope.run)] if envelope.run else []
    return tuple(dict.fromkeys(links))
