"""How often a call waits for PostgreSQL: a database may be far away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.mcp.client import StdioClient
from tests.core.views.driven_runs import GAP, step
from tests.postgres import Cluster
from tests.postgres_proxy import CountingProxy

CONNECT = 4
"""To connect, to be known, to set our settings, and to look at the store and its keys."""


class Agent:
    """A client whose server has its store behind a proxy."""

    def __init__(self, proxy: CountingProxy, home: Path, project: Path) -> None:
        self._proxy, self.trips = proxy, 0
        self.client = StdioClient(home, workspace=project)
        self.client.initialize()

    def call(self, tool: str, *, trips_max: int, **arguments: Any) -> Any:
        """The answer, which may take so many round trips."""
        self._proxy.take_count()
        result = self.client.call(tool, **arguments)
        assert not result["isError"], result
        self.trips = self._proxy.take_count()
        assert self.trips <= trips_max, (tool, arguments)
        return result["structuredContent"]

    def begin(self, goal: str, trips_max: int = 10) -> Any:
        """To look around, to register, and to ask for the time takes several."""
        return self.call("start_workflow", trips_max=trips_max, workflowId="trips", goal=goal)

    def submit(
        self, answer: dict[str, Any], notes: str, *artifacts: Any, trips_max: int = 4
    ) -> Any:
        output = {"notesMarkdown": notes, "artifacts": list(artifacts)}
        return self.call(
            "continue_workflow",
            trips_max=trips_max,
            continueToken=answer["continueToken"],
            output=output,
        )


@pytest.fixture
def proxy(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingProxy]:
    url = cluster.fresh()
    with CountingProxy(url) as counting:
        monkeypatch.setenv("INTERLOCK_STORE", counting.url)
        yield counting
    cluster.give_back(url)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    kept = step("plan", keep=True)
    quoting = step("build", prompt="Build what {{notes.plan}} says.")
    asked = {"kind": "human_approval", "question": "Is it good?"}
    steps = [kept, quoting, step("test"), step("check", requireConfirmation=asked), step("end")]
    facts = {"id": "trips", "name": "Trips", "description": "To count", "version": "1.0.0"}
    directory = tmp_path / ".interlock" / "workflows"
    directory.mkdir(parents=True)
    (directory / "trips.json").write_text(json.dumps({**facts, "steps": steps}))
    return tmp_path


@pytest.fixture
def agent(proxy: CountingProxy, home: Path, project: Path) -> Iterator[Agent]:
    connected = Agent(proxy, home, project)
    connected.call("resume_session", trips_max=20)
    yield connected
    connected.client.close()


def test_an_advance_is_one_read_and_one_append(agent: Agent) -> None:
    started = agent.begin("Count")
    agent.begin("Count something else", trips_max=24)
    agent.call("continue_workflow", trips_max=4, continueToken=started["continueToken"])

    note = {"kind": "note", "text": "x"}
    second = agent.submit(started, "The plan", GAP, note)
    assert agent.trips == 3, "a read, an append, and a look whether there is news"
    # Notes that are quoted, gaps and other branches are read as well.
    third = agent.submit(second, "Built", GAP)
    assert (agent.submit(second, "Built", GAP), agent.trips) == (third, 2)
    agent.submit(second, "Built otherwise")
    blocked = agent.submit(third, "")
    agent.submit(blocked, "Tested")


def test_showing_marking_and_finding_again_take_few_round_trips(agent: Agent) -> None:
    started = agent.begin("Count")
    second = agent.submit(started, "The plan", {"kind": "note", "text": "x" * 3_000})

    for token in (started["continueToken"], second["continueToken"]):
        agent.call("continue_workflow", trips_max=4, continueToken=token)
    mark = {"continueToken": second["continueToken"], "notesMarkdown": "So far"}
    for _ in range(2):
        agent.call("checkpoint_workflow", trips_max=4, **mark)
    run = started["introduction"]["run"]
    for arguments in ({}, {"query": "plan"}, {"query": "nothing of the kind"}, {"runId": run}):
        agent.call("resume_session", trips_max=5, **arguments)


def test_a_run_that_waits_for_an_approval_takes_few_round_trips(agent: Agent) -> None:
    answer = agent.begin("Count")
    for notes in ("The plan", "Built", "Tested", "Checked"):
        answer = agent.submit(answer, notes)
    assert answer["approval"]

    # Whether the deadline has passed is asked as well.
    agent.call("continue_workflow", trips_max=5, continueToken=answer["continueToken"])


def test_a_restarted_server_continues_with_few_round_trips(
    agent: Agent, proxy: CountingProxy, home: Path, project: Path
) -> None:
    second = agent.submit(agent.begin("Count"), "The plan")
    fresh, other = (Agent(proxy, home, project) for _ in range(2))

    # An advance, and once for a process who is here, what is new, and whether the session is open.
    fresh.submit(second, "Built", trips_max=CONNECT + 9)
    token = second["continueToken"]
    other.call("continue_workflow", trips_max=CONNECT + 8, continueToken=token)
    fresh.client.close()
    other.client.close()
