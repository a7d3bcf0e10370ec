"""The driver's lease: a stall does not cost it, a lapse is repaired, and another's is respected."""
# pyright: reportPrivateUsage=false

import asyncio
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest

from interlock.app.sessions.driver_lease import current_lease
from interlock.app.unattended.driver_desk import LEASE_MS, check_in
from interlock.app.unattended.status import announced_driver
from interlock.core.ids import SessionId
from interlock.core.session.events import decode_envelope
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.journal import INTERRUPTED, ToolStarted
from interlock.driver.process import Driver
from tests.child_process import processes_of, unique_seconds
from tests.driver.stage import Stage, call, hand_in, line_script, one_step, until_go
from tests.scenes import linear

LAPSED, TAKEN_OVER = "The driver's lease lapsed", "Another driver has taken over"
AGE_MS = 4_000
"""Enough for the next check-in to renew the lease, and too little for it to lapse before."""
PROMPT_SECONDS = 30.0
STALLING = """
import os, time
from pathlib import Path
from interlock.app.unattended.driver_files import DriverJournal
from interlock.core.unattended.journal import ToolStarted
from interlock.driver import __main__, process

append, stall = DriverJournal.append, Path(os.environ["INTERLOCK_HOME"], "stall")

def stalling_append(self, session, seq, entry, **named):
    append(self, session, seq, entry, **named)
    while isinstance(entry, ToolStarted) and stall.exists():
        time.sleep(0.01)

DriverJournal.append = stalling_append
process.STALL_TICKS_MAX = int(os.environ["STALL_TICKS_MAX"])
raise SystemExit(__main__.main())
"""
"""A driver whose event loop stalls before a tool runs, as long as there is a file `stall`."""
FOLLOWING_LATE = """
import asyncio, os
from pathlib import Path
from interlock.driver import __main__, process

follow, late = process.Driver._follow, Path(os.environ["INTERLOCK_HOME"], "late")

async def follow_late(self, board, **named):
    while self._tasks:
        late.touch()
        await asyncio.sleep(0.01)
    await follow(self, board, **named)

process.Driver._follow, process.TICK_SECONDS = follow_late, 0.1
process.STALL_TICKS_MAX = 10_000  # it looks as if it hung
raise SystemExit(__main__.main())
"""
"""A driver that follows a board only after all work that it had has ended."""
SLOW_LIBRARY = """
import pathlib, time
here = pathlib.Path(__file__).parent
(here / "importing").touch()
while not (here / "go").exists():
    time.sleep(0.01)
raise ImportError("No module named 'pydantic_ai'", name="pydantic_ai")
"""


def start_stalling_driver(stage: Stage, *, ticks_max: int) -> SessionId:
    stage.play(line_script(1, work=lambda _: [call("Bash", command="echo once >> marks")]))
    session = stage.order_line(1)
    (stage.home / "stall").touch()
    stage.start_driver("-c", STALLING, STALL_TICKS_MAX=str(ticks_max))
    stage.wait_until(
        lambda: any(isinstance(entry, ToolStarted) for entry in stage.entries(session)),
        "the event loop is stalled",
        session,
    )
    return session


def test_a_stalled_event_loop_does_not_cost_the_lease(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        session = start_stalling_driver(stage, ticks_max=10_000)
        for _ in range(LEASE_MS // AGE_MS + 1):
            stage.wait_until(lambda: stage.lease_ms() > LEASE_MS * 0.9, "it is renewed", session)
            stage.age_lease(AGE_MS)
        stage.wait_until(lambda: stage.lease_ms() > LEASE_MS * 0.9, "it is renewed", session)

        (stage.home / "stall").unlink()

        assert stage.wait_for(session, "done", "parked").outcome == "success"
        assert (stage.worktree(session) / "marks").read_text() == "once\n"
        assert stage.drivers[0].is_running
        log = stage.drivers[0].log.read_text()
        assert LAPSED not in log
        assert TAKEN_OVER not in log


def test_a_driver_whose_event_loop_hangs_exits_and_the_next_one_continues(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        session = start_stalling_driver(stage, ticks_max=3)
        (hung,) = stage.drivers

        assert hung.end(0) == 6
        assert "The event loop hangs" in hung.log.read_text()
        (stage.home / "stall").unlink()
        stage.start_driver()

        assert stage.wait_for(session, "done", "parked").outcome == "success"
        results = [one.result.text for one in stage.results(session)]
        assert results == [INTERRUPTED]


def test_a_driver_whose_lease_lapsed_renews_it_and_continues(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        mark = unique_seconds()
        command = f"echo once >> marks; {until_go(mark)}"
        stage.play(line_script(2, work=lambda _: [call("Bash", command=command)]))
        session = stage.order_line(2)
        driver = stage.start_driver()
        stage.wait_until(lambda: bool(processes_of(mark)), "a tool runs", session)
        before = current_lease(stage.app)
        driver.send(signal.SIGSTOP)
        while stage.lease_ms():  # the server may still answer a check-in
            stage.age_lease(LEASE_MS)
        driver.send(signal.SIGCONT)
        (stage.worktree(session) / "go").touch()

        assert stage.wait_for(session, "done", "parked").outcome == "success"
        after = current_lease(stage.app)
        assert before is not None
        assert after is not None
        assert (after.holder, after.epoch) == (before.holder, before.epoch)
        assert driver.is_running
        log = driver.log.read_text()
        assert LAPSED in log
        assert TAKEN_OVER not in log
        assert (stage.worktree(session) / "marks").read_text() == "once\n" * 2
        assert len(stage.model_calls()) == 4, "nothing was asked twice"


def test_a_driver_that_slept_too_long_is_fenced_off(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        mark = unique_seconds()
        stage.play(line_script(2, work=lambda _: [call("Bash", command=until_go(mark))]))
        session = stage.order_line(2)
        first = stage.start_driver()
        stage.wait_until(lambda: bool(processes_of(mark)), "a tool runs", session)
        first.send(signal.SIGSTOP)
        second = stage.start_driver()
        stage.wait_until(
            lambda: "standing by" in second.log.read_text(), "the second stands by", session
        )
        stage.age_lease(LEASE_MS)
        (stage.worktree(session) / "go").touch()

        state = stage.wait_for(session, "done", "parked")
        assert TAKEN_OVER not in first.log.read_text()
        first.send(signal.SIGCONT)

        assert state.outcome == "success"
        assert first.end(0, seconds=30) == 5, "it has lost its lease"
        assert TAKEN_OVER in first.log.read_text()
        assert stage.notes(session) == ["Step 1 is done.", "Step 2 is done."]
        again = stage.order("again", script=line_script(2))
        assert stage.wait_for(again, "done", "parked").outcome == "success"
        assert second.is_running, "it keeps the lease"
        announced = announced_driver(stage.app.home)
        assert announced is not None, "the first driver leaves the announcement of the second"
        assert announced.pid == second.pid


def test_a_driver_without_work_exits_once_another_has_its_lease(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        driver = stage.start_driver()
        stage.wait_until(lambda: stage.lease_ms() > 0, "it has the lease")
        driver.send(signal.SIGSTOP)
        while check_in(stage.app, "another").lease.holder != "another":
            stage.age_lease(LEASE_MS)
        driver.send(signal.SIGCONT)

        assert driver.end(0) == 5
        log = driver.log.read_text()
        assert f"{TAKEN_OVER}: another has the lease" in log
        assert LAPSED not in log


@pytest.mark.parametrize("is_configured", [True, False], ids=["in the settings", "in the order"])
def test_the_import_of_a_provider_holds_up_neither_the_lease_nor_other_work(
    tmp_path: Path, *, is_configured: bool
) -> None:
    """A model of the settings is imported before the lease is acquired, any other in a thread."""
    library, provider = tmp_path / "library" / "pydantic_ai", "openai:gpt-9"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(SLOW_LIBRARY)
    with Stage(tmp_path, settings='max_sessions = 2\nbase_url = "http://127.0.0.1:9"') as stage:
        stage.install(linear(1, "one"))
        steps = [{"when": "# Step 1 of 1", "turns": [hand_in("It is done.")]}]
        if is_configured:
            config = stage.home / "config.toml"
            config.write_text(config.read_text().replace(f"scripted:{stage.script}", provider))
        slow = stage.order("slow", "one", model=provider)
        quick = stage.order("quick", "one", script={"steps": steps})
        driver = stage.start_driver(PYTHONPATH=str(library.parent))
        stage.wait_until((library / "importing").exists, "the import has begun", slow)

        if is_configured:
            assert current_lease(stage.app) is None
            assert driver.end(seconds=PROMPT_SECONDS) == 0, "the import does not hold up its end"
            driver = stage.start_driver(PYTHONPATH=str(library.parent))
        else:
            assert stage.wait_for(quick, "done", "parked").outcome == "success"
        (library / "go").touch()

        assert stage.wait_for(quick, "done", "parked").outcome == "success"
        state = stage.wait_for(slow, "parked", "done")
        assert (state.status, state.reason) == ("parked", "credentials")
        assert "Install it with: " in state.detail
        assert driver.is_running


def test_work_that_has_parked_is_not_begun_again_from_an_older_board(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        mark = unique_seconds()
        script = one_step(call("Bash", command=until_go(mark)))
        session = stage.order("a", "one", script=script, limits={"turns": 1})
        stage.start_driver("-c", FOLLOWING_LATE)
        stage.wait_until((stage.home / "late").exists, "a board that says it works", session)
        stage.wait_until(lambda: bool(processes_of(mark)), "its command runs", session)
        (stage.worktree(session) / "go").touch()
        stage.wait_for(session, "parked")
        stage.wait_for_check_in()

        links = stage.app.reader.links(session)
        events = [decode_envelope(link.body).event for link in links]
        moves = [event.status for event in events if isinstance(event, UnattendedMoved)]
        assert moves.count("parked") == 1, moves


def test_nothing_is_done_after_the_lease_may_have_lapsed_until_it_is_confirmed() -> None:
    driver = Mock(_lease_until=0.0, _lease_confirmed=asyncio.Event())
    driver._lease_confirmed.set()

    async def confirm() -> bool:
        waiting = asyncio.ensure_future(Driver._confirm_lease(driver))
        await asyncio.sleep(0)
        is_waiting = not waiting.done()
        driver._lease_confirmed.set()
        await waiting
        return is_waiting

    assert asyncio.run(confirm())
