"""What the user wants reaches work that goes on: pause, resume, cancel, steer, limits."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from interlock.app.unattended import orders
from interlock.core.ids import SessionId
from interlock.core.session.events import decode_envelope
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.journal import (
    INTERRUPTED,
    JournalNote,
    MessageAdded,
    ModelAnswered,
    StepBegun,
)
from interlock.core.unattended.order import LimitsWish, UnattendedState
from tests.child_process import processes_of, unique_seconds
from tests.driver.stage import (
    PLACE,
    Stage,
    call,
    hand_in,
    line_script,
    one_step,
    until_go,
)
from tests.scenes import linear, refusal_code

EXIT_SECONDS_MAX = 60.0
PATIENT = """
from interlock.driver import __main__, process
process.DRAIN_SECONDS = process.END_SECONDS_MAX = 3600.0
raise SystemExit(__main__.main())
"""
"""A driver that ends within this hour only if it is told to twice."""


def wait_for_command(stage: Stage, session: SessionId, mark: str) -> None:
    stage.wait_until(lambda: len(processes_of(mark)) > 0, f"{mark} runs", session)


def test_cancelling_ends_a_command_with_all_that_it_started(busy_stage: Stage) -> None:
    mark = unique_seconds()
    sleeps = f"sleep {mark} & setsid sleep {mark} & sleep {mark}"
    session = busy_stage.order(workflow="one", script=one_step(call("Bash", command=sleeps)))
    wait_for_command(busy_stage, session, mark)

    orders.control_work(busy_stage.app, session, "cancel", place=PLACE)
    state = busy_stage.wait_for(session, "done")

    assert state.outcome == "cancelled"
    assert processes_of(mark) == []
    assert Path(state.worktree).is_dir(), "what was done can be looked at"


def test_a_pause_lets_the_turn_end_and_resuming_goes_on_in_the_same_step(busy_stage: Stage) -> None:
    mark = unique_seconds()
    waits = call("Bash", command=until_go(mark))
    session = busy_stage.order(workflow="one", script=one_step(waits))
    wait_for_command(busy_stage, session, mark)

    orders.control_work(busy_stage.app, session, "pause", place=PLACE)
    busy_stage.wait_for_check_in()
    (busy_stage.worktree(session) / "go").touch()
    busy_stage.wait_for(session, "paused")
    results = [one.result.text for one in busy_stage.results(session)]
    assert results == [f"{mark}\n[exit code 0]"]
    orders.control_work(busy_stage.app, session, "resume", place=PLACE)

    assert busy_stage.wait_for(session, "done", "parked").outcome == "success"
    assert len(busy_stage.model_calls(session)) == 2, "nothing was asked twice"


def test_a_pause_at_once_interrupts_and_the_model_is_told(busy_stage: Stage) -> None:
    mark = unique_seconds()
    session = busy_stage.order(
        workflow="one", script=one_step(call("Bash", command=f"sleep {mark}"))
    )
    wait_for_command(busy_stage, session, mark)

    orders.control_work(busy_stage.app, session, "pause_now", place=PLACE)
    busy_stage.wait_for(session, "paused")
    assert processes_of(mark) == []
    orders.control_work(busy_stage.app, session, "resume", place=PLACE)

    assert busy_stage.wait_for(session, "done", "parked").outcome == "success"
    results = [one.result for one in busy_stage.results(session)]
    assert [result.text for result in results] == [INTERRUPTED]


def test_a_message_reaches_the_model_before_its_next_turn_and_once(busy_stage: Stage) -> None:
    mark = unique_seconds()
    waits = call("Bash", command=until_go(mark))
    session = busy_stage.order(workflow="one", script=one_step(waits))
    wait_for_command(busy_stage, session, mark)
    for _ in range(2):
        said = orders.steer_work(
            busy_stage.app, session, "Mind the <gap>", place=PLACE, steer="s-1"
        )
        assert isinstance(said, UnattendedState)
    busy_stage.wait_for_check_in()
    (busy_stage.worktree(session) / "go").touch()

    state = busy_stage.wait_for(session, "done", "parked")

    entries = busy_stage.entries(session)
    told = [index for index, e in enumerate(entries) if isinstance(e, MessageAdded)]
    answers = [index for index, e in enumerate(entries) if isinstance(e, ModelAnswered)]
    assert len(told) == 1
    assert answers[0] < told[0] < answers[1]
    message = entries[told[0]]
    assert isinstance(message, MessageAdded)
    assert "Mind the <gap>" in message.text
    assert state.steers == ()
    late = orders.steer_work(busy_stage.app, session, "Too late", place=PLACE)
    assert refusal_code(late) == "unattended_over"


@pytest.mark.parametrize(
    ("limits", "turn", "said"),
    [
        ({"turns": 2}, {}, "2 turns"),
        ({"tokens": 4_000}, {"usage": {"input": 3_000, "output": 500}}, "4,000 tokens"),
        # Two calls at 40 cents: a third one would be more than a dollar, so it is not made.
        ({"cost_micros": 1_000_000}, {"usage": {"input": 9, "costMicros": 400_000}}, "$1.00"),
    ],
)
def test_a_limit_parks_and_raising_it_goes_on(
    busy_stage: Stage, limits: dict[str, int], turn: dict[str, Any], said: str
) -> None:
    looks = [call("Bash", command=f"echo {number}") | turn for number in range(3)]
    session = busy_stage.order(workflow="one", script=one_step(*looks), limits=limits)

    state = busy_stage.wait_for(session, "parked", "done")
    notes = [e.text for e in busy_stage.entries(session) if isinstance(e, JournalNote)]
    assert notes[-1].startswith("limit: "), "it is in the journal, too"
    assert (state.reason, state.detail) == ("limit", f"the limit of {said} is reached")
    assert state.needs_user
    before = len(busy_stage.model_calls(session))
    assert before == 2
    raised = LimitsWish(turns=100, tokens=1_000_000, cost_micros=50_000_000)
    orders.raise_limits(busy_stage.app, session, raised, place=PLACE)

    state = busy_stage.wait_for(session, "done")
    assert state.outcome == "success"
    assert len(busy_stage.model_calls(session)) == 4
    costs = [
        e.usage.cost_micros or 0
        for e in busy_stage.entries(session)
        if isinstance(e, ModelAnswered)
    ]
    assert state.spent.usage.cost_micros == sum(costs)


def test_the_user_is_told_once_that_a_limit_comes_near(busy_stage: Stage) -> None:
    looks = [call("Bash", command=f"echo {number}") for number in range(9)]
    session = busy_stage.order(workflow="one", script=one_step(*looks), limits={"turns": 10})
    busy_stage.wait_for(session, "done", "parked")

    links = busy_stage.app.reader.links(session)
    events = [decode_envelope(link.body).event for link in links]
    near = [
        moved.detail
        for moved in events
        if isinstance(moved, UnattendedMoved) and moved.status == "working" and not moved.reason
    ]
    assert [text for text in near if text] == ["80% of 10 turns are used"]


def test_the_model_knows_what_is_left_and_is_warned_once_before_a_limit(busy_stage: Stage) -> None:
    looks = [call("Bash", command=f"echo {number}") for number in range(5)]
    limits = {"turns": 13, "tokens": 100_000_000}
    session = busy_stage.order(
        workflow="line", script=line_script(2, work=lambda _: looks), limits=limits
    )
    busy_stage.wait_for(session, "done", "parked")

    entries = busy_stage.entries(session)
    first, second = (e.message for e in entries if isinstance(e, StepBegun))
    assert "Left for this step and all that follow: 13 turns, 60 minutes of work," in first
    assert "Left for this step and all that follow: 7 turns, 60 minutes of work," in second
    (warning,) = [e for e in entries if isinstance(e, MessageAdded)]
    assert warning.text.startswith("85% of 13 turns are used. Wrap up now:")


def test_a_limit_that_was_raised_is_warned_of_anew(busy_stage: Stage) -> None:
    looks = [call("Bash", command=f"echo {number}") for number in range(9)]
    session = busy_stage.order(workflow="one", script=one_step(*looks), limits={"turns": 5})
    busy_stage.wait_for(session, "parked", "done")
    orders.raise_limits(busy_stage.app, session, LimitsWish(turns=11), place=PLACE)
    busy_stage.wait_for(session, "done")

    said = [e.text[:24] for e in busy_stage.entries(session) if isinstance(e, MessageAdded)]
    assert said == ["80% of 5 turns are used.", "82% of 11 turns are used"]


def test_work_waits_for_its_turn_in_the_order_in_which_it_was_asked_for(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        script = one_step(call("Bash", command="sleep 0.4"))
        sessions = [stage.order(f"number {n}", "one", script=script) for n in range(4)]
        killed = stage.start_driver()
        stage.wait_for(sessions[0], "done")
        killed.end(signal.SIGKILL)
        stage.start_driver()

        finished: list[SessionId] = []
        together = 0
        while len(finished) < len(sessions):
            states = {session: stage.state(session) for session in sessions}
            finished += [s for s in sessions if states[s].is_over and s not in finished]
            together = max(together, sum(s.status == "working" for s in states.values()))

        assert finished == sessions
        assert together == 1


@pytest.mark.parametrize("trap", ["", "trap '' TERM HUP INT; "], ids=["obedient", "stubborn"])
def test_a_driver_that_is_told_to_end_sets_its_work_aside(tmp_path: Path, trap: str) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        mark = unique_seconds()
        command = f"{trap}sleep {mark}; sleep {mark}"
        session = stage.order("a", "one", script=one_step(call("Bash", command=command)))
        driver = stage.start_driver()
        wait_for_command(stage, session, mark)

        assert driver.end(signal.SIGTERM, seconds=EXIT_SECONDS_MAX) == 0

        assert processes_of(mark) == []
        assert len(stage.model_calls(session)) == 1
        state = stage.state(session)
        assert (state.status, state.detail) == (
            "queued",
            "the driver was shut down; the next one goes on",
        )
        stage.start_driver()
        assert stage.wait_for(session, "done", "parked").outcome == "success"


def test_a_driver_that_is_told_to_end_begins_nothing_new(tmp_path: Path) -> None:
    """Neither a turn nor a tool: what was begun in time has its result."""
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        mark = unique_seconds()
        commands = [until_go(mark), "echo next"]
        calls = [{"name": "Bash", "arguments": {"command": command}} for command in commands]
        session = stage.order("a", "one", script=one_step({"calls": calls}))
        driver = stage.start_driver()
        wait_for_command(stage, session, mark)

        driver.send(signal.SIGTERM)
        (stage.worktree(session) / "go").touch()
        assert driver.end(0, seconds=EXIT_SECONDS_MAX) == 0

        results = [one.result.text for one in stage.results(session)]
        assert results == [f"{mark}\n[exit code 0]"]
        stage.start_driver()
        assert stage.wait_for(session, "done", "parked").outcome == "success"
        results = [one.result.text for one in stage.results(session)]
        assert results[1:] == ["next\n[exit code 0]"]
        assert len(stage.model_calls(session)) == 2


def test_a_driver_that_is_told_twice_to_end_does_so_at_once(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        mark = unique_seconds()
        command = f"trap '' TERM; sleep {mark}; sleep {mark}"
        session = stage.order("a", "one", script=one_step(call("Bash", command=command)))
        driver = stage.start_driver("-c", PATIENT)
        wait_for_command(stage, session, mark)

        driver.send(signal.SIGTERM)
        time.sleep(0.5)  # two signals of a kind at the same moment are one
        assert driver.end(signal.SIGTERM, seconds=EXIT_SECONDS_MAX) == 0

        stage.wait_until(lambda: not processes_of(mark), "the command ends with it", session)
        stage.start_driver()
        assert stage.wait_for(session, "done", "parked").outcome == "success"


def test_a_driver_ends_in_time_although_the_server_hangs(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        mark = unique_seconds()
        session = stage.order("a", "one", script=one_step(call("Bash", command=f"sleep {mark}")))
        driver = stage.start_driver()
        wait_for_command(stage, session, mark)
        os.kill(stage.server.pid, signal.SIGSTOP)
        try:
            time.sleep(1)  # by then it waits for an answer
            assert driver.end(signal.SIGTERM, seconds=EXIT_SECONDS_MAX) == 0
        finally:
            os.kill(stage.server.pid, signal.SIGCONT)

        stage.wait_until(lambda: not processes_of(mark), "the command ends with it", session)
        stage.start_driver()
        assert stage.wait_for(session, "done", "parked").outcome == "success"


def test_a_spawned_agent_is_set_aside_with_its_parent_and_goes_on_with_it(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        mark = unique_seconds()
        child = [call("Bash", command=f"sleep {mark}"), hand_in("I have found it.")]
        parent = [call("spawn_agent", workflow="one", goal="Look"), hand_in("It was found.")]
        steps = [{"when": "Goal: Look", "turns": child}, {"when": "# Step 1", "turns": parent}]
        session = stage.order("Have it found", "one", script={"steps": steps})
        driver = stage.start_driver()
        wait_for_command(stage, session, mark)

        assert driver.end(signal.SIGTERM, seconds=EXIT_SECONDS_MAX) == 0
        stage.start_driver()

        assert stage.wait_for(session, "done", "parked").outcome == "success"
        (spawned,) = [one.result for one in stage.results(session)]
        assert (spawned.is_error, "I have found it." in spawned.text) == (False, True)
        assert orders.list_active(stage.app) == [], "nobody waits for ever"


def test_a_driver_waits_for_a_server_and_survives_two_restarts_of_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.play(line_script(6, work=lambda _: [call("Bash", command="sleep 0.3")]))
    session = stage.order_line(6)
    driver = stage.start_driver()
    stage.wait_until(lambda: "waiting for the server" in driver.log.read_text(), "it waits")
    with stage:
        stage.wait_until(lambda: len(stage.model_calls()) > 2, "it works", session)
        stage.server.restart(signal.SIGKILL)
        stage.wait_until(lambda: len(stage.model_calls()) > 6, "it works again", session)
        stage.server.restart()

        assert stage.wait_for(session, "done", "parked").outcome == "success"
        assert stage.notes(session) == [f"Step {n} is done." for n in range(1, 7)]


def test_how_many_work_at_a_time_can_be_changed_while_the_driver_runs(tmp_path: Path) -> None:
    with Stage(tmp_path, settings="max_sessions = 1") as stage:
        stage.install(linear(1, "one"))
        marks = [unique_seconds() for _ in range(2)]
        scripts = [one_step(call("Bash", command=until_go(mark))) for mark in marks]
        first, second = (stage.order(workflow="one", script=script) for script in scripts)
        stage.start_driver()
        wait_for_command(stage, first, marks[0])
        stage.wait_for_check_in()
        assert stage.state(second).status == "queued"

        config = stage.home / "config.toml"
        config.write_text(config.read_text().replace("max_sessions = 1", "max_sessions = 2"))

        wait_for_command(stage, second, marks[1])
