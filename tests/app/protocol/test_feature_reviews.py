"""Reviews of features: what stops one, what verdicts come to, and what a deadline decides."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers import session_record
from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import delegations, gated_sessions
from interlock.app.protocol.feature_reviews import (
    RequestedReview,
    complete_feature,
    settle_overdue_reviews,
    settled_state,
)
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation import CompletionRequest, DecisionRequest, DelegationRequest
from interlock.core.protocol.delegation_refusals import RequestIdReused
from interlock.core.protocol.feature_completion import (
    HOUR_MS,
    FeatureCompletionRequest,
    FeatureHasOpenWork,
)
from interlock.core.protocol.gated_session import WorkUpdate
from interlock.core.refusal import Refusal
from interlock.core.session.announcements import decode_announcement
from interlock.core.session.delegation_events import VerdictGiven
from interlock.core.session.events import decode_envelope
from interlock.core.session.feature_review import FeatureReview
from interlock.core.session.review_events import FeatureReviewed
from interlock.core.session.state import SessionState
from interlock.core.session.verdict_outcomes import VerdictOutcome
from tests.app.races import at_once
from tests.scenes import SettableClock, refusal_code

EXPORT = FeatureCompletionRequest("Export")


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(1_000_000_000_000)


@pytest.fixture
def timed(app: App, clock: SettableClock) -> App:
    return msgspec.structs.replace(app, clock=clock)


@pytest.fixture
def session(timed: App, tmp_path: Path) -> SessionId:
    opt_in(tmp_path, "light")
    started = gated_sessions.start(timed, local_caller(timed, tmp_path))
    assert isinstance(started, session_record.StartedSession)
    gated_sessions.change_work(timed, started.session, WorkUpdate(feature="Export"))
    return started.session


def opened(app: App, session: SessionId, request: FeatureCompletionRequest = EXPORT) -> Any:
    outcome = complete_feature(app, session, request)
    assert isinstance(outcome, RequestedReview)
    return outcome


def judge(app: App, session: SessionId, name: str, outcome: VerdictOutcome | None) -> None:
    verdict = VerdictGiven(outcome, 80, f"says {outcome}") if outcome else None
    done = delegations.complete(app, session, CompletionRequest(name, "Looked", verdict=verdict))
    assert isinstance(done, delegations.CompletedDelegation)


def state_of(app: App, session: SessionId) -> SessionState:
    return settled_state(app, session)


def reviews_of(app: App, session: SessionId) -> tuple[FeatureReview, ...]:
    work = state_of(app, session).orchestrator_workflow
    return work.feature_reviews if work else ()


def outcomes_in(app: App, session: SessionId) -> list[FeatureReviewed]:
    events = [decode_envelope(link.body).event for link in app.log.links(session)]
    return [event for event in events if isinstance(event, FeatureReviewed)]


@pytest.mark.parametrize(
    ("verdicts", "merged", "is_blocking"),
    [
        (("PASS", "CRITICAL_FAIL", "REJECTED"), "CRITICAL_FAIL", True),
        (("FAIL", "REJECTED", "NEEDS_REVIEW"), "REJECTED", True),
        (("NEEDS_REVIEW", "FAIL", "WARN"), "FAIL", True),
        (("PASS", None, "WARN"), "NEEDS_REVIEW", True),
        (("PARTIAL", "WARN", "PASS"), "WARN", False),
        (("PASS", "PARTIAL", "COMPLIANT"), "PARTIAL", False),
        (("PASS", "COMPLIANT", "PASS"), "COMPLIANT", False),
        (("PASS", "PASS", "PASS"), "PASS", False),
    ],
)
def test_the_worst_verdict_is_the_outcome_and_only_good_ones_complete_the_feature(
    timed: App,
    session: SessionId,
    verdicts: tuple[VerdictOutcome | None, ...],
    merged: str,
    is_blocking: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    review = opened(timed, session).review
    assert [one.agent for one in review.reviewers] == ["qa", "analyst", "architect"]

    for reviewer, outcome in zip(review.reviewers, verdicts, strict=True):
        assert reviews_of(timed, session)[0].is_open
        judge(timed, session, reviewer.delegation, outcome)

    (settled,) = reviews_of(timed, session)
    assert (settled.outcome, settled.is_blocking) == (merged, is_blocking)
    work = state_of(timed, session).orchestrator_workflow
    assert work is not None
    assert work.workflow_phase == ("planning" if is_blocking else "complete")
    attended = session_record.attended_head(timed, session)
    assert attended is not None
    assert attended.open_reviews == ()


def test_a_deadline_counts_what_is_missing_and_the_first_look_decides(
    timed: App, session: SessionId, clock: SettableClock
) -> None:
    review = opened(timed, session).review
    judge(timed, session, "qa", "PASS")
    clock.at_ms += 24 * HOUR_MS - 1
    assert settle_overdue_reviews(timed) == 0

    clock.at_ms += 1

    assert settle_overdue_reviews(timed) == 1
    assert settle_overdue_reviews(timed) == 0
    (outcome,) = outcomes_in(timed, session)
    assert (outcome.outcome, outcome.is_blocking) == ("NEEDS_REVIEW", True)
    assert [(one.agent, one.is_missing) for one in outcome.results] == [
        ("qa", False),
        ("analyst", True),
        ("architect", True),
    ]
    # Whoever is late is heard, and asked anew by the next review.
    judge(timed, session, "analyst", "PASS")
    assert outcomes_in(timed, session) == [outcome]
    again = opened(timed, session)
    assert again.is_new
    assert again.review.id != review.id
    work = state_of(timed, session).orchestrator_workflow
    assert work is not None
    late = next(one for one in work.agent_history if one.id == review.reviewers[2].delegation)
    assert late.status == "failed"
    assert len(work.open_invocations) == 3


def test_a_verdict_after_the_deadline_is_too_late_even_if_nobody_looked(
    timed: App, session: SessionId, clock: SettableClock
) -> None:
    request = FeatureCompletionRequest("Export", ("qa",), HOUR_MS)
    opened(timed, session, request)
    clock.at_ms += HOUR_MS

    judge(timed, session, "qa", "PASS")

    (outcome,) = outcomes_in(timed, session)
    assert outcome.outcome == "NEEDS_REVIEW"


@pytest.mark.both_stores
def test_of_two_last_verdicts_at_once_exactly_one_settles_the_review(
    app: App, home: Path, tmp_path: Path
) -> None:
    opt_in(tmp_path, "light")
    started = gated_sessions.start(app, local_caller(app, tmp_path))
    assert isinstance(started, session_record.StartedSession)
    opened(app, started.session)
    judge(app, started.session, "qa", "WARN")

    def act(own: App, number: int) -> None:
        judge(own, started.session, ("analyst", "architect")[number], "PASS")

    at_once(home, act, count=2)

    (outcome,) = outcomes_in(app, started.session)
    assert outcome.outcome == "WARN"


def test_a_repeated_request_is_the_same_review(timed: App, session: SessionId) -> None:
    named = msgspec.structs.replace(EXPORT, request_id="r-1")
    first = opened(timed, session, named)
    assert (first.is_new, opened(timed, session).is_new) == (True, False)
    for agent in ("qa", "analyst", "architect"):
        judge(timed, session, agent, "PASS")

    repeated = opened(timed, session, named)

    assert (repeated.review.id, repeated.is_new) == (first.review.id, False)
    assert repeated.review.outcome == "PASS"
    other = msgspec.structs.replace(named, feature="Import")
    assert complete_feature(timed, session, other) == RequestIdReused("r-1")
    assert opened(timed, session).review.id != first.review.id
    messages = [decode_announcement(one.content) for one in timed.reader.outbox(limit=10)]
    assert [(one.topic, one.text) for one in messages] == [
        ("feature/completion.requested", "Export")
    ] * 2


def test_open_work_stops_it_and_all_of_it_is_said_at_once(timed: App, session: SessionId) -> None:
    delegations.delegate(timed, session, DelegationRequest("implementer", "Build it"))
    request = DecisionRequest("technical", "Cache it", "fast", "architect")
    decision = delegations.record_decision(timed, session, request)
    assert not isinstance(decision, Refusal)
    delegations.judge_decision(timed, session, decision.id, "qa", is_approved=False)

    stopped = complete_feature(timed, session, EXPORT)

    assert isinstance(stopped, FeatureHasOpenWork)
    assert [blocker.split()[0] for blocker in stopped.blockers] == ["delegation", "decision"]
    delegations.complete(timed, session, CompletionRequest("implementer", "Built"))
    replacing = msgspec.structs.replace(
        request, description="No cache", rationale=f"instead of {decision.id}"
    )
    delegations.record_decision(timed, session, replacing)
    assert opened(timed, session).is_new


def test_the_config_of_a_project_names_reviewers_that_nobody_can_leave_out(
    timed: App, session: SessionId, tmp_path: Path
) -> None:
    config = tmp_path / ".interlock" / "config.toml"
    config.write_text(config.read_text() + '\n[protocol]\nreviewers = ["Security"]\n')

    review = opened(timed, session, FeatureCompletionRequest(None, ("qa",))).review

    assert review.feature == "Export"
    assert [one.agent for one in review.reviewers] == ["security", "qa"]


def test_a_feature_must_be_named_and_its_reviewers_too(timed: App, session: SessionId) -> None:
    gated_sessions.change_work(timed, session, WorkUpdate(feature=""))

    for unnamed in (FeatureCompletionRequest(None), FeatureCompletionRequest("Export", ("  ",))):
        assert refusal_code(complete_feature(timed, session, unnamed)) == "invalid_arguments"
