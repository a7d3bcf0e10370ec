"""From what an output says to the events that record it."""

from collections.abc import Mapping

import msgspec

from interlock.core import ids
from interlock.core.ids import AttemptId, GapId, NodeId, RunId
from interlock.core.session import head as heads
from interlock.core.session.events import (
    AssessmentRecorded,
    CapabilityObserved,
    DivergenceRecorded,
    GapRecorded,
    GapResolved,
)
from interlock.core.session.head import RunHead
from interlock.core.session.judge import Judgement, NewGap
from interlock.core.session.plan import EventDraft


class Facts(msgspec.Struct, frozen=True):
    drafts: tuple[EventDraft, ...]
    run: RunHead
    """The run once these are recorded."""
    warnings: tuple[str, ...]


def gap_key(gap: GapId) -> str:
    return f"gap:{gap}"


def gap_resolved_key(gap: GapId) -> str:
    return f"gap-resolved:{gap}"


def facts_of(
    judgement: Judgement,
    run: RunHead,
    node: NodeId,
    attempt: AttemptId,
    *,
    open_gaps: Mapping[GapId, GapRecorded],
) -> Facts:
    """`open_gaps` are those that the output says it closes, as far as they exist and are open."""
    here = f"{node}:{attempt}"
    drafts: list[EventDraft] = []
    warnings: list[str] = []
    for index, found in enumerate(judgement.observations):
        event = CapabilityObserved(found.capability, found.status, found.evidence)
        drafts.append(EventDraft(f"capability:{here}:{index}", event, run.run, node))
    for index, found in enumerate(judgement.divergences):
        event = DivergenceRecorded(found.reason, found.summary)
        drafts.append(EventDraft(f"divergence:{here}:{index}", event, run.run, node))
    for found in judgement.assessments:
        event = AssessmentRecorded(found.assessment, found.levels)
        drafts.append(EventDraft(f"assessment:{here}:{found.assessment}", event, run.run, node))
    for index, left in enumerate(judgement.gaps):
        gap = _gap_event(left, run.run, here, index)
        drafts.append(EventDraft(gap_key(gap.gap), gap, run.run, node))
        warnings.append(f"Gap {gap.gap} ({gap.severity}) was recorded: {gap.summary}")
    for gap_id, how in {GapId(found.gap_id): found.how for found in judgement.resolutions}.items():
        gap = open_gaps.get(gap_id)
        if gap is None:
            warnings.append(f"There is no open gap `{gap_id}` here; nothing was resolved.")
        else:
            event = GapResolved(gap_id, gap.severity, how, "agent")
            drafts.append(EventDraft(gap_resolved_key(gap_id), event, run.run, node))
    for draft in drafts:
        if isinstance(draft.event, CapabilityObserved | GapRecorded | GapResolved):
            run = heads.with_fact(run, draft.event)
    return Facts(tuple(drafts), run, tuple(warnings))


def _gap_event(new_gap: NewGap, run: RunId, here: str, index: int) -> GapRecorded:
    parts = (run, new_gap.capability) if new_gap.capability else (here, str(index))
    return GapRecorded(
        ids.gap_id(*parts), new_gap.severity, new_gap.category, new_gap.summary, new_gap.capability
    )
