"""The review of a feature, as the answers of tools tell of it."""

import msgspec

from interlock.core.session.feature_review import FeatureReview


class ReviewAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    review: str
    feature: str
    awaited: tuple[str, ...] = ()
    """The reviewers whose verdicts are not in."""
    deadline: str = ""
    outcome: str = ""
    is_blocking: bool = False
    reason: str = ""


def review_answer(review: FeatureReview) -> ReviewAnswer:
    if review.is_open:
        awaited = tuple(one.agent for one in review.awaited_reviewers)
        return ReviewAnswer(review.id, review.feature, awaited, review.deadline)
    return ReviewAnswer(
        review.id,
        review.feature,
        outcome=review.outcome or "",
        is_blocking=review.is_blocking,
        reason=review.reason,
    )
