"""Reviews of features: request one, and settle those whose deadline has passed.

The truth is in the log: the last verdict settles a review in its own append, and whoever looks
first after the deadline settles it then. A clock only makes sure that somebody looks.
"""

from pathlib import Path

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.callers.session_record import attended_head, state_of
from interlock.app.context import App
from interlock.app.protocol.delegations import record_change
from interlock.app.protocol.gated_sessions import effective_policy_of, publish_note
from interlock.app.runs.user_actions import open_gaps
from interlock.core.ids import SessionId
from interlock.core.protocol import feature_completion
from interlock.core.protocol.feature_completion import (
    REVIEWERS_DEFAULT,
    FeatureCompletionRequest,
    FeatureRefusal,
)
from interlock.core.protocol.specialists import normalise_agent
from interlock.core.session.feature_review import FeatureReview
from interlock.core.session.head import Attendance
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.state import SessionState
from interlock.workspace.projects import project
from interlock.workspace.projects.settings import protocol_in


class RequestedReview(msgspec.Struct, frozen=True):
    review: FeatureReview
    is_new: bool
    """False if the same review was requested before."""
    state: SessionState


def complete_feature(
    app: App, session: SessionId, request: FeatureCompletionRequest
) -> RequestedReview | FeatureRefusal:
    """Open the review of a feature, unless work on it is open.

    Raises:
        SettingsBroken: the project's config cannot be used; it may name the reviewers.
    """
    before = settled_state(app, session)
    reviewers = _required_reviewers(Path(before.worktree), request.reviewers)
    request = msgspec.structs.replace(request, reviewers=reviewers)
    at_ms = app.clock.now_ms()
    planned: list[Plan] = []

    def decide(stream: Stream, state: SessionState) -> Plan | FeatureRefusal | None:
        runs = app.log.runs(session)
        has_critical = any(run.gaps_critical for run in runs)
        gaps = [found.gap for found in open_gaps(app, session)] if has_critical else []
        outcome = feature_completion.request_review(
            stream, state, request, runs=runs, gaps=gaps, at_ms=at_ms
        )
        planned[:] = [outcome] if isinstance(outcome, Plan) else []
        return outcome

    after = record_change(app, session, decide)
    if not isinstance(after, SessionState):
        return after
    review = feature_completion.find_requested(after, request)
    assert review is not None, "it was requested now or before"
    return RequestedReview(review, bool(planned), after)


def settled_state(app: App, session: SessionId) -> SessionState:
    """The state of a session, in which every overdue review has its outcome."""
    is_settled = settle_if_overdue(app, session)
    return state_of(app, session, app.log if is_settled else None)


def settle_if_overdue(app: App, session: SessionId) -> bool:
    """Settle the reviews of a session whose deadline has passed, and return whether there are any.

    The head of the session tells that.
    """
    is_overdue = _has_overdue(attended_head(app, session), app.clock.now_ms())
    if is_overdue:
        _settle(app, session)
    return is_overdue


def settle_overdue_reviews(app: App) -> int:
    """Settle the overdue reviews of all sessions; return the number of these sessions."""
    now_ms = app.clock.now_ms()
    overdue = [
        session
        for session, head in app.reader.sessions_in_review()
        if _has_overdue(head.attended, now_ms)
    ]
    for session in overdue:
        _settle(app, session)
    return len(overdue)


def _required_reviewers(root: Path, named: tuple[str, ...]) -> tuple[str, ...]:
    """The agents that must review a feature: those of the project's config, and the named ones."""
    names = (*protocol_in(root / project.CONFIG).reviewers, *named) or REVIEWERS_DEFAULT
    return tuple(dict.fromkeys(map(normalise_agent, names)))


def _has_overdue(attended: Attendance | None, now_ms: int) -> bool:
    reviews = attended.open_reviews if attended else ()
    return any(deadline_ms <= now_ms for _, deadline_ms in reviews)


def _settle(app: App, session: SessionId) -> None:
    at_ms = app.clock.now_ms()

    def decide() -> Plan | None:
        with app.log.snapshot():
            stream = app.log.stream(session)
            state = state_of(app, session, app.log) if stream else None
        if stream is None or state is None:
            return None
        return feature_completion.settle_overdue(stream, state, at_ms=at_ms)

    append_plan(app, decide)
    publish_note(app, session, effective_policy_of(app, session))
