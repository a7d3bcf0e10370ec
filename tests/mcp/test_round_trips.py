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
        self._proxy = proxy
        self.client = StdioClient(home, workspace=project)
        self.client.initialize()

    def call(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], int]:
        """The answer, and the round trips that it took."""
        self._proxy.take_count()
        result = self.client.call(tool, **arguments)
        assert not result["isError"], result
        return result["structuredContent"], self._proxy.take_count()

    def hand_in(self, answer: dict[str, Any], notes: str, *artifacts: Any) -> Any:
        output = {"notesMarkdown": notes, "artifacts": list(artifacts)}
        return self.call("continue_workflow", continueToken=answer["continueToken"], output=output)


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
    connected.call("resume_session")
    yield connected
    connected.client.close()


def begin(agent: Agent, goal: str) -> Any:
    return agent.call("start_workflow", workflowId="trips", goal=goal)


def test_an_advance_is_one_read_and_one_append(agent: Agent) -> None:
    started, trips = begin(agent, "Count")
    assert trips <= 10, "it looks around, registers, and asks for the time"
    begin(agent, "Count something else")
    agent.call("continue_workflow", continueToken=started["continueToken"])

    second, trips = agent.hand_in(started, "The plan", GAP, {"kind": "note", "text": "x"})
    assert trips == 3, "a read, an append, and a look whether there is news"
    third, trips = agent.hand_in(second, "Built", GAP)
    assert trips <= 4, "notes that are quoted, and gaps, are read as well"
    again, trips = agent.hand_in(second, "Built", GAP)
    assert (again, trips) == (third, 2)
    _, trips = agent.hand_in(second, "Built otherwise")
    assert trips <= 4, "a branch is told of the other one"
    blocked, trips = agent.hand_in(third, "")
    assert trips <= 4
    _, trips = agent.hand_in(blocked, "Tested")
    assert trips <= 4


def test_showing_marking_and_finding_again_take_few_round_trips(agent: Agent) -> None:
    started, _ = begin(agent, "Count")
    second, _ = agent.hand_in(started, "The plan", {"kind": "note", "text": "x" * 3_000})

    for token in (started["continueToken"], second["continueToken"]):
        _, trips = agent.call("continue_workflow", continueToken=token)
        assert trips <= 4
    _, trips = agent.call(
        "checkpoint_workflow", continueToken=second["continueToken"], notesMarkdown="So far"
    )
    assert trips <= 4
    _, trips = agent.call(
        "checkpoint_workflow", continueToken=second["continueToken"], notesMarkdown="So far"
    )
    assert trips <= 4, "the same again"
    for arguments in ({}, {"query": "plan"}, {"query": "nothing of the kind"}):
        _, trips = agent.call("resume_session", **arguments)
        assert trips <= 5
    run = started["introduction"]["run"]
    _, trips = agent.call("resume_session", runId=run)
    assert trips <= 5


def test_a_run_that_waits_for_an_approval_takes_few_round_trips(agent: Agent) -> None:
    answer, _ = begin(agent, "Count")
    for notes in ("The plan", "Built", "Tested"):
        answer, _ = agent.hand_in(answer, notes)
    waits, trips = agent.hand_in(answer, "Checked")
    assert waits["approval"]
    assert trips <= 4

    _, trips = agent.call("continue_workflow", continueToken=waits["continueToken"])

    assert trips <= 5, "whether the deadline has passed is asked as well"


def test_a_server_that_was_started_anew_goes_on_with_few_round_trips(
    agent: Agent, proxy: CountingProxy, home: Path, project: Path
) -> None:
    started, _ = begin(agent, "Count")
    second, _ = agent.hand_in(started, "The plan")
    fresh = Agent(proxy, home, project)

    _, trips = fresh.hand_in(second, "Built")

    assert trips <= CONNECT + 8, "an advance, and once for a process who is here and what is new"
    other = Agent(proxy, home, project)
    _, trips = other.call("continue_workflow", continueToken=second["continueToken"])
    assert trips <= CONNECT + 8
    fresh.client.close()
    other.client.close()
