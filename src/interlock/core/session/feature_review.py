"""The review of a feature that is said to be complete: a part of the state of a session.

Each reviewer has a delegation. Its verdict is noted here when the delegation is completed, because
the delegation itself may be compacted before the review has its outcome.
"""

from collections.abc import Iterable, Iterator

import msgspec

from interlock.core.ids import DelegationId
from interlock.core.notes.fts_query import one_line
from interlock.core.session.delegation_events import AgentCompleted
from interlock.core.session.review_events import (
    FeatureReviewed,
    FeatureReviewRequested,
    ReviewerResult,
)
from interlock.core.session.timestamps import Timestamp, timestamp
from interlock.core.session.verdict_outcomes import (
    BLOCKING_OUTCOMES,
    VerdictOutcome,
    merge_outcomes,
)
from interlock.core.workflow.operators import clip

REASONING_CHARS_MAX = 300  # all of it is with the verdict


class FeatureReviewer(msgspec.Struct, frozen=True, rename="camel"):
    agent: str
    delegation: DelegationId
    outcome: VerdictOutcome | None = None
    """None until its verdict is in; of one that is late for ever."""
    reasoning: str = ""


class FeatureReview(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    feature: str
    requested_at: Timestamp
    deadline: Timestamp
    reviewers: tuple[FeatureReviewer, ...]
    outcome: VerdictOutcome | None = None
    is_blocking: bool = False
    reason: str = ""
    reviewed_at: Timestamp | None = None

    @property
    def is_open(self) -> bool:
        return self.outcome is None

    @property
    def awaited_reviewers(self) -> tuple[FeatureReviewer, ...]:
        return tuple(one for one in self.reviewers if one.outcome is None)


def new_review(event: FeatureReviewRequested, at: str) -> FeatureReview:
    reviewers = tuple(FeatureReviewer(one.agent, one.delegation) for one in event.reviewers)
    deadline = timestamp(event.deadline_ms)
    return FeatureReview(event.review, event.feature, at, deadline, reviewers)


def with_verdict(review: FeatureReview, event: AgentCompleted) -> FeatureReview:
    """Note the verdict of a reviewer; a result without one means that nobody can tell yet."""
    if not review.is_open:
        return review
    verdict = event.verdict
    outcome: VerdictOutcome = verdict.outcome if verdict else "NEEDS_REVIEW"
    reasoning = verdict.reasoning if verdict else "it gave no verdict"
    return msgspec.structs.replace(
        review,
        reviewers=tuple(
            msgspec.structs.replace(one, outcome=outcome, reasoning=_shorten(reasoning))
            if one.delegation == event.delegation
            else one
            for one in review.reviewers
        ),
    )


def _shorten(reasoning: str) -> str:
    return clip(one_line(reasoning), REASONING_CHARS_MAX)


def with_outcome(review: FeatureReview, event: FeatureReviewed, at: str) -> FeatureReview:
    if review.id != event.review or not review.is_open:
        return review
    return msgspec.structs.replace(
        review,
        outcome=event.outcome,
        is_blocking=event.is_blocking,
        reason=event.reason,
        reviewed_at=at,
    )


def settled_reviews(reviews: Iterable[FeatureReview], now: str) -> Iterator[FeatureReviewed]:
    """Yield the outcomes of open reviews that have all verdicts, or whose deadline has passed."""
    for review in reviews:
        if (
            review.is_open
            and review.reviewers
            and (not review.awaited_reviewers or review.deadline <= now)
        ):
            yield _outcome_of(review)


def _outcome_of(review: FeatureReview) -> FeatureReviewed:
    results = tuple(
        ReviewerResult(one.agent, one.outcome, one.reasoning)
        if one.outcome
        else ReviewerResult(
            one.agent, "NEEDS_REVIEW", "it gave no verdict before the deadline", is_missing=True
        )
        for one in review.reviewers
    )
    outcome = merge_outcomes(result.outcome for result in results)
    reason = "; ".join(
        f"{result.agent}: {result.reasoning}" for result in results if result.outcome == outcome
    )
    return FeatureReviewed(
        review.id, review.feature, outcome, outcome in BLOCKING_OUTCOMES, reason, results
    )
