"""The events for what a judged output contains: observations, divergences, assessments and gaps."""

from collections.abc import Mapping

import msgspec

from interlock.core import ids
from interlock.core.ids import AttemptId, GapId, NodeId
from interlock.core.session.events import (
    AssessmentRecorded,
    CapabilityObserved,
    DivergenceRecorded,
    GapRecorded,
    GapResolved,
)
from interlock.core.session.judge import Judgement
from interlock.core.session.plan import EventDraft
from interlock.core.session.run_head import RunHead, with_fact
from interlock.core.session.shortcomings import NewGap


class Facts(msgspec.Struct, frozen=True):
    drafts: tuple[EventDraft, ...]
    run: RunHead
    """The run once the drafts are recorded."""
    gaps: tuple[GapRecorded, ...]
    """The gaps among them."""
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
    """Return the events for a judged output, and the run after them.

    `open_gaps` are those that the output says it closes, as far as they exist and are open.
    """
    origin = f"{node}:{attempt}"
    drafts: list[EventDraft] = []
    gaps: list[GapRecorded] = []
    warnings: list[str] = []
    for index, observation in enumerate(judgement.observations):
        event = CapabilityObserved(observation.capability, observation.status, observation.evidence)
        drafts.append(EventDraft(f"capability:{origin}:{index}", event, run.run, node))
    for index, divergence in enumerate(judgement.divergences):
        event = DivergenceRecorded(divergence.reason, divergence.summary)
        drafts.append(EventDraft(f"divergence:{origin}:{index}", event, run.run, node))
    for result in judgement.assessments:
        event = AssessmentRecorded(result.assessment, result.levels)
        drafts.append(EventDraft(f"assessment:{origin}:{result.assessment}", event, run.run, node))
    for proof in judgement.evidence:
        drafts.append(EventDraft(f"evidence:{origin}:{proof.step_id}", proof, run.run, node))
    for index, new_gap in enumerate(judgement.gaps):
        gap = _gap_event(new_gap, origin, index)
        drafts.append(EventDraft(gap_key(gap.gap), gap, run.run, node))
        gaps.append(gap)
    explanations = {
        GapId(resolution.gap_id): resolution.how for resolution in judgement.resolutions
    }
    for gap_id, explanation in explanations.items():
        gap = open_gaps.get(gap_id)
        if gap is None:
            warnings.append(
                f"There is no open gap `{gap_id}` in this run; nothing was resolved. The user can"
                " close a gap of another run with `interlock gaps resolve SESSION GAP HOW`."
            )
        else:
            event = GapResolved(gap_id, gap.severity, explanation, "agent")
            drafts.append(EventDraft(gap_resolved_key(gap_id), event, run.run, node))
    for draft in drafts:
        if isinstance(draft.event, CapabilityObserved | GapRecorded | GapResolved):
            run = with_fact(run, draft.event)
    return Facts(tuple(drafts), run, tuple(gaps), tuple(warnings))


def _gap_event(new_gap: NewGap, origin: str, index: int) -> GapRecorded:
    return GapRecorded(
        ids.gap_id(origin, new_gap.subject or str(index)),
        new_gap.severity,
        new_gap.category,
        new_gap.summary,
        new_gap.subject if new_gap.category == "capability" else "",
        new_gap.subject if new_gap.category == "skipped" else "",
    )
