"""kill -9 at any moment of a real server over real pipes: what was acknowledged is there."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.context import open_app
from interlock.core.workflow.definition import STEPS_MAX
from tests.crash.acknowledged_steps import ROUNDS, check, project_with_line
from tests.crash.agents import CALLS_MAX, PipeAgent, last_words
from tests.effort import seeded

ROUNDS_TIMES_MAX = 5


def killed(agent: PipeAgent, chance: random.Random) -> bool:
    """Some answered calls, then one during which the server dies. True if it was in flight."""
    server = agent.server()
    for _ in range(chance.randrange(CALLS_MAX)):
        agent.advance(server)
    agent.post(server, chance)
    server.server.kill()
    answer = last_words(server)
    if answer is not None:
        agent.acknowledge(answer)
    return answer is None


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.invariant("acknowledged-survives")
def test_what_was_acknowledged_survives_kill_9(
    engine: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = ROUNDS if engine == "sqlite" else ROUNDS // 5  # starting takes twice as long there
    seed, chance = seeded()
    rounds_max = min(ROUNDS_TIMES_MAX * rounds, (STEPS_MAX - 1) // CALLS_MAX)
    project_with_line(tmp_path, steps=rounds_max * CALLS_MAX + 1)
    agent = PipeAgent(home, tmp_path)

    in_flight, played = 0, 0
    # Whether a kill hits a call is chance: on a busy machine it may take more of them.
    while played < rounds or (not in_flight and played < rounds_max):
        in_flight += killed(agent, chance)
        played += 1

    with capsys.disabled():
        print(
            f"\nkill -9, {engine}: {rounds} rounds (INTERLOCK_SEED={seed}), {in_flight} with a call"
            f" in flight, {len(agent.acknowledged)} advances acknowledged"
        )
    assert in_flight, "some rounds hit a call in flight"
    with closing(open_app(home)) as app:
        check(app, agent.session, agent.acknowledged)

    server = agent.server()
    agent.advance(server)
    assert server.close() == 0
