"""The inbox: everything that waits for the user as one queue, and what was answered lately."""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from interlock.app.context import App
from interlock.app.coordination.boards import WaitingConflict, WaitingMessage
from interlock.app.runs.approvals import PendingApproval
from interlock.app.runs.waiting import (
    CriticalGap,
    OpenReview,
    ParkedWork,
    UndeliveredResult,
    WaitingForUser,
    WaitingRun,
    list_waiting,
)
from interlock.app.sessions.lookup import title_of
from interlock.core import canonical
from interlock.core.ids import RunId, SessionId
from interlock.core.session.approval_events import SessionApprovalRequested, SessionApprovalResolved
from interlock.core.session.events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    GapRecorded,
    GapResolved,
    RunUnblocked,
)
from interlock.core.session.fact_events import gap_key
from interlock.core.session.nodes import approval_key
from interlock.core.views.status import standstill_text
from interlock.store.records import ListedSession, SessionFilter

SESSIONS_MAX = 500  # in which answers are looked for: those that changed last
_ANSWER_KEYS = ("approval-resolved:", "gap-resolved:", "unblocked:")
_NAMES = {"user": "the user", "timeout": "the deadline", "agent": "the agent"}

CardKind = Literal[
    "approval",
    "question",
    "stopped",
    "gap",
    "message",
    "conflict",
    "parked",
    "undelivered",
    "review",
]
CardContent: TypeAlias = (
    PendingApproval
    | WaitingRun
    | CriticalGap
    | WaitingMessage
    | WaitingConflict
    | ParkedWork
    | UndeliveredResult
    | OpenReview
)


class InboxCard(msgspec.Struct, frozen=True):
    id: str
    """The id of the thing itself, and of its card on the page."""
    kind: CardKind
    headline: str
    """The goal, or the project, that it is about; of an agent without a goal, what it wants."""
    question: str
    since_ms: int
    deadline_ms: int | None
    """When it is decided, or over, without the user."""
    content: CardContent
    workspace: str = ""
    branch: str = ""
    """The place of the session in which it waits; empty if it waits in none."""


class PastAnswer(msgspec.Struct, frozen=True):
    """An answer of the user, or of the deadline."""

    session: SessionId
    seq: int
    """The number of its event in the session."""
    run: RunId | None
    goal: str
    question: str
    verdict: Literal["granted", "denied", "closed", "let go on"]
    who: str
    reason: str
    at_ms: int


def list_cards(app: App) -> tuple[InboxCard, ...]:
    """All that waits: the soonest deadline first, then the longest wait, whatever its kind."""
    waiting = list_waiting(app)
    sessions = _sessions_of(app, waiting)
    return tuple(
        sorted(
            (_with_place(card, sessions) for card in _cards(waiting, sessions)),
            key=lambda card: (card.deadline_ms is None, card.deadline_ms or 0, card.since_ms),
        )
    )


def list_past_answers(app: App, *, limit: int) -> tuple[PastAnswer, ...]:
    """The newest answers in sessions that are not archived, newest first."""
    envelopes = app.reader.events_by_prefixes(_ANSWER_KEYS, sessions_max=SESSIONS_MAX)
    answers = [envelope for envelope in envelopes if _is_answer(envelope)]
    newest = sorted(answers, key=lambda envelope: envelope.at_ms, reverse=True)[:limit]
    return tuple(_past_answer(app, envelope) for envelope in newest)


def _sessions_of(app: App, waiting: WaitingForUser) -> dict[SessionId, ListedSession]:
    in_runs = (*waiting.questions, *waiting.stopped, *waiting.gaps)
    unattended = (*waiting.parked, *waiting.undelivered)
    names = tuple(
        {one.session for one in (*waiting.approvals, *in_runs, *unattended, *waiting.reviews)}
    )
    wanted = SessionFilter(is_archived=None, sessions=names)
    found = app.reader.list_sessions(wanted, before=None, limit=len(names)) if names else None
    return {one.session: one for one in found.sessions} if found else {}


def _with_place(card: InboxCard, sessions: Mapping[SessionId, ListedSession]) -> InboxCard:
    if isinstance(card.content, WaitingMessage | WaitingConflict):
        return card
    listed = sessions.get(card.content.session)
    if listed is None:
        return card
    latest = listed.latest_run
    if isinstance(card.content, OpenReview):
        in_run = None
    elif isinstance(card.content, ParkedWork | UndeliveredResult):
        in_run = card.content.work.branch
    else:
        in_run = latest.git_branch if latest and latest.run == card.content.run else None
    branch = in_run or listed.head.git_branch or ""
    return msgspec.structs.replace(card, workspace=listed.head.workspace, branch=branch)


def _cards(
    waiting: WaitingForUser, sessions: Mapping[SessionId, ListedSession]
) -> Iterator[InboxCard]:
    for one in waiting.approvals:
        headline, question = _approval_words(one, sessions.get(one.session))
        moments = (one.asked_ms, one.deadline_ms)
        yield InboxCard(one.approval, "approval", headline, question, *moments, one)
    for one in waiting.questions:
        yield _run_card(one, "question", f"{one.step}: the agent must ask you")
    for one in waiting.stopped:
        yield _run_card(one, "stopped", f"Ten attempts at “{one.step}” were not accepted")
    for one in waiting.gaps:
        goal = one.goal or one.workflow
        yield InboxCard(one.gap.gap, "gap", goal, one.gap.summary, one.at_ms, None, one)
    for one in waiting.messages:
        message = one.message
        subject = f"{one.sender}: {message.subject}"
        yield InboxCard(
            message.id, "message", one.project_name, subject, message.sent_ms, None, one
        )
    for one in waiting.conflicts:
        pair = one.overlap.reservations
        keys = canonical.encode([one.project, *(half.key for half in pair)])
        name = f"conflict-{canonical.blob_ref(keys)[-12:]}"
        question = f"{' and '.join(one.overlap.displays)} both hold {one.overlap.witness}"
        since_ms, until_ms = max(h.since_ms for h in pair), min(h.until_ms for h in pair)
        yield InboxCard(name, "conflict", one.project_name, question, since_ms, until_ms, one)
    for one in waiting.parked:
        work = one.work
        name, why = f"parked-{one.session}", standstill_text(work)
        yield InboxCard(name, "parked", work.order.goal, why, work.since_ms, None, one)
    for one in waiting.undelivered:
        delivery, goal = one.work.delivery, one.work.order.goal
        assert delivery is not None, "it is what has failed"
        name, why = f"undelivered-{one.session}", f"Its result is not delivered: {delivery.detail}"
        yield InboxCard(name, "undelivered", goal, why, delivery.since_ms, None, one)
    for one in waiting.reviews:
        question = f"The review waits for the verdict of {', '.join(one.awaited)}"
        moments = (one.since_ms, one.deadline_ms)
        yield InboxCard(one.review, "review", one.feature, question, *moments, one)


def _run_card(one: WaitingRun, kind: CardKind, question: str) -> InboxCard:
    return InboxCard(one.run, kind, one.goal or one.workflow, question, one.since_ms, None, one)


def _approval_words(one: PendingApproval, listed: ListedSession | None) -> tuple[str, str]:
    """The headline and the question. Of a tool call one of them says what is called."""
    goal = one.goal or one.workflow or (_goal_or_task(listed) if listed else "")
    if one.subject == "tool_call":
        call = one.notes.strip().partition("\n")[0]
        return (goal, f"{one.question}: {call}") if goal else (call, one.question)
    return (goal, one.question) if goal else (one.question, "")


def _goal_or_task(listed: ListedSession) -> str:
    run, attended = listed.latest_run, listed.head.attended
    if run:
        return title_of(run)
    return (attended.task or attended.feature) if attended else ""


def _session_goal(app: App, session: SessionId) -> str:
    runs = app.reader.runs(session, latest=1)
    return title_of(runs[-1] if runs else None)


def _is_answer(envelope: Envelope) -> bool:
    """Whether it was in the inbox: only critical gaps are."""
    event = envelope.event
    return not isinstance(event, GapResolved) or event.severity == "critical"


def _past_answer(app: App, envelope: Envelope) -> PastAnswer:
    event, session = envelope.event, envelope.session
    stream = app.reader.stream(session, envelope.run) if envelope.run else None
    run = stream.runs.get(envelope.run) if stream and envelope.run else None
    goal = title_of(run) if run else _session_goal(app, session)
    who, reason, question = "", "", ""
    match event:
        case ApprovalResolved() | SessionApprovalResolved():
            asked = app.reader.event_with_key(session, approval_key(event.approval))
            if asked and isinstance(asked.event, ApprovalRequested):
                question = asked.event.question
            elif asked and isinstance(asked.event, SessionApprovalRequested):
                question = asked.event.title
            verdict, who, reason = event.verdict, event.who or _NAMES[event.by], event.reason
        case GapResolved():
            recorded = app.reader.event_with_key(session, gap_key(event.gap))
            if recorded and isinstance(recorded.event, GapRecorded):
                question = recorded.event.summary
            verdict, who, reason = "closed", _NAMES[event.by], event.how
        case _:
            assert isinstance(event, RunUnblocked), "an answer's key"
            verdict, question = "let go on", "Ten attempts were not accepted"
            who = _NAMES["user"]
    place = (session, envelope.seq, envelope.run)
    return PastAnswer(*place, goal, question, verdict, who, reason, envelope.at_ms)
