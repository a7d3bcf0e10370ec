"""Everything that waits for the user: approvals, questions, runs that were stopped, critical gaps.

One rule for all surfaces: a run waits if its status needs the user (`core.views.status`), and a
critical gap waits until somebody closes it. Archived sessions wait for nobody; a session that was
put aside still has its gaps and its approvals.
"""

from collections.abc import Iterator

import msgspec

from interlock.app.context import App
from interlock.app.runs import approvals, user_actions
from interlock.app.runs.approvals import PendingApproval
from interlock.app.sessions import session_views, stored_node
from interlock.app.sessions.lookup import SessionFilter, session_page
from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.session.answer import decode_stored_answer
from interlock.core.session.events import GapRecorded
from interlock.core.session.head import Head, RunHead
from interlock.core.session.nodes import node_of
from interlock.core.views.status import Status, session_status
from interlock.store.failures import StoreFailure

SESSIONS_MAX = 1_000


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


class WaitingForUser(msgspec.Struct, frozen=True, rename="camel"):
    """Each list has the longest wait first."""

    approvals: tuple[PendingApproval, ...]
    questions: tuple[WaitingRun, ...]
    """Runs whose agent was told to ask the user."""
    stopped: tuple[WaitingRun, ...]
    """Runs that were stopped after too many attempts in a row."""
    gaps: tuple[CriticalGap, ...]

    @property
    def count(self) -> int:
        return len(self.approvals) + len(self.questions) + len(self.stopped) + len(self.gaps)


class SessionWait(msgspec.Struct, frozen=True):
    """A session in a list, with what waits in it."""

    status: Status
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
    for session, head in _sessions(app):
        for run, status in _statuses(app, head):
            if status.code == "asks_you":
                questions.append(_waiting_run(app, session, run))
            elif status.code == "waits_for_you":
                stopped.append(_waiting_run(app, session, run))
        if any(run.gaps_critical for run in head.runs):
            gaps += _critical_gaps(app, session, head)
    return WaitingForUser(
        pending,
        tuple(sorted(questions, key=lambda run: run.since_ms)),
        tuple(sorted(stopped, key=lambda run: run.since_ms)),
        tuple(sorted(gaps, key=lambda gap: gap.at_ms)),
    )


def count_waiting(app: App) -> int:
    """The length of `list_waiting`, with overdue approvals, from heads and tips alone."""
    count = approvals.count_pending(app)
    for _, head in _sessions(app):
        count += sum(run.gaps_critical for run in head.runs)
        count += sum(
            status.code in ("asks_you", "waits_for_you") for _, status in _statuses(app, head)
        )
    return count


def wait_in_session(app: App, head: Head) -> SessionWait:
    """Return what waits in one session."""
    statuses = [status for _, status in _statuses(app, head)]
    newest = statuses[-1] if statuses else session_status(head)
    older_runs = sum(status.needs_you for status in statuses[:-1])
    return SessionWait(newest, older_runs, sum(run.gaps_critical for run in head.runs))


def _sessions(app: App) -> Iterator[tuple[SessionId, Head]]:
    page = session_page(app, SessionFilter(), after="", limit=SESSIONS_MAX)
    return ((summary.session, summary.head) for summary in page.sessions)


def _statuses(app: App, head: Head) -> Iterator[tuple[RunHead, Status]]:
    for run in head.runs:
        yield run, session_status(head, run, next_intent=session_views.next_intent(app, run))


def _waiting_run(app: App, session: SessionId, run: RunHead) -> WaitingRun:
    assert run.tip is not None, "a step is pending"
    (envelope,) = app.reader.line_to(run.tip, steps=0)
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


def _critical_gaps(app: App, session: SessionId, head: Head) -> Iterator[CriticalGap]:
    for found in user_actions.open_gaps(app, session):
        if found.gap.severity == "critical":
            run = head.run(found.run)
            yield CriticalGap(session, run.run, run.workflow_id, run.goal, found.gap, found.at_ms)
