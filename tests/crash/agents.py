"""Agents that go on from the last answer they got, whatever happens to their server or store."""

import http.client
import random
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.mcp.client import StdioClient
from tests.server.http_agent import Up

CALLS_MAX = 4


class PipeAgent:
    """Over real pipes. Its server may be another one for each call."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.home, self.workspace = home, workspace
        self.acknowledged: list[str] = []
        self._seconds = [0.001]
        """How long answered calls took."""
        server = self.server()
        begun = server.call("start_workflow", workflowId="line", goal="Survive")
        self.session: str = begun["structuredContent"]["introduction"]["session"]
        self._token: str = begun["structuredContent"]["continueToken"]
        server.close()

    def server(self) -> StdioClient:
        client = StdioClient(self.home, workspace=self.workspace)
        client.initialize()
        return client

    def advance(self, server: StdioClient) -> None:
        begun = time.perf_counter()
        self.acknowledge(server.call("continue_workflow", **self._arguments))
        self._seconds.append(time.perf_counter() - begun)

    def post(self, server: StdioClient, chance: random.Random) -> None:
        """A call, and a moment that it is in flight.

        Before it arrives, in the middle of it, or just after: sleeping takes longer than asked, so
        that the later end of this lies beyond the answer.
        """
        server.post("tools/call", {"name": "continue_workflow", "arguments": self._arguments})
        time.sleep(chance.uniform(0, 0.8 * statistics.median(self._seconds)))

    def acknowledge(self, result: dict[str, Any]) -> None:
        assert not result["isError"], result
        self.acknowledged.append(f"step {len(self.acknowledged)}")
        self._token = result["structuredContent"]["continueToken"]

    @property
    def _arguments(self) -> dict[str, object]:
        notes = f"step {len(self.acknowledged)}"
        return {"continueToken": self._token, "output": {"notesMarkdown": notes}}


class HttpAgent:
    """One of several at a server. What was not answered it says again, word for word."""

    def __init__(self, up: Up, number: int) -> None:
        self._client = up.client()
        begun = self._client.call("start_workflow", workflowId="line", goal=f"Survive {number}")
        self.session: str = begun["structuredContent"]["introduction"]["session"]
        self._token: str = begun["structuredContent"]["continueToken"]
        self.acknowledged: list[str] = []
        self.lost = 0
        self.refusals: list[dict[str, Any]] = []

    def go_to(self, up: Up) -> None:
        """From now on it asks another server."""
        self._client = up.client()

    def work(self) -> None:
        """Until the server dies, or refuses."""
        while True:
            try:
                result = self.hand_in()
            except (OSError, http.client.HTTPException):
                self._client.hang_up()
                self.lost += 1
                return
            if result["isError"]:
                self.refusals.append(result["structuredContent"])
                return

    def hand_in(self) -> dict[str, Any]:
        notes = f"step {len(self.acknowledged)}"
        result = self._client.call(
            "continue_workflow", continueToken=self._token, output={"notesMarkdown": notes}
        )
        if not result["isError"]:
            self._token = result["structuredContent"]["continueToken"]
            self.acknowledged.append(notes)
        return result


class AtWork:
    """Several agents, each in a thread, until something stops them."""

    def __init__(self, agents: Sequence[HttpAgent]) -> None:
        self._agents = agents
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._work, args=[agent]) for agent in agents]
        for thread in self._threads:
            thread.start()

    def wait_for(self, more: int) -> None:
        """Until so many more advances were acknowledged."""
        enough = acknowledged_by(self._agents) + more
        while acknowledged_by(self._agents) < enough and not self._failures:
            time.sleep(0.001)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        assert not self._failures, self._failures[0]

    def _work(self, agent: HttpAgent) -> None:
        try:
            agent.work()
        except BaseException as error:  # noqa: BLE001 (raised again in the test's own thread)
            self._failures.append(error)


def acknowledged_by(agents: Sequence[HttpAgent]) -> int:
    return sum(len(agent.acknowledged) for agent in agents)


def last_words(server: StdioClient) -> dict[str, Any] | None:
    """The answer to a call that was posted, if the server gave one before it ended."""
    assert server.server.stdout is not None
    line = server.server.stdout.read()
    server.kill()
    return msgspec.json.decode(line)["result"] if line.endswith(b"\n") else None
