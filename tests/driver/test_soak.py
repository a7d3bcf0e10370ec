"""A driver that works for long stays as it is: no memory, no descriptor and no process too many."""

import time
from pathlib import Path

import msgspec
import pytest

from tests.driver.stage import Stage, call, hand_in
from tests.effort import EFFORT
from tests.scenes import linear

SECONDS = {"quick": 3, "test": 4, "long": 600}[EFFORT]
TOGETHER = 3
GROWTH_MAX = 1.10


class Measure(msgspec.Struct, frozen=True):
    memory_kb: int
    descriptors: int
    zombies: int


def measure(pid: int) -> Measure:
    status = Path(f"/proc/{pid}/status").read_text()
    memory = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    zombies = 0
    for child in children:
        try:
            zombies += ") Z " in Path(f"/proc/{child}/stat").read_text()
        except OSError:
            continue
    return Measure(int(memory.split()[1]), len(list(Path(f"/proc/{pid}/fd").iterdir())), zombies)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_driver_neither_grows_nor_leaks(tmp_path: Path) -> None:
    turns = [call("Bash", command=f"echo {n}; seq 200") for n in range(4)]
    script = {"steps": [{"turns": [*turns, hand_in("It is done.")]}]}
    with Stage(tmp_path, settings=f"max_sessions = {TOGETHER}") as stage:
        stage.install(linear(1, "one"))
        stage.play(script)
        driver = stage.start_driver()
        warm: Measure | None = None
        started, done = time.monotonic(), 0
        while time.monotonic() < started + SECONDS or warm is None:
            sessions = [stage.order(f"round {done}", "one") for _ in range(TOGETHER)]
            for session in sessions:
                assert stage.wait_for(session, "done", "parked").outcome == "success"
            done += 1
            if warm is None and time.monotonic() > started + SECONDS / 3:
                warm = measure(driver.pid)

        stage.wait_until(lambda: measure(driver.pid).zombies == 0, "the dead are collected")
        end = measure(driver.pid)

        print(f"{done} rounds: {warm} -> {end}")
        assert end.memory_kb < warm.memory_kb * GROWTH_MAX
        assert end.descriptors <= warm.descriptors + 2, "connections of threads come and go"
