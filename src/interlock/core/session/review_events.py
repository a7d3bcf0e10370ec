"""The events of a feature that is declared complete: who must review it, and what they think."""

from typing import TypeAlias

import msgspec

from interlock.core.ids import DelegationId
from interlock.core.session.event_struct import EventStruct
from interlock.core.session.verdict_outcomes import VerdictOutcome


class RequiredReviewer(msgspec.Struct, frozen=True, rename="camel"):
    agent: str
    delegation: DelegationId


class FeatureReviewRequested(EventStruct, frozen=True, tag="feature_review_requested"):
    """A feature is said to be complete. Each reviewer has a delegation of its own."""

    review: str
    feature: str
    reviewers: tuple[RequiredReviewer, ...]
    deadline_ms: int


class ReviewerResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    agent: str
    outcome: VerdictOutcome
    reasoning: str
    is_missing: bool = False
    """The deadline came before the verdict."""


class FeatureReviewed(EventStruct, frozen=True, tag="feature_reviewed"):
    """All verdicts are in, or the deadline has passed."""

    review: str
    feature: str
    outcome: VerdictOutcome
    is_blocking: bool
    reason: str
    results: tuple[ReviewerResult, ...]


ReviewEvent: TypeAlias = FeatureReviewRequested | FeatureReviewed


def review_key(review: str) -> str:
    return f"review:{review}"


def reviewed_key(review: str) -> str:
    """The key of the outcome of a review. There is one, whoever was the last."""
    return f"reviewed:{review}"
