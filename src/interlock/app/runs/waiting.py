"""Everything that waits for the user: approvals, questions, stopped runs, gaps, reviews and more.

All surfaces use one rule: a run waits if its status needs the user (`core.views.status`), and a
critical gap waits until it is closed. Archived and ended sessions have nothing that waits, except
that an open review of an ended session waits until its verdicts are in; a paused session keeps its
gaps and approvals. A message to the operator waits until it is acknowledged, and two agents with
overlapping reservations wait until one of them releases its own. Parked work waits until the user
resumes it, and an undelivered result until it is delivered or archived.
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from interlock.app.callers.session_record import state_of
from interlock.app.context import App
from interlock.app.coordination.boards import (
    WaitingConflict,
    WaitingMessage,
    count_waiting_messages,
    waiting_conflicts,
    waiting_messages,
)
from interlock.app.runs import approvals, user_actions
from interlock.app.runs.approvals import PendingApproval
from interlock.app.sessions import stored_node
from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.session.answer import decode_stored_answer
from interlock.core.session.events import GapRecorded
from interlock.core.session.head import Head
from interlock.core.session.nodes import node_of
from interlock.core.session.run_head import RunHead
from interlock.core.unattended.order import UnattendedState
from interlock.core.views.status import SessionStatus, WaitsFor, run_status
from interlock.store import queries
from interlock.store.failures import StoreFailure
from interlock.store.records import ListedSession, WaitingRunRow

RUNS_MAX = 1_000


class WaitingRun(msgspec.Struct, frozen=True, rename="camel"):
    """A run whose pending step does not go on without the user."""

    session: SessionId
    run: RunId
    node: NodeId
    workflow: str
    goal: str
    step: str
    prompt: str
    """The step as it was given to the agent."""
    problems: tuple[str, ...]
    """The reasons why the last attempt was not accepted."""
    since_ms: int


class CriticalGap(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    run: RunId
    workflow: str
    goal: str
    gap: GapRecorded
    at_ms: int


class ParkedWork(msgspec.Struct, frozen=True, rename="camel"):
    """Unattended work that stands still until the user does something about it."""

    session: SessionId
    work: UnattendedState


class UndeliveredResult(msgspec.Struct, frozen=True, rename="camel"):
    """The result of unattended work that did not come to where its order wants it."""

    session: SessionId
    work: UnattendedState


class OpenReview(msgspec.Struct, frozen=True, rename="camel"):
    """A feature under review whose verdicts are not complete."""

    session: SessionId
    review: str
    feature: str
    awaited: tuple[str, ...]
    """The reviewers whose verdicts are missing."""
    since_ms: int
    deadline_ms: int


class WaitingForUser(msgspec.Struct, frozen=True, rename="camel"):
    """Each list has the longest wait first."""

    approvals: tuple[PendingApproval, ...]
    questions: tuple[WaitingRun, ...]
    """Runs whose agent was told to ask the user."""
    stopped: tuple[WaitingRun, ...]
    """Runs that were stopped after too many attempts in a row."""
    gaps: tuple[CriticalGap, ...]
    messages: tuple[WaitingMessage, ...] = ()
    """What agents have written to the person who watches over them."""
    conflicts: tuple[WaitingConflict, ...] = ()
    parked: tuple[ParkedWork, ...] = ()
    undelivered: tuple[UndeliveredResult, ...] = ()
    reviews: tuple[OpenReview, ...] = ()

    @property
    def count(self) -> int:
        in_sessions = len(self.approvals) + len(self.questions) + len(self.stopped) + len(self.gaps)
        unattended = len(self.parked) + len(self.undelivered)
        return (
            in_sessions + len(self.messages) + len(self.conflicts) + unattended + len(self.reviews)
        )


class SessionWait(msgspec.Struct, frozen=True):
    """A session in a list, with what waits in it."""

    status: SessionStatus
    """The status by its newest run."""
    older_runs: int
    """The number of its other runs that need the user."""
    critical_gaps: int


def list_waiting(app: App) -> WaitingForUser:
    """Return all that waits. Approvals whose deadline has passed are decided now."""
    pending = tuple(approvals.list_pending(app))
    questions: list[WaitingRun] = []
    stopped: list[WaitingRun] = []
    gaps: list[CriticalGap] = []
    for row in _waiting_rows(app):
        waits_for = _waits_for(row.run, row.head)
        if waits_for == "question":
            questions.append(_waiting_run(app, row.session, row.run))
        elif waits_for == "limit":
            stopped.append(_waiting_run(app, row.session, row.run))
        if row.run.gaps_critical:
            gaps += _critical_gaps(app, row.session, row.run)
    return WaitingForUser(
        pending,
        tuple(sorted(questions, key=lambda run: run.since_ms)),
        tuple(sorted(stopped, key=lambda run: run.since_ms)),
        tuple(sorted(gaps, key=lambda gap: gap.at_ms)),
        tuple(sorted(waiting_messages(app), key=lambda one: one.message.sent_ms)),
        tuple(waiting_conflicts(app)),
        tuple(sorted(_parked_work(app), key=lambda one: one.work.since_ms)),
        tuple(_undelivered_results(app)),
        tuple(sorted(open_reviews(app), key=lambda one: one.since_ms)),
    )


def count_waiting(app: App) -> int:
    """The length of `list_waiting`, with overdue approvals, from the heads alone."""
    count = approvals.count_pending(app) + count_waiting_messages(app) + len(waiting_conflicts(app))
    count += sum(1 for _ in (*_parked_work(app), *_undelivered_results(app)))
    count += sum(
        len(head.attended.open_reviews)
        for _, head in app.reader.sessions_in_review()
        if head.attended and not head.is_archived
    )
    for row in _waiting_rows(app):
        waits_for = _waits_for(row.run, row.head)
        count += row.run.gaps_critical + (waits_for in ("question", "limit"))
    return count


def wait_in_session(listed: ListedSession, status: SessionStatus) -> SessionWait:
    """Return what waits in one session, which has this status."""
    latest, head = listed.latest_run, listed.head
    runs = () if _is_put_away(head) else listed.waiting_runs
    older = [run for run in runs if latest is None or run.run != latest.run]
    return SessionWait(
        status,
        sum(run_status(run, head).needs_user for run in older),
        sum(run.gaps_critical for run in runs),
    )


def _waits_for(run: RunHead, head: Head) -> WaitsFor:
    waits_for = run_status(run, head).waits_for if run.tip else ""
    # Unattended work has no chat: its question is parked work, which the user answers there.
    return "" if waits_for == "question" and head.unattended else waits_for


def _is_put_away(head: Head) -> bool:
    """Whether nothing in it waits for the user."""
    return head.is_archived or head.is_over


def _parked_work(app: App) -> Iterator[ParkedWork]:
    for session, state in _unattended_work(app):
        if state.needs_user:
            yield ParkedWork(session, state)


def _undelivered_results(app: App) -> Iterator[UndeliveredResult]:
    for session, state in _unattended_work(app):
        if state.delivery and state.delivery.needs_user:
            yield UndeliveredResult(session, state)


def _ms_of(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000)


def open_reviews(app: App) -> Iterator[OpenReview]:
    """Yield the reviews with missing verdicts, also of ended sessions, except archived ones."""
    for session, head in app.reader.sessions_in_review():
        reviews = () if head.is_archived else state_of(app, session).work.feature_reviews
        for review in reviews:
            if review.is_open:
                yield OpenReview(
                    session=session,
                    review=review.id,
                    feature=review.feature,
                    awaited=tuple(each.agent for each in review.awaited_reviewers),
                    since_ms=_ms_of(review.requested_at),
                    deadline_ms=_ms_of(review.deadline),
                )


def _unattended_work(app: App) -> Iterator[tuple[SessionId, UnattendedState]]:
    for session, head in app.reader.unattended_sessions(limit=RUNS_MAX):
        if head.unattended and not head.is_archived:
            yield session, head.unattended


def _waiting_rows(app: App) -> Iterator[WaitingRunRow]:
    rows = app.reader.waiting_runs(limit=RUNS_MAX)
    return (row for row in rows if not _is_put_away(row.head))


def _waiting_run(app: App, session: SessionId, run: RunHead) -> WaitingRun:
    assert run.tip is not None, "a step is pending"
    envelope = app.reader.ask(queries.creation_event(run.tip))
    assert envelope is not None, "a run stands at a node"
    node = node_of(envelope)
    try:
        prompt = stored_node.prompt_of(app.reader, node)
        blocked = decode_stored_answer(app.reader.blob(node.created.answer)).answer.blocked
    except StoreFailure:
        prompt, blocked = "", None  # that it waits is known all the same
    return WaitingRun(
        session,
        run.run,
        run.tip,
        run.workflow_id,
        run.goal,
        run.pending_title or "",
        prompt,
        tuple(blocker.message for blocker in blocked.blockers) if blocked else (),
        envelope.at_ms,
    )


def _critical_gaps(app: App, session: SessionId, run: RunHead) -> Iterator[CriticalGap]:
    for found in user_actions.open_gaps(app, session):
        if found.run == run.run and found.gap.severity == "critical":
            yield CriticalGap(session, run.run, run.workflow_id, run.goal, found.gap, found.at_ms)
