"""Nothing that a tool has started outlives its call, however that ends."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from interlock.driver.tools import processes
from interlock.driver.tools.tool import Level, ToolOutcome
from tests.child_process import processes_of, unique_seconds
from tests.driver.tools.scene import LEVELS, Scene, call_tool

pytestmark = pytest.mark.slow

SECONDS_MAX = 60
STUBBORN = (
    "sleep {0} & setsid sleep {0} &"
    " (setsid sh -c \"trap '' TERM HUP INT; sleep {0}; sleep {0}\" &); (setsid setsid sleep {0} &);"
    " trap '' TERM; touch $TMPDIR/started; sleep {0}; sleep {0}"
)
"""Children in the background, in sessions of their own, without a parent, deaf to signals."""


def wait_until_started(scene: Scene, part: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not (scene.scratch / "tmp/started").exists() or len(processes_of(f"sleep {part}")) < 5:
        assert time.monotonic() < deadline, processes_of(part)
        time.sleep(0.05)


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_command_leaves_behind_ends_with_it(scene: Scene, level: Level) -> None:
    """And does not keep its call waiting, though it holds the output."""
    mark = unique_seconds()
    text = f"sleep {mark} & setsid sleep {mark} & (setsid nohup sleep {mark} 2>&1 &); echo done"

    outcome = scene.call("Bash", workplace=scene.workplace(level), command=text)

    assert outcome == ToolOutcome("done\n[exit code 0]", exit_code=0)
    assert not processes_of(mark)


@pytest.mark.parametrize("level", LEVELS)
def test_a_command_whose_time_is_up_is_ended_with_its_whole_tree(
    scene: Scene, level: Level
) -> None:
    mark = unique_seconds()

    outcome = scene.call(
        "Bash",
        workplace=scene.workplace(level),
        command=f"echo begun; {STUBBORN.format(mark)}",
        timeout_seconds=2,
    )

    assert outcome.text == "begun\n[it was ended with all that it started: 2 s were up]"
    assert outcome.is_error
    assert not processes_of(mark)


@pytest.mark.parametrize("level", LEVELS)
def test_a_cancelled_call_returns_when_its_whole_tree_has_ended(scene: Scene, level: Level) -> None:
    """Though it is cancelled again while it ends."""
    mark = unique_seconds()

    async def cancel() -> None:
        calling = call_tool(scene.workplace(level), "Bash", command=STUBBORN.format(mark))
        call = asyncio.create_task(calling)
        await asyncio.to_thread(wait_until_started, scene, mark)
        for _ in range(3):
            call.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not processes_of(mark)

    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(cancel())
    assert len(os.listdir("/proc/self/fd")) <= before, "no descriptor is left open"


def wait_for_process(text: str) -> int:
    while not (found := processes_of(text)):  # bounded by the timeout of the test
        time.sleep(0.05)
    return min(found)


@pytest.mark.parametrize("level", LEVELS)
def test_a_wrapper_that_does_not_end_is_killed_with_its_command(
    scene: Scene, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_END_SECONDS_MAX", 0.2)
    mark = unique_seconds()

    async def cancel() -> None:
        call = asyncio.create_task(
            call_tool(scene.workplace(level), "Bash", command=f"sleep {mark}")
        )
        wrapper = os.getpgid(await asyncio.to_thread(wait_for_process, f"sleep {mark}"))
        os.kill(wrapper, signal.SIGSTOP)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    while processes_of(mark):  # bounded by the timeout of the test
        time.sleep(0.05)


@pytest.mark.parametrize("level", LEVELS)
def test_a_killed_driver_takes_its_tools_with_it(scene: Scene, level: Level) -> None:
    mark = unique_seconds()
    driver = scene.start_driver([("Bash", {"command": STUBBORN.format(mark)})], level)
    wait_until_started(scene, mark)

    driver.kill()
    driver.communicate(timeout=SECONDS_MAX)

    deadline = time.monotonic() + SECONDS_MAX
    while processes_of(mark) or any(
        _works_in(process, scene.worktree) for process in Path("/proc").glob("[0-9]*")
    ):
        assert time.monotonic() < deadline, "the supervisor ends, too"
        time.sleep(0.05)


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder
    except OSError:
        return False


def test_a_chain_of_processes_that_replace_each_other_is_ended(scene: Scene) -> None:
    mark = unique_seconds()
    program = scene.worktree / "chain.sh"
    program.write_text('[ -e "$1" ] || exit; setsid sh "$0" "$@" & sleep 0.01')
    going = scene.scratch / "going"
    going.touch()

    text = f"setsid sh {program} {going} {mark} & sleep 1"
    outcome = scene.call("Bash", command=text)

    assert outcome.exit_code == 0
    assert not processes_of(mark)
