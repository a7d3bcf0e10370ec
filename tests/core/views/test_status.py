"""Status words: from what is recorded, each with its meaning, on sessions that were driven."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.gate import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.runs import user_actions
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.head import Attendance, Head
from interlock.core.session.run_head import RunHead
from interlock.core.views import status
from interlock.core.views.status import Status, StatusCode, run_status, session_status
from tests.core.views.driven_runs import GAP, STOP, Driven, planned, step
from tests.sessions import begin_recorded


@pytest.fixture
def run(app: App, tmp_path: Path) -> Driven:
    return planned(app, tmp_path)


def word(driven: Driven) -> str:
    found = run_status(driven.run)
    assert session_status(driven.head, driven.run) == found
    return found.word


def head_with(run: RunHead | None, *, attended: Attendance | None = None) -> Head:
    return Head("/work", 1, 2, attended=attended, latest_run=run.run if run else None)


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


def test_after_too_many_attempts_it_waits_for_the_user(run: Driven) -> None:
    for attempt in range(10):
        run.hand_in("", {"kind": "note", "attempt": attempt})
    assert word(run) == "waits for you"

    user_actions.unblock(run.app, run.run.run)

    assert word(run) == "open"


def test_a_run_that_went_on_elsewhere_does_not_wait_for_the_approval_it_left(run: Driven) -> None:
    token = run.token
    run.hand_in("The plan")
    run.hand_in("", token=token)

    assert run.run.approvals
    assert word(run) == "blocked (1)"


def test_a_step_that_only_the_user_can_do_asks(app: App, tmp_path: Path) -> None:
    asks = {"reason": "needs_user_choice", "question": "Red or blue?"}
    run = Driven(app, tmp_path, step("one", userOnly=asks))

    assert word(run) == "asks you"


def test_gaps_are_told_by_their_weight(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"))
    token = run.token
    run.hand_in("done", GAP)
    assert word(run) == "done"
    assert "1 gap is left open, none of them critical" in run_status(run.run).meaning

    critical = {**GAP, "severity": "critical"}
    run.hand_in("done otherwise", critical, {**critical, "summary": "Another"}, token=token)

    assert word(run) == "done with gaps"
    assert run_status(run.run).meaning == "Every step is done; 2 critical gaps are left open."


def test_a_run_that_skipped_steps_does_not_say_that_every_step_is_done(
    app: App, tmp_path: Path
) -> None:
    asked = {"runCondition": {"var": "size", "equals": "large"}}
    run = Driven(app, tmp_path, step("one"), step("two", **asked), step("three", **asked))
    token = run.token
    run.hand_in("one")
    assert word(run) == "complete"
    assert run_status(run.run).meaning == "Complete: 1 step done, 2 skipped."

    run.hand_in("again", {**GAP, "severity": "critical"}, token=token)

    assert word(run) == "complete with gaps"
    assert run_status(run.run).meaning == (
        "Complete: 1 step done, 2 skipped; 1 critical gap is left open."
    )


def test_a_run_that_was_rewound_after_its_end_is_open_again(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    token = run.token
    run.hand_in("one").hand_in("two")
    assert word(run) == "done"

    run.hand_in("another one", token=token)

    assert word(run) == "open"


def test_an_archived_session_is_archived_whatever_its_run_is(run: Driven) -> None:
    user_actions.set_archived(run.app, run.session, is_archived=True)
    assert session_status(run.head, run.run).word == "archived"
    assert run_status(run.run).word == "open"

    user_actions.set_archived(run.app, run.session, is_archived=False)

    assert session_status(run.head, run.run).word == "open"


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


def test_what_is_done_stays_done_when_its_session_ends(run: Driven) -> None:
    ended = Attendance("coding", status="ended")
    done = msgspec.structs.replace(run.run, status="complete")

    assert session_status(head_with(run.run, attended=ended), run.run).word == "open"
    assert session_status(head_with(None, attended=ended)).word == "ended"
    assert session_status(head_with(done, attended=ended), done).word == "done"
    assert session_status(head_with(None)).word == "empty"


def test_every_code_has_a_word_and_a_meaning_and_some_need_the_user() -> None:
    constants = [found for found in vars(status).values() if isinstance(found, Status)]
    assert {found.code for found in constants} | {"blocked", "done", "done_with_gaps"} == set(
        get_args(StatusCode)
    )
    for found in constants:
        assert found.meaning.endswith(".")
        assert found.word == found.code.replace("_", " ")
    needing = {found.code for found in constants if found.needs_you}
    assert needing == {"asks_you", "waits_for_approval", "waits_for_you"}
