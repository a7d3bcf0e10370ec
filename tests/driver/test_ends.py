"""Ended work leaves nothing behind, and waiting work is shown as waiting, on every surface."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from interlock.agents.hosts.registry import host_named
from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.coordination.holdings import ReservedPaths, ReserveRequest, reserve_paths
from interlock.app.coordination.participants import Participant
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol.bootstrap import preview_bootstrap
from interlock.app.unattended import orders
from interlock.core.ids import SessionId
from interlock.core.unattended.order import UnattendedState
from interlock.mcp.resume_tool import RESUME_SESSION, ResumeArguments
from tests.child_process import processes_of, unique_seconds
from tests.driver.stage import PLACE, Stage, call, hand_in, one_step
from tests.scenes import linear
from tests.server.forms import SignedIn

RUNS, HOURS = 20, 3
ENDS = {"finished": "completed", "cancelled": "cancelled", "paused": "paused", "parked": "?"}
"""The word for the work on the page Now. Parked work is in the inbox instead."""
CANCELLED = ("cancelled parked", "cancelled working", "cancelled queued")
FATES = ("finished", "parked", "paused", *CANCELLED)
SPAWNING = "cancelled with the agent it spawned"


def cancel(stage: Stage, session: SessionId) -> None:
    state = orders.control_work(stage.app, session, "cancel", place=PLACE)
    assert isinstance(state, UnattendedState), state


def order(stage: Stage, number: int, fate: str, mark: str) -> SessionId:
    goal = f"Goal {number:02} {fate}"
    sleep = call("Bash", command=f"sleep {mark}")
    if fate == SPAWNING:
        parent = [call("spawn_agent", workflow="one", goal="Look"), hand_in("It was found.")]
        steps = [{"when": "Goal: Look", "turns": [sleep]}, {"when": "# Step 1", "turns": parent}]
        return stage.order(goal, "one", script={"steps": steps})
    if fate == "cancelled working":
        return stage.order(goal, "one", script=one_step(sleep))
    if "parked" in fate:
        looks = one_step(call("Bash", command="echo one"))
        return stage.order(goal, "one", script=looks, limits={"turns": 1})
    return stage.order(goal, "one", script=one_step())


def play(stage: Stage) -> dict[SessionId, str]:
    """Have the driver work, and cancel and pause at random; the fates by session."""
    chance = random.Random(80)
    fates = [*FATES, SPAWNING, *chance.choices(FATES, k=RUNS - len(FATES) - 1)]
    chance.shuffle(fates)
    marks = [unique_seconds() for _ in fates]
    work = {order(stage, number, fate, marks[number]): fate for number, fate in enumerate(fates)}
    for session, fate in work.items():
        if fate == "cancelled queued":
            cancel(stage, session)
        elif fate == "paused":
            orders.control_work(stage.app, session, "pause", place=PLACE)
    driver = stage.start_driver()
    desk = open_desk(stage.app, stage.repository)
    for number, (session, fate) in enumerate(work.items()):
        if fate in ("cancelled working", SPAWNING):
            mark = marks[number]
            stage.wait_until(lambda mark=mark: bool(processes_of(mark)), mark, session)
            cancel(stage, session)
        elif "parked" in fate:
            stage.wait_for(session, "parked")
        if "parked" in fate:
            held = ReserveRequest((f"src/{number}/**",))
            reserved = reserve_paths(stage.app, desk, Participant(session), held)
            assert isinstance(reserved, ReservedPaths)
        if fate == "cancelled parked":
            cancel(stage, session)
    for session, fate in work.items():
        stage.wait_for(session, "done" if "cancelled" in fate or fate == "finished" else fate)
    assert driver.end() == 0
    return work


def move_clock(stage: Stage) -> App:
    """Let hours pass for all processes that open the store from now on."""
    clock = stage.home / "steady-clock"
    boot, _, offset = clock.read_text().partition(" ")
    clock.write_text(f"{boot} {int(offset) + HOURS * 3_600_000}")
    stage.server.restart()
    return open_app(stage.home)


def typed(stage: Stage, *arguments: str) -> tuple[int, str]:
    environment = os.environ | {"INTERLOCK_HOME": str(stage.home)}
    done = subprocess.run(
        [sys.executable, "-m", "interlock", *arguments],
        cwd=stage.repository,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def typed_json(stage: Stage, *arguments: str) -> Any:
    code, out = typed(stage, *arguments, "--json")
    assert code == 0, out
    return json.loads(out)


def test_twenty_runs_that_end_and_park_at_random_leave_no_ghost(tmp_path: Path) -> None:
    with Stage(tmp_path, settings="max_sessions = 20") as stage:
        stage.install(linear(1, "one"))
        opt_in(stage.repository, "standard")
        work = play(stage)
        app = move_clock(stage)
        try:
            check_surfaces(stage, app, work)
        finally:
            app.close()


def check_surfaces(stage: Stage, app: App, work: dict[SessionId, str]) -> None:
    parked = {session for session, fate in work.items() if fate == "parked"}
    finished = {session for session, fate in work.items() if fate == "finished"}
    waiting = parked | {session for session, fate in work.items() if fate == "paused"}
    assert len(work) == RUNS
    assert {session for session, _ in orders.list_active(app)} == waiting, "no spawned agent either"

    code, said = typed(stage, "preflight", "--json")
    report = json.loads(said)
    assert code == 0, said
    others = [
        one for one in report["active_sessions"] if one["display"].endswith("unattended, waiting")
    ]
    assert len(others) == len(report["active_sessions"]) == len(parked)
    assert (report["stale_sessions"], report["questions"]) == ([], [])
    names = [one["id"] for one in others]
    assert "unattended, waiting" in typed(stage, "who")[1]

    rows = {row["session"]: row for row in typed_json(stage, "run", "list", "--all")}
    for session, fate in work.items():
        if "cancelled" in fate:
            assert session not in rows or rows[session]["status"]["word"] in (
                "abandoned",
                "cancelled",
            ), fate
    assert {one for one, row in rows.items() if row["status"]["word"] == "completed"} == finished
    assert {one["session"] for one in typed_json(stage, "run", "list")} == parked
    assert "waiting (unattended)" in typed(stage, "run", "list")[1]

    answer: Any = RESUME_SESSION.call(
        app, local_caller(app, Path.cwd()), ResumeArguments(limit=RUNS)
    ).structured
    assert {one.session for one in answer.candidates} <= finished
    briefing = preview_bootstrap(app, stage.repository, host_named("claude-code"))
    assert "Open run" not in str(briefing)
    assert "stale" not in str(briefing)
    assert all(name in str(briefing) for name in names)

    status = typed_json(stage, "driver", "status")
    shown = {one["session"]: one["status"]["word"] for one in status["sessions"]}
    assert shown == {one: "waiting" if one in parked else "paused" for one in waiting}
    assert status["queue"] == []
    check_pages(stage, work, names)
    code, said = typed(stage, "takeover", names[0])
    assert (code, "(unattended, waiting) cannot be taken over" in said) == (1, True), said
    assert "`interlock driver cancel ses_" in said


def check_pages(stage: Stage, work: dict[SessionId, str], names: list[str]) -> None:
    person = SignedIn(stage.server)
    board, now, inbox = (person.get(page).text for page in ("/board", "/now", "/inbox"))
    assert all(name in board for name in names)
    at_once = board.replace('<span class="once-over"> <span class="badge warn">stale', "")
    assert '<span class="badge warn">stale' not in at_once
    assert not any(f"identity={name}" in board for name in names)
    for session, fate in work.items():
        assert (f"/sessions/{session}" in board) is (fate == "parked"), fate
        assert (f"parked-{session}" in inbox) is (fate == "parked"), fate
        line = now.partition(f'id="agent-{session}"')[2].partition("</li>")[0]
        assert line or fate != "paused", "it is shown, however many have ended"
        assert not line or ENDS[fate.partition(" ")[0]] in line, fate


def test_a_cancel_that_waits_for_a_driver_is_shown_over_restarts(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        mark = unique_seconds()
        script = one_step(call("Bash", command=f"sleep {mark}"))
        session = stage.order("a", "one", script=script)
        driver = stage.start_driver()
        stage.wait_until(lambda: bool(processes_of(mark)), mark, session)
        driver.end(signal.SIGKILL)
        cancel(stage, session)
        stage.server.restart(signal.SIGKILL)

        assert "It is being cancelled" in typed(stage, "driver", "status")[1]

        stage.start_driver()
        assert stage.wait_for(session, "done").outcome == "cancelled"
        assert stage.app.reader.runs(session)[-1].status == "abandoned"
