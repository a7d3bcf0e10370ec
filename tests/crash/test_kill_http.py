"""kill -9 of a server with many calls in flight: what was acknowledged to anybody is there."""

import os
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.context import open_app
from tests.crash import acknowledged_steps
from tests.crash.acknowledged_steps import check, project_with_line
from tests.crash.agents import AtWork, HttpAgent, acknowledged_by
from tests.effort import seeded
from tests.server.http_agent import Up

AGENTS = 8


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.invariant("acknowledged-survives")
def test_what_was_acknowledged_over_http_survives_kill_9(
    engine: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = acknowledged_steps.ROUNDS // (10 if engine == "sqlite" else 20)
    seed, chance = seeded()
    project_with_line(tmp_path, steps=2_000)
    up = Up(home, workspace=tmp_path)
    up.start()
    agents = [HttpAgent(up, number) for number in range(AGENTS)]

    for _ in range(rounds):
        working = AtWork(agents)
        working.wait_for(chance.randrange(4 * AGENTS))
        time.sleep(chance.uniform(0, 0.003))
        os.kill(up.pid, signal.SIGKILL)
        working.join()
        with closing(open_app(home)) as app:
            for agent in agents:
                check(app, agent.session, agent.acknowledged)
        up.restart(signal.SIGKILL)
    assert up.stop() == 0

    lost = sum(agent.lost for agent in agents)
    with capsys.disabled():
        print(
            f"\nkill -9 over HTTP, {engine}: {rounds} rounds (INTERLOCK_SEED={seed}),"
            f" {lost} calls in flight, {acknowledged_by(agents)} advances acknowledged"
        )
    assert not any(agent.refusals for agent in agents)
    assert lost == rounds * AGENTS
