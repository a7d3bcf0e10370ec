"""The plan of a change to delegated work: its events with their keys, and what follows from them.

A long history is compacted in the same append, and a review that has its last verdict is settled.
"""

from collections.abc import Sequence

import msgspec

from interlock.core import canonical
from interlock.core.ids import BlobRef, DelegationId
from interlock.core.protocol.gated_session import change_drafts
from interlock.core.protocol.specialists import REMEMBERED
from interlock.core.session.delegation_events import (
    AgentCompleted,
    AgentInvoked,
    DelegationEvent,
    HandoffPassedOn,
    HandoffReceived,
    HistoryCompacted,
)
from interlock.core.session.events import SessionEvent, WorkChanged
from interlock.core.session.feature_review import settled_reviews
from interlock.core.session.orchestration import (
    CompactedHistory,
    Orchestration,
    apply_delegation_event,
)
from interlock.core.session.plan import Plan, Stream, plan
from interlock.core.session.review_events import (
    FeatureReviewed,
    FeatureReviewRequested,
    ReviewEvent,
    review_key,
    reviewed_key,
)
from interlock.core.session.state import SessionState, timestamp

HISTORY_MAX = 10
HISTORY_KEPT = 3
COMPACTED_MIN = 4  # each compaction is a note of its own


def events_with_reviews(
    stream: Stream, state: SessionState, completed: AgentCompleted | None, at_ms: int
) -> list[SessionEvent]:
    """Return the end of a delegation with the outcomes of the reviews that it settles.

    A review whose deadline has passed is settled first: this verdict comes too late for it.
    """
    now, work = timestamp(at_ms), state.orchestrator_workflow
    events: list[SessionEvent] = [*settled_reviews(work.feature_reviews if work else (), now)]
    if completed:
        events.append(completed)
        work = _with_events(work, events, now)
        events += settled_reviews(work.feature_reviews if work else (), now)
    attended = stream.head.attended if stream.head else None
    accepted = [
        event.feature
        for event in events
        if isinstance(event, FeatureReviewed) and not event.is_blocking
    ]
    # The phase is that of the feature which the session is about.
    is_own = attended and (attended.feature in accepted or (accepted and not attended.feature))
    if attended and is_own and attended.phase != "complete":
        events.append(WorkChanged(attended.feature, attended.task, "complete"))
    return events


def plan_events(
    stream: Stream,
    state: SessionState,
    events: Sequence[SessionEvent],
    at_ms: int,
    *,
    kept: DelegationId | None = None,
) -> Plan:
    """`kept`: the delegation that is not compacted now, because the answer is about it."""
    work = _with_events(state.orchestrator_workflow, events, timestamp(at_ms))
    assert work is not None, "something was applied"
    events, blobs = [*events], dict[BlobRef, bytes]()
    if compaction := _compaction(stream, work, blobs, at_ms, kept):
        events.append(compaction)
    drafts = [
        msgspec.structs.replace(draft, key=_unique_key(draft.event) or draft.key)
        for draft in change_drafts(stream, "delegation", events)
    ]
    return plan(stream, drafts, blobs=blobs, at_ms=at_ms)


def _with_events(
    work: Orchestration | None, events: Sequence[SessionEvent], at: str
) -> Orchestration | None:
    for event in events:
        if isinstance(event, DelegationEvent | ReviewEvent):
            work = apply_delegation_event(work, event, at)
    return work


def _unique_key(event: SessionEvent) -> str:
    """The key of an event that happens once; empty where it may happen again."""
    match event:
        case AgentInvoked():
            return invocation_key(event.delegation)
        case HandoffReceived():
            return handoff_key(event)
        case HandoffPassedOn():
            return f"handoff-passed:{event.handoff}"
        case FeatureReviewRequested():
            return review_key(event.review)
        case FeatureReviewed():
            return reviewed_key(event.review)
        case _:
            return ""


def _compaction(
    stream: Stream,
    work: Orchestration,
    blobs: dict[BlobRef, bytes],
    at_ms: int,
    kept: DelegationId | None,
) -> HistoryCompacted | None:
    """Compact a long history: the last ones stay, what is open, and what specialists found."""
    if len(work.agent_history) <= HISTORY_MAX:
        return None
    # A specialist goes on from what it found last, however long ago that was.
    newest = {one.agent: one.id for one in work.agent_history if one.output}
    remembered = {kept, *(newest.get(agent) for agent in REMEMBERED)}
    older = [
        one
        for one in work.agent_history[:-HISTORY_KEPT]
        if one.status != "in_progress" and one.id not in remembered
    ]
    if len(older) < COMPACTED_MIN:
        return None  # most are still open
    content = canonical.encode(CompactedHistory(tuple(older)))
    history = canonical.blob_ref(content)
    blobs[history] = content
    counts: dict[str, int] = {}
    for one in older:
        counts[one.agent] = counts.get(one.agent, 0) + 1
    summary = ", ".join(f"{agent} {count}" for agent, count in sorted(counts.items()))
    note = history_note_name(stream.session, at_ms)
    return HistoryCompacted(tuple(one.id for one in older), history, note, summary)


def invocation_key(delegation: DelegationId) -> str:
    """Return the key of the event with which a delegation begins. It happens once."""
    return f"delegated:{delegation}"


def handoff_key(event: HandoffReceived) -> str:
    """Return the key of a hand-off that comes from elsewhere. It is received once."""
    return f"handoff-received:{canonical.short_digest(event)}"


def history_note_name(session: str, at_ms: int) -> str:
    return f"sessions/session-{session}-history-{at_ms}"
