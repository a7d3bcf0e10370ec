"""Feature completion: what stands in its way, and who must review it.

One append opens a delegation for each reviewer. The last verdict, or the first look after the
deadline, decides what came of it (`delegation_plan.events_with_reviews`).
"""

from collections.abc import Sequence

import msgspec

from interlock.core import canonical, ids
from interlock.core.explanation import Explanation
from interlock.core.ids import DelegationId
from interlock.core.protocol.delegation_plan import events_with_reviews, plan_events
from interlock.core.protocol.delegation_refusals import RequestIdReused, invalid_delegation
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.protocol.specialists import is_agent_name
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.core.session.delegation_events import AgentCompleted, AgentInvoked
from interlock.core.session.events import GapRecorded, SessionEvent
from interlock.core.session.feature_review import FeatureReview
from interlock.core.session.orchestration import AgentInvocation, Decision, Orchestration
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.review_events import FeatureReviewRequested, RequiredReviewer
from interlock.core.session.run_head import RunHead
from interlock.core.session.state import SessionState
from interlock.core.visible_text import is_blank

REVIEWERS_DEFAULT = ("qa", "analyst", "architect")
REVIEWERS_MAX = 20
HOUR_MS = 3_600_000
DEADLINE_MS_DEFAULT = 24 * HOUR_MS
DEADLINE_HOURS_MAX = 24 * 365
FEATURE_CHARS_MAX = 500


class FeatureCompletionRequest(msgspec.Struct, frozen=True):
    feature: str | None
    """None: the one that the session is about."""
    reviewers: tuple[str, ...] = ()
    deadline_ms: int = DEADLINE_MS_DEFAULT
    """The time that the reviewers have."""
    request_id: str | None = None


class FeatureHasOpenWork(Refusal, frozen=True):
    feature: str
    blockers: tuple[str, ...]
    open_delegation: DelegationId | None = None
    """The first delegation that must be completed first."""

    def explain(self) -> Explanation:
        count = len(self.blockers)
        things = "one thing stands" if count == 1 else f"{count} things stand"
        return Explanation(
            "feature_not_done",
            f"Feature `{self.feature}` cannot be completed: {things} in its way",
            "\n".join(("Finish this first:", *(f"- {blocker}" for blocker in self.blockers))),
        )


FeatureRefusal = FeatureHasOpenWork | RequestIdReused | SessionEnded | PlainRefusal


def request_review(
    stream: Stream,
    state: SessionState,
    request: FeatureCompletionRequest,
    *,
    runs: Sequence[RunHead],
    gaps: Sequence[GapRecorded],
    at_ms: int,
) -> Plan | FeatureRefusal | None:
    """Plan the review of a feature; None if it was requested before (`find_requested`)."""
    if state.status == "ended":
        return SessionEnded(state.session_id)
    feature = feature_of(state, request)
    if not feature:
        error = "The session is about no feature, and none is named"
        hint = "Name the one that is complete as `feature`."
        return PlainRefusal("invalid_arguments", error, hint)
    if problem := _problem_of(feature, request):
        return invalid_delegation(problem)
    if requested := find_requested(state, request):
        is_same = requested.feature == feature
        return None if is_same else RequestIdReused(request.request_id or "")
    work = state.work
    late = late_delegations(work)
    still_open = [one for one in work.open_invocations if one.id not in late]
    if blockers := tuple(_blockers(work, still_open, runs, gaps)):
        first = still_open[0].id if still_open else None
        return FeatureHasOpenWork(feature, blockers, first)
    review = review_id(stream.session, request) or ids.review_id(
        stream.session, f"{stream.version} {canonical.short_digest(request)}"
    )
    reviewers = tuple(
        RequiredReviewer(agent, ids.delegation_id(stream.session, f"{review} {agent}"))
        for agent in dict.fromkeys(request.reviewers)
    )
    prompt = (
        f"Review the feature “{feature}” and complete this delegation with your verdict: may it"
        " count as complete?"
    )
    events: list[SessionEvent] = [
        # Whoever was too late for an earlier review is asked anew.
        *(AgentCompleted(name, "failed", "Another review has replaced this one.") for name in late),
        FeatureReviewRequested(review, feature, reviewers, at_ms + request.deadline_ms),
        *(
            AgentInvoked(one.delegation, one.agent, prompt, reason=review, by="review")
            for one in reviewers
        ),
    ]
    return plan_events(stream, state, events, at_ms)


def settle_overdue(stream: Stream, state: SessionState, *, at_ms: int) -> Plan | None:
    """Plan the outcomes of the reviews whose deadline has passed; None if there are none."""
    events = events_with_reviews(stream, state, None, at_ms)
    return plan_events(stream, state, events, at_ms) if events else None


def find_requested(state: SessionState, request: FeatureCompletionRequest) -> FeatureReview | None:
    """Find the review that the same call has opened: by its name, or the open one of a feature."""
    feature = feature_of(state, request)
    named = review_id(state.session_id, request)
    reviews = tuple(reversed(state.work.feature_reviews))
    by_name = (review for review in reviews if review.id == named)
    still_open = (review for review in reviews if review.is_open and review.feature == feature)
    return next(by_name, None) or next(still_open, None)


def feature_of(state: SessionState, request: FeatureCompletionRequest) -> str:
    named = request.feature
    return state.active_feature or "" if named is None or is_blank(named) else named.strip()


def review_id(session: str, request: FeatureCompletionRequest) -> str:
    """The id of a review that is named by its call; empty if it is not."""
    return ids.review_id(session, request.request_id) if request.request_id else ""


def late_delegations(work: Orchestration) -> tuple[DelegationId, ...]:
    """Return the delegations that are still open though their review is over."""
    over = {
        one.delegation
        for review in work.feature_reviews
        if not review.is_open
        for one in review.reviewers
    }
    return tuple(one.id for one in work.open_invocations if one.id in over)


def _problem_of(feature: str, request: FeatureCompletionRequest) -> str:
    if len(feature) > FEATURE_CHARS_MAX:
        return f"The name of a feature has at most {FEATURE_CHARS_MAX} characters"
    if not request.reviewers:
        return "A feature needs at least one reviewer"
    if len(request.reviewers) > REVIEWERS_MAX:
        return f"A feature has at most {REVIEWERS_MAX} reviewers"
    bad = next((name for name in request.reviewers if not is_agent_name(name)), None)
    return "" if bad is None else f"`{bad}` is no name of an agent"


def _blockers(
    work: Orchestration,
    still_open: Sequence[AgentInvocation],
    runs: Sequence[RunHead],
    gaps: Sequence[GapRecorded],
) -> list[str]:
    """Return all that is not done, each with what to do about it."""
    blockers = [
        f"delegation {one.id} to {one.agent} is open: `complete_delegation`" for one in still_open
    ]
    blockers += [
        f"run {run.run} of {run.workflow_id} is {run.status}: go on with it, or the user gives it"
        f" up with `interlock run abandon {run.run}`"
        for run in runs
        if run.status in ("open", "waiting")
    ]
    blockers += [
        f"critical gap {gap.gap} is open ({gap.summary}): the user closes it with"
        f" `interlock gaps resolve SESSION {gap.gap} HOW`"
        for gap in gaps
        if gap.severity == "critical"
    ]
    decisions = work.decisions
    blockers += [
        f"decision {one.id} was rejected by {', '.join(one.rejected_by)} ({one.description}):"
        f" record the one that replaces it, with {one.id} in its rationale"
        for index, one in enumerate(decisions)
        if one.rejected_by and not _is_replaced(one, decisions[index + 1 :])
    ]
    return blockers


def _is_replaced(decision: Decision, later: Sequence[Decision]) -> bool:
    return any(decision.id in f"{one.description} {one.rationale}" for one in later)
