"""Approvals of a session: asked for once, answered once, and a grant is used once."""

from pathlib import Path

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.refusals import ApprovalAnswered, ApprovalChanged, NoSuchApproval
from interlock.app.runs import approvals
from interlock.app.runs.approvals import ApprovalAnswer
from interlock.app.runs.waiting import count_waiting
from interlock.app.sessions.bundle import SessionExport, export, import_as_new
from interlock.app.sessions.lookup import check_stream
from interlock.app.sessions.session_approvals import RequestStatus, permit_call, request_approval
from interlock.core.ids import ApprovalId, SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.refusal import PlainRefusal
from interlock.core.session.announcements import decode_announcement
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.session_approvals import (
    CALL_EXPIRY_MS,
    CONTENT_CHARS_MAX,
    OPEN_MAX,
    request_wish,
    tool_call_wish,
)
from tests.app.races import at_once
from tests.app.runs.test_approvals import Hands
from tests.sessions import begin_recorded

GRANT = ApprovalVerdict("granted", "user", who="ana, in a terminal")
DENY = ApprovalVerdict("denied", "user", "Too broad", "ana, in the console")
PLAN = request_wish("Rewrite the parser", "1. Drop the old one", "")
CALL = tool_call_wish("Bash", {"command": "make"}, "/p", title="Codex calls `Bash`")
AGAIN = tool_call_wish("Bash", {"command": "make"}, "/p", title="Said differently")
OTHERS = (
    tool_call_wish("Bash", {"command": "make all"}, "/p", title=CALL.title),
    tool_call_wish("Bash", {"command": "make", "timeout": 1}, "/p", title=CALL.title),
    tool_call_wish("Bash", {"command": "make"}, "/q", title=CALL.title),
    tool_call_wish("Shell", {"command": "make"}, "/p", title=CALL.title),
)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def desk(app: App, clock: Hands) -> App:
    return msgspec.structs.replace(app, clock=clock)


@pytest.fixture
def session(desk: App, tmp_path: Path) -> SessionId:
    return begun(desk, tmp_path)


def begun(app: App, project: Path) -> SessionId:
    opt_in(project, "standard")
    return begin_recorded(app, project, Conversation("codex", "talk-1")).session


def asked(app: App, session: SessionId) -> ApprovalId:
    """The approval of the call, which waits."""
    outcome = permit_call(app, session, CALL)
    assert not isinstance(outcome, PlainRefusal)
    approval, who = outcome
    assert who is None
    return approval


def test_a_call_passes_once_by_the_grant_for_exactly_it(desk: App, session: SessionId) -> None:
    name = asked(desk, session)

    assert permit_call(desk, session, AGAIN) == (name, None), "it waits already"
    (listed,) = approvals.list_pending(desk)
    assert (listed.approval, listed.subject) == (name, "tool_call")
    assert listed.notes == "command: make\ncwd: /p"
    assert count_waiting(desk) == 1
    changed = approvals.answer(desk, name, GRANT, shown="0" * 12)
    assert isinstance(changed, ApprovalChanged)
    done = approvals.answer(desk, name, GRANT, shown=listed.shown)
    assert isinstance(done, ApprovalAnswer)
    assert done.content == listed.notes
    assert (approvals.list_pending(desk), count_waiting(desk)) == ([], 0)
    for other in OTHERS:
        outcome = permit_call(desk, session, other)
        assert not isinstance(outcome, PlainRefusal)
        assert outcome[1] is None, "another call, or elsewhere"
    assert permit_call(desk, session, AGAIN) == (name, "ana, in a terminal")
    assert asked(desk, session) != name, "a second one needs a grant of its own"
    assert check_stream(desk.reader, session).state == "healthy"
    topics = [decode_announcement(m.content).topic for m in desk.reader.outbox(limit=20)]
    assert topics == ["approval/requested", "approval/granted", *5 * ["approval/requested"]]


def test_after_an_hour_neither_the_question_nor_the_grant_counts(
    desk: App, clock: Hands, session: SessionId
) -> None:
    first = asked(desk, session)
    clock.ms += CALL_EXPIRY_MS

    late = approvals.answer(desk, first, GRANT)

    assert late == ApprovalAnswered(first, "denied", "timeout", at_ms=clock.ms)
    second = asked(desk, session)
    assert second != first
    approvals.answer(desk, second, GRANT)
    clock.ms += CALL_EXPIRY_MS
    assert asked(desk, session) not in (first, second), "the grant was not used in time"


def test_the_same_request_has_the_answer_that_was_given(
    desk: App, clock: Hands, session: SessionId
) -> None:
    waiting = request_approval(desk, session, PLAN)
    assert isinstance(waiting, RequestStatus)
    assert waiting.status == "waiting"
    # Nobody waits for it: the agent looks later.
    approvals.answer(desk, waiting.approval, DENY)

    told = request_approval(desk, session, PLAN)
    other = request_approval(desk, session, request_wish(PLAN.title, PLAN.content, "again"))

    assert told == RequestStatus(waiting.approval, "denied", "ana, in the console", "Too broad")
    assert isinstance(other, RequestStatus)
    assert (other.status, other.approval != waiting.approval) == ("waiting", True)
    clock.ms += 7 * 24 * 3_600_000
    expired = request_approval(desk, session, request_wish(PLAN.title, PLAN.content, "again"))
    assert isinstance(expired, RequestStatus)
    assert expired.status == "expired"


def test_what_cannot_be_read_or_is_too_much_is_not_asked(
    desk: App, session: SessionId, clock: Hands
) -> None:
    long = request_wish("Long", "x" * (CONTENT_CHARS_MAX + 1), "")
    assert isinstance(request_approval(desk, session, long), PlainRefusal)
    for number in range(OPEN_MAX):
        request_approval(desk, session, request_wish("One", "of many", str(number)))

    assert isinstance(request_approval(desk, session, PLAN), PlainRefusal)
    assert isinstance(permit_call(desk, session, CALL), PlainRefusal)
    clock.ms += 8 * 24 * 3_600_000
    assert not isinstance(permit_call(desk, session, CALL), PlainRefusal), "they expired"


def test_a_copy_of_a_session_has_approvals_of_its_own(desk: App, session: SessionId) -> None:
    name = asked(desk, session)
    exported = export(desk, session)
    assert isinstance(exported, SessionExport)
    copy = import_as_new(desk, exported.document)
    assert isinstance(copy, str)

    stream = desk.reader.stream(copy)
    assert stream is not None
    assert stream.head is not None
    (own,) = stream.head.approvals

    # A copy is an ended session, so no agent would act on an answer.
    assert own.approval != name
    assert [one.approval for one in approvals.list_pending(desk)] == [name]
    assert isinstance(approvals.answer(desk, own.approval, GRANT), NoSuchApproval)


@pytest.mark.invariant("approval-answered-once")
def test_a_grant_and_a_denial_at_once_have_one_outcome_which_both_are_told(
    app: App, home: Path, tmp_path: Path
) -> None:
    name, outcomes = asked(app, begun(app, tmp_path)), list[object]()

    def act(own: App, number: int) -> None:
        outcomes.append(approvals.answer(own, name, DENY if number % 2 else GRANT))

    at_once(home, act, count=2)

    (won,) = [found for found in outcomes if isinstance(found, ApprovalAnswer)]
    (lost,) = [found for found in outcomes if isinstance(found, ApprovalAnswered)]
    who = {"granted": GRANT.who, "denied": DENY.who}[won.verdict]
    assert (lost.verdict, lost.who) == (won.verdict, who)


@pytest.mark.both_stores
@pytest.mark.invariant("grant-used-once")
def test_of_identical_calls_at_once_one_passes_by_one_grant(
    app: App, home: Path, tmp_path: Path
) -> None:
    session = begun(app, tmp_path)
    approvals.answer(app, asked(app, session), GRANT)

    outcomes: list[str | None] = []

    def act(own: App, _: int) -> None:
        outcome = permit_call(own, session, CALL)
        assert not isinstance(outcome, PlainRefusal)
        outcomes.append(outcome[1])

    at_once(home, act)

    assert sorted(outcomes, key=str) == [*[None] * 5, GRANT.who]
    assert len(approvals.list_pending(app)) == 1, "the others wait for one and the same"
