"""kill -9 of PostgreSQL, all of its processes at once, at any moment of a call.

Those who use it go on running. What was acknowledged is there, and the same call goes through once
PostgreSQL is back.
"""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import open_app
from tests.crash import acknowledged_steps
from tests.crash.acknowledged_steps import check, project_with_line
from tests.crash.agents import AtWork, HttpAgent, acknowledged_by
from tests.effort import seeded
from tests.postgres import Cluster
from tests.server.http_agent import Up

ROUNDS = acknowledged_steps.ROUNDS // 20
AGENTS = 8


def is_plain(refusal: dict[str, Any]) -> bool:
    """Says what is true and what to do, and with which call to go on."""
    assert refusal["code"] == "store_failed", refusal
    assert "cannot be reached" in refusal["message"] or "was lost" in refusal["message"], refusal
    assert "epeat the call" in refusal["details"]["hint"]
    return refusal["details"]["correctCall"]["tool"] == "continue_workflow"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.invariant("database-crash-keeps-acknowledged")
def test_what_was_acknowledged_survives_a_crash_of_postgresql(
    durable: Cluster, url: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their calls share a transaction: each of them is there whole, or was refused."""
    assert url
    seed, chance = seeded()
    project_with_line(tmp_path, steps=2_000)
    with Up(home, workspace=tmp_path) as up:
        agents = [HttpAgent(up, number) for number in range(AGENTS)]
        for _ in range(ROUNDS):
            working = AtWork(agents)
            working.wait_for(chance.randrange(4 * AGENTS))
            time.sleep(chance.uniform(0, 0.005))
            durable.kill()
            working.join()
            durable.start()
            with closing(open_app(home)) as app:
                for agent in agents:
                    check(app, agent.session, agent.acknowledged)
        assert all(not agent.hand_in()["isError"] for agent in agents)

    refusals = [refusal for agent in agents for refusal in agent.refusals]
    with capsys.disabled():
        print(
            f"\nkill -9 of PostgreSQL under 8 agents: {ROUNDS} rounds"
            f" (INTERLOCK_SEED={seed}), {len(refusals)} calls refused,"
            f" {acknowledged_by(agents)} advances acknowledged"
        )
    assert all(is_plain(refusal) for refusal in refusals)
    assert len(refusals) == ROUNDS * AGENTS
    assert not any(agent.lost for agent in agents), "the server itself went on"
