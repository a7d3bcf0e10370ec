"""The inbox: one queue by deadline and age whatever the kind, and what was answered before."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.coordination.holdings import ReserveRequest, reserve_paths
from interlock.app.coordination.mail import send_message
from interlock.app.coordination.participants import Participant
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate.opt_in import opt_in
from interlock.app.runs import approvals, user_actions
from interlock.app.runs.approvals import PendingApproval
from interlock.app.runs.inbox import list_cards, list_past_answers
from interlock.app.runs.waiting import count_waiting
from interlock.app.sessions.session_approvals import permit_call, request_approval
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.records import OVERSEER
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from interlock.core.session.session_approvals import request_wish, tool_call_wish
from tests.core.views.driven_runs import Driven, step
from tests.sessions import begin_recorded

MINUTE_MS = 60_000
ASKS = {"userOnly": {"reason": "needs_user_choice", "question": "Red or blue?"}}
CRITICAL = {"kind": "gap", "severity": "critical", "summary": "Nobody has tried it"}


class SteppingClock:
    """A minute passes between two looks at it."""

    def __init__(self, app: App) -> None:
        self.at_ms = app.clock.now_ms()

    def now_ms(self) -> int:
        self.at_ms += MINUTE_MS
        return self.at_ms


def approved(minutes: int | None = None) -> dict[str, Any]:
    asked: dict[str, Any] = {"kind": "human_approval", "question": "Is the plan good?"}
    return {**asked, "timeoutMinutes": minutes} if minutes else asked


def place(tmp_path: Path, name: str) -> Path:
    """A project of its own: a run that is started where a session is active goes into it."""
    (tmp_path / name).mkdir()
    return tmp_path / name


def stopped(app: App, project: Path) -> Driven:
    run = Driven(app, project, step("one"))
    for attempt in range(BLOCKED_IN_ROW_MAX):
        run.hand_in("", {"kind": "note", "attempt": attempt})
    return run


def fill(app: App, tmp_path: Path) -> None:
    """One of each kind, in an order that is not that of the queue."""
    Driven(app, place(tmp_path, "a"), step("choose", **ASKS))
    Driven(app, place(tmp_path, "b"), step("one"), step("two")).hand_in("done", CRITICAL)
    week = Driven(app, place(tmp_path, "c"), step("plan", requireConfirmation=approved()))
    week.hand_in("The plan")
    stopped(app, place(tmp_path, "d"))
    desk = open_desk(app, place(tmp_path, "e"))
    for name, paths in (("ana", "src/**"), ("ben", "src/api.py")):
        request = ReserveRequest((paths,), proceeds=True)
        reserve_paths(app, desk, Participant(f"person:{name}", name), request)
    send_message(app, desk, Participant("person:ana", "ana"), MessageDraft((OVERSEER,), "May I?"))
    gated = place(tmp_path, "f")
    opt_in(gated, "standard")
    session = begin_recorded(app, gated, Conversation("codex", "talk")).session
    permit_call(app, session, tool_call_wish("Bash", {"command": "make"}, "/p", title="It calls"))
    request_approval(app, session, request_wish("The plan", "Three slices", ""))
    soon = Driven(app, place(tmp_path, "g"), step("plan", requireConfirmation=approved(45)))
    soon.hand_in("The plan")


@pytest.mark.both_stores
def test_everything_is_in_one_queue_by_deadline_and_then_by_age(app: App, tmp_path: Path) -> None:
    app = msgspec.structs.replace(app, clock=SteppingClock(app))
    fill(app, tmp_path)

    cards = list_cards(app)

    deadlines = [card.deadline_ms for card in cards if card.deadline_ms is not None]
    without = [card for card in cards if card.deadline_ms is None]
    assert sorted(card.kind for card in cards) == sorted(
        ["approval"] * 4 + ["question", "stopped", "gap", "message", "conflict"]
    )
    assert len(deadlines) == 5
    assert [card.deadline_ms for card in cards[:5]] == sorted(deadlines)
    assert [card.since_ms for card in without] == sorted(card.since_ms for card in without)
    assert [card.kind for card in without if card.kind != "message"] == [
        "question",
        "gap",
        "stopped",
    ]
    assert len({card.id for card in cards}) == len(cards)
    assert [card.id for card in list_cards(app)] == [card.id for card in cards]
    assert count_waiting(app) == len(cards)
    assert {card.headline for card in cards if card.kind in ("question", "gap", "stopped")} == {
        "Drive it"
    }
    words = {(card.headline, card.question) for card in cards if card.workspace.endswith("/f")}
    assert words == {("command: make", "It calls"), ("The plan", "")}
    assert sorted(card.workspace[-2:] for card in cards if card.workspace) == [
        *("/a", "/b", "/c", "/d", "/f", "/f", "/g")
    ]


def test_an_approval_says_which_values_it_adds_and_changes(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("look"), step("plan", requireConfirmation=approved()))
    run.hand_in("looked", context={"size": "small", "module": "parser"})
    run.hand_in("The plan", context={"size": "large", "slices": 3})

    (card,) = list_cards(app)

    assert isinstance(card.content, PendingApproval)
    assert [(one.key, one.how, one.before, one.after) for one in card.content.changes] == [
        ("size", "changed", "small", "large"),
        ("slices", "added", None, 3),
    ]


def test_what_was_answered_is_told_newest_first_with_who_and_why(app: App, tmp_path: Path) -> None:
    app = msgspec.structs.replace(app, clock=SteppingClock(app))
    denied = Driven(app, place(tmp_path, "a"), step("plan", requireConfirmation=approved()))
    denied.hand_in("The plan")
    (card,) = list_cards(app)
    approvals.answer(app, card.id, ApprovalVerdict("denied", "user", "No tests", "ana, here"))
    gap = Driven(app, place(tmp_path, "b"), step("one"), step("two"))
    gap.hand_in("done", CRITICAL, {**CRITICAL, "severity": "warning"})
    for found in [*user_actions.open_gaps(app, gap.session)]:
        user_actions.resolve_gap(app, gap.session, found.gap.gap, "Tried it")
    run = stopped(app, place(tmp_path, "c"))
    user_actions.unblock(app, run.run.run)

    answers = list_past_answers(app, limit=20)

    assert [(one.session, one.verdict, one.question, one.who, one.reason) for one in answers] == [
        (run.session, "let go on", "Ten attempts were not accepted", "the user", ""),
        (gap.session, "closed", "Nobody has tried it", "the user", "Tried it"),
        (denied.session, "denied", "Is the plan good?", "ana, here", "No tests"),
    ]
    assert list_past_answers(app, limit=1) == answers[:1]
    assert list_cards(app) == ()
