"""kill -9 at every durable point: the end is the same as if nothing had happened."""

import os
import random
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.sessions.lookup import load_run_graph
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import ModelCalled, StepBegun
from tests.driver.stage import Stage, call, git, line_script
from tests.effort import EFFORT, scale, seeded
from tests.postgres import Cluster

STEPS = 2
KILLED = ("-m", "tests.driver.killed_driver")
ROOT = os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[2])))


def work(number: int) -> list[dict[str, Any]]:
    """It writes a file, and looks whether that is so: the first may have been interrupted."""
    name = f"file-{number}.txt"
    return [
        call("Write", file_path=name, content=f"{number}\n"),
        call("Bash", command=f"test -f {name} || echo {number} > {name}"),
    ]


class Outcome(msgspec.Struct, frozen=True):
    """Everything that must not depend on whether somebody was killed."""

    graph: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    tree: str
    steps_begun: int


def outcome_of(stage: Stage, session: SessionId) -> Outcome:
    state = stage.wait_for(session, "done", "parked", "paused")
    assert (state.status, state.outcome) == ("done", "success"), state
    run = stage.app.reader.runs(session, latest=1)[-1]
    graph = load_run_graph(stage.app, run.run)
    nodes = tuple((node.kind, str(node.step_id)) for node in graph.nodes)
    tree = git(stage.repository, "rev-parse", f"{state.branch}^{{tree}}")
    entries = stage.entries(session)
    begun = len({entry.token for entry in entries if isinstance(entry, StepBegun)})
    return Outcome(nodes, tuple(stage.notes(session)), tree, begun)


def points_to_try(count: int, rng: random.Random, sample: int) -> list[int]:
    """All of them with time; otherwise some, the same ones each time."""
    if EFFORT == "long":
        return list(range(1, count + 1))
    return sorted(rng.sample(range(1, count + 1), k=scale(sample)))


class Expectation(msgspec.Struct, frozen=True):
    outcome: Outcome
    points: int
    calls: int


def play_undisturbed(stage: Stage) -> Expectation:
    stage.play(line_script(STEPS, work=work))
    session = stage.order_line(STEPS, goal="undisturbed")
    driver = stage.start_driver(*KILLED, "0", PYTHONPATH=ROOT)
    outcome = outcome_of(stage, session)
    driver.end()
    points = int((stage.home / "points").read_text())
    assert points > 40, "each entry and each call has two points"
    return Expectation(outcome, points, len(stage.model_calls()))


def check_end(
    stage: Stage, session: SessionId, expected: Expectation, *, asked: int, repeats: int
) -> None:
    """The end is the same, and all calls to the model are in the journal and in the cost.

    `asked`: how often the model was asked before this session.
    """
    assert outcome_of(stage, session) == expected.outcome
    own = len(stage.model_calls()) - asked
    called = sum(isinstance(entry, ModelCalled) for entry in stage.entries(session))
    assert own <= called <= own + repeats, "a call is written down before it is made"
    assert expected.calls <= own <= expected.calls + repeats
    if called > expected.calls:
        assert stage.state(session).spent.usage.is_estimated, "the lost call is paid"


@pytest.mark.slow
@pytest.mark.invariant("unattended-goes-on")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["driver", "server"])
def test_whoever_is_killed_at_whichever_point_the_end_is_the_same(
    tmp_path: Path, victim: str
) -> None:
    seed, rng = seeded()
    print(f"seed {seed}")
    with Stage(tmp_path) as stage:
        expected = play_undisturbed(stage)
        for point in points_to_try(expected.points, rng, 3):
            print(f"{victim} killed at {point}")
            asked = len(stage.model_calls())
            session = stage.order(goal=f"{victim} killed at {point}")
            if victim == "server":
                pid = str(stage.server.pid)
                driver = stage.start_driver(*KILLED, str(point), pid, PYTHONPATH=ROOT)
                stage.server.wait()
                stage.server.start()
            else:
                killed = stage.start_driver(*KILLED, str(point), "0", PYTHONPATH=ROOT)
                assert killed.end(0, seconds=60) == -signal.SIGKILL
                driver = stage.start_driver()

            check_end(stage, session, expected, asked=asked, repeats=victim == "driver")
            driver.end()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_postgresql_may_be_killed_at_whichever_point(
    tmp_path: Path, durable: Cluster, url: str
) -> None:
    assert url
    _, rng = seeded()
    with Stage(tmp_path) as stage:
        expected = play_undisturbed(stage)
        for point in points_to_try(expected.points, rng, 2):
            asked = len(stage.model_calls())
            session = stage.order(goal=f"PostgreSQL killed at {point}")
            driver = stage.start_driver(*KILLED, str(point), "-1", PYTHONPATH=ROOT)
            mark = stage.home / "at-point"
            stage.wait_until(mark.exists, f"point {point}")
            durable.kill()
            durable.start()
            mark.unlink()

            check_end(stage, session, expected, asked=asked, repeats=0)
            driver.end()
