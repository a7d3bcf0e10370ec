"""Models that fail, err or go in circles: the work waits, tells the model, or stands still."""

from pathlib import Path
from typing import Any

import pytest

from interlock.app.unattended import orders
from interlock.app.unattended.status import turns_of
from interlock.core.session.events import decode_envelope
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.journal import (
    CUT_OFF,
    FILTERED,
    ConversationCompacted,
    JournalNote,
    ModelAnswered,
    ModelFailed,
    fold,
)
from interlock.core.unattended.order import UnattendedState
from interlock.core.unattended.stuck import SIGN_TEXTS, StuckSign
from interlock.driver.model_loop import CUT_CALL
from tests.driver.stage import PLACE, Stage, call, one_step
from tests.scenes import linear


def raw_call(name: str, arguments: str) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def test_what_a_provider_asks_for_is_waited_and_seen(busy_stage: Stage) -> None:
    faults = [
        {"fail": "rate_limited", "retryAfter": 0.5},
        {"fail": "overloaded", "times": 2, "retryAfter": 0.1},
    ]
    script = one_step(call("Bash", command="echo hello") | {"faults": faults})
    session = busy_stage.order(workflow="one", script=script)

    assert busy_stage.wait_for(session, "done", "parked").outcome == "success"

    rows = turns_of(busy_stage.app, session)
    failed = [row for row in rows if isinstance(row.entry, ModelFailed)]
    kinds = [row.entry.kind for row in failed if isinstance(row.entry, ModelFailed)]
    assert kinds == ["rate_limited", "overloaded", "overloaded"]
    answered = next(row for row in rows if isinstance(row.entry, ModelAnswered))
    assert failed[1].at_ms - failed[0].at_ms >= 500
    assert answered.at_ms > failed[-1].at_ms
    assert busy_stage.state(session).spent.turns == 2, "no turn counts twice"


@pytest.mark.parametrize(
    ("turn", "reason", "said"),
    [
        ({"faults": [{"fail": "credentials", "times": 1}]}, "credentials", "credentials"),
        ({"hang": True}, "provider", ""),
        ({"faults": [{"fail": "bad_request", "times": 1}]}, "failed", ""),
    ],
)
def test_a_call_that_cannot_succeed_parks_and_resuming_asks_again(
    busy_stage: Stage, turn: dict[str, Any], reason: str, said: str
) -> None:
    session = busy_stage.order(workflow="one", script=one_step({"text": "x"} | turn))

    state = busy_stage.wait_for(session, "parked", "done")
    assert (state.status, state.reason) == ("parked", reason)
    assert said in state.detail
    calls = len(busy_stage.model_calls(session))
    orders.control_work(busy_stage.app, session, "resume", place=PLACE)
    busy_stage.wait_until(
        lambda: len(busy_stage.model_calls(session)) > calls, "it is asked again", session
    )
    if "hang" in turn:
        orders.control_work(busy_stage.app, session, "cancel", place=PLACE)
        assert busy_stage.wait_for(session, "done").outcome == "cancelled"
    else:
        assert busy_stage.wait_for(session, "done").outcome == "success"


def test_malformed_calls_are_explained_and_three_in_a_row_stand_still(busy_stage: Stage) -> None:
    wrong = [
        (raw_call("Sing", "{}"), "There is no tool `Sing`"),
        (raw_call("Bash", "{not json"), "cannot be used"),
        (call("Bash", command="echo fine"), "fine"),
        (raw_call("Bash", '{"command": 7}'), "Expected"),
        (raw_call("Read", '{"file_path": "README.md", "mood": "good"}'), "mood"),
        (raw_call("Write", '{"file_path": "x", "content": "' + "y" * 1_100_000 + '"}'), "bytes"),
    ]
    session = busy_stage.order(workflow="one", script=one_step(*(turn for turn, _ in wrong)))

    state = busy_stage.wait_for(session, "parked", "done")

    assert (state.reason, state.detail) == ("stuck", SIGN_TEXTS["malformed calls"])
    results = [one.result for one in busy_stage.results(session)]
    assert len(results) == len(wrong)
    for result, (_, said) in zip(results, wrong, strict=True):
        assert said in result.text, result.text[:300]
    orders.control_work(busy_stage.app, session, "resume", place=PLACE)
    assert busy_stage.wait_for(session, "done", "parked").outcome == "success"


@pytest.mark.parametrize(
    ("turn", "told", "sign"),
    [
        ({"text": "I write a long…", "stop": "length"}, CUT_OFF, "cut off"),
        ({"text": "", "stop": "refusal"}, FILTERED, "filtered"),
        (raw_call("Write", '{"file_path": "x", "con') | {"stop": "length"}, CUT_CALL, "cut off"),
    ],
)
def test_why_an_answer_ended_is_told_to_the_model_and_named_to_the_user(
    busy_stage: Stage, turn: dict[str, Any], told: str, sign: StuckSign
) -> None:
    """Once the model can do better; after the third time the user is asked."""
    done = busy_stage.order(workflow="one", script=one_step(turn))
    parked = busy_stage.order(workflow="one", script=one_step(turn, turn, turn))

    assert busy_stage.wait_for(done, "done", "parked").outcome == "success"
    state = busy_stage.wait_for(parked, "done", "parked")

    assert (state.reason, state.detail) == ("stuck", SIGN_TEXTS[sign])
    assert told in str(fold(busy_stage.entries(done)).messages)


def test_a_model_that_only_talks_is_quoted_where_its_work_is_parked(busy_stage: Stage) -> None:
    session = busy_stage.order(workflow="one", script=one_step(*[{"text": "Which one?"}] * 3))

    state = busy_stage.wait_for(session, "done", "parked")

    assert state.detail == "its last answers called no tool: “Which one?”"


@pytest.mark.parametrize(
    ("on_stuck", "told"),
    [
        ("park", [("parked", "same call, same result")]),
        (
            "notify",
            [("working", "same call, same result"), ("working", "malformed calls"), ("done", "")],
        ),
        ("cancel", [("done", "same call, same result")]),
    ],
)
def test_the_user_decides_what_follows_when_a_model_goes_in_circles(
    tmp_path: Path, on_stuck: str, told: list[tuple[str, StuckSign]]
) -> None:
    with Stage(tmp_path, settings=f'on_stuck = "{on_stuck}"') as stage:
        stage.install(linear(1, "one"))
        same = [call("Bash", command="echo again >> again.txt") for _ in range(6)]
        session = stage.order("a", "one", script=one_step(*same, *[raw_call("Sing", "{}")] * 4))
        stage.start_driver()

        state = stage.wait_for(session, "parked", "done")

        events = [decode_envelope(link.body).event for link in stage.app.reader.links(session)]
        moves = [event for event in events if isinstance(event, UnattendedMoved)]
        assert [(e.status, e.detail) for e in moves if e.reason or e.outcome] == [
            (status, SIGN_TEXTS.get(sign, "")) for status, sign in told
        ]
        assert state.outcome == {"notify": "success", "cancel": "gave_up"}.get(on_stuck)
        signs = [e.text for e in stage.entries(session) if isinstance(e, JournalNote)]
        assert [text for text in signs if not text.startswith("stuck: ")] == [
            detail for _, detail in told if detail
        ]
        assert (stage.worktree(session) / "again.txt").exists(), "what was done can be looked at"


def test_a_quota_that_is_used_up_parks_until_the_provider_resets_it(busy_stage: Stage) -> None:
    """It is no working time, and nobody has to resume it."""
    faults = [{"fail": "rate_limited", "retryAfter": 700}]
    session = busy_stage.order(workflow="one", script=one_step({"text": "x", "faults": faults}))
    state = busy_stage.wait_for(session, "parked", "done")

    assert (state.reason, state.resume_ms > state.since_ms) == ("provider", True)
    assert "The work continues by itself after 20" in state.detail
    assert state.spent.work_ms < 60_000
    moved = UnattendedMoved("parked", state.spent, "provider", state.detail, resume_ms=1)
    assert isinstance(orders.record_move(busy_stage.app, session, moved), UnattendedState)
    busy_stage.wait_until(
        lambda: busy_stage.state(session).resume_ms > 1, "it is asked again by itself", session
    )


def long_turns(turns: int) -> list[dict[str, Any]]:
    """Turns whose results together are longer than the model can read."""
    letters = "abcdefghijklmnopqrstuvwxyz"[:turns]
    return [call("Bash", command=f"head -c 4000 /dev/zero | tr '\\0' {one}") for one in letters]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_conversation_that_is_too_long_is_shortened_and_goes_on(
    tmp_path: Path, *, is_known: bool
) -> None:
    """Before the call where the length is known, and after the refusal where it is not."""
    script = one_step(*long_turns(20)) | ({} if is_known else {"charsMax": 75_000})
    window = "context_tokens = 20_000\noutput_tokens = 1_000" if is_known else ""
    with Stage(tmp_path, settings=window) as stage:
        stage.install(linear(1, "one"))
        session = stage.order(workflow="one", script=script)
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert state.outcome == "success", state.detail
        entries = stage.entries(session)
        assert sum(isinstance(e, ConversationCompacted) for e in entries) == 1
        assert len(stage.model_calls(session)) == (21 if is_known else 22)


def test_a_step_that_is_itself_too_long_parks_and_says_so(busy_stage: Stage) -> None:
    refused = {"faults": [{"fail": "context_too_long", "times": 9}]}
    session = busy_stage.order(workflow="one", script=one_step(refused))

    state = busy_stage.wait_for(session, "done", "parked")

    assert (state.status, state.reason) == ("parked", "failed")
    assert len([e for e in busy_stage.entries(session) if isinstance(e, ModelFailed)]) == 1
