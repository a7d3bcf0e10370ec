"""Status words: from what is recorded, each with its meaning, on sessions that were driven."""

from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.gate import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.head import Attendance, Head
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.views import status
from interlock.core.views.status import run_status, session_status
from tests.core.views.driven_runs import GAP, STOP, Driven, planned, step
from tests.core.views.test_activity import run_head
from tests.sessions import begin_recorded


@pytest.fixture
def run(app: App, tmp_path: Path) -> Driven:
    return planned(app, tmp_path)


def word(driven: Driven) -> str:
    found = run_status(driven.run)
    assert session_status(driven.head, driven.run) == found
    return found.word


def test_a_run_is_open_blocked_waiting_and_done(run: Driven) -> None:
    words = [word(run)]
    for drive in (
        lambda: run.hand_in(""),
        lambda: run.hand_in("", GAP),
        lambda: run.hand_in("The plan"),
        lambda: run.decide("denied"),
        lambda: run.hand_in("The plan again"),
        lambda: run.decide("granted"),
        lambda: run.hand_in("work", STOP),
        lambda: run.hand_in("end"),
    ):
        drive()
        words.append(word(run))

    assert words == [
        "open",
        "blocked (1)",
        "blocked (2)",
        "waits for approval",
        "blocked (1)",
        "waits for approval",
        "open",
        "open",
        "complete",  # the workflow has a step that was skipped
    ]


def test_a_run_that_went_on_elsewhere_does_not_wait_for_the_approval_it_left(run: Driven) -> None:
    token = run.token
    run.hand_in("The plan")
    run.hand_in("", token=token)

    assert run.run.approvals
    assert word(run) == "blocked (1)"


STOPPED = {"blocked_in_row": BLOCKED_IN_ROW_MAX}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "done: Every step is done."),
        ({"gaps_open": 1}, "done: Every step is done. 1 gap is left open, none of them critical."),
        (
            {"gaps_critical": 2},
            "done with gaps: Every step is done; 2 critical gaps are left open.",
        ),
        ({"steps_skipped": 2}, "complete: Complete: 1 step done, 2 skipped."),
        ({"status": "open", "asks_user": True}, f"asks you: {status.ASKS_YOU.meaning}"),
        ({"status": "waiting", **STOPPED}, f"waits for you: {status.WAITS_FOR_YOU.meaning}"),
    ],
)
def test_a_run_has_a_word_and_its_meaning(fields: dict[str, Any], words: str) -> None:
    ending = "complete_with_gaps" if "gaps_critical" in fields else "complete"
    changes: dict[str, Any] = {"status": ending, "steps_done": 1, **fields}
    found = run_status(run_head(**changes))

    assert f"{found.word}: {found.meaning}" == words


ENDED, PAUSED = Attendance("coding", status="ended"), Attendance("coding", status="paused")


@pytest.mark.parametrize(
    ("run", "fields", "expected"),
    [
        (run_head(), {"is_archived": True}, "archived"),
        (run_head(), {"attended": ENDED}, "open"),
        (run_head(status="complete"), {"attended": PAUSED}, "done"),
        (None, {"attended": ENDED}, "ended"),
        (None, {}, "empty"),
    ],
)
def test_a_session_has_the_status_of_its_run_or_its_own(
    run: RunHead | None, fields: dict[str, Any], expected: str
) -> None:
    assert session_status(Head("/work", 1, 2, **fields), run).word == expected


def test_a_run_that_was_rewound_after_its_end_is_open_again(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    token = run.token
    run.hand_in("one").hand_in("two")
    assert word(run) == "done"

    run.hand_in("another one", token=token)

    assert word(run) == "open"


def test_an_attended_session_is_paused_and_ended_by_the_user(app: App, tmp_path: Path) -> None:
    opt_in.opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "c1")).session

    def now() -> str:
        stream = app.reader.stream(session)
        assert stream
        assert stream.head
        return session_status(stream.head).word

    words = [now()]
    for wanted in ("paused", "active", "ended"):
        gated_sessions.change_status(app, session, wanted, "the user says so")
        words.append(now())

    assert words == ["attended", "paused", "attended", "ended"]
