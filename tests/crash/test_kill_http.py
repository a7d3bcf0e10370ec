"""kill -9 of a server with many calls in flight: what was acknowledged to anybody is there."""

import http.client
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.context import open_app
from tests.crash import acknowledged
from tests.crash.acknowledged import check, project_with_line, seeded
from tests.server.calling import Up

ROUNDS = acknowledged.ROUNDS // 10
AGENTS = 8


class Agent:
    """Goes on from the last answer it got. What was not answered it says again, word for word."""

    def __init__(self, up: Up, number: int) -> None:
        self._client = up.client()
        begun = self._client.call("start_workflow", workflowId="line", goal=f"Survive {number}")
        self.session: str = begun["structuredContent"]["session"]
        self._token: str = begun["structuredContent"]["continueToken"]
        self.acknowledged: list[str] = []
        self.lost = 0

    def work(self) -> None:
        """Until the server dies."""
        while True:
            notes = f"step {len(self.acknowledged)}"
            output = {"notesMarkdown": notes}
            try:
                result = self._client.call(
                    "continue_workflow", continueToken=self._token, output=output
                )
            except (OSError, http.client.HTTPException):
                self._client.hang_up()
                self.lost += 1
                return
            assert not result["isError"], result
            self._token = result["structuredContent"]["continueToken"]
            self.acknowledged.append(notes)


def acknowledged_by(agents: list[Agent]) -> int:
    return sum(len(agent.acknowledged) for agent in agents)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.invariant("acknowledged-survives")
def test_what_was_acknowledged_over_http_survives_kill_9(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, chance = seeded()
    project_with_line(tmp_path, steps=2_000)
    up = Up(home, workspace=tmp_path)
    up.start()
    agents = [Agent(up, number) for number in range(AGENTS)]
    failures: list[BaseException] = []

    def work(agent: Agent) -> None:
        try:
            agent.work()
        except BaseException as error:  # noqa: BLE001 (raised again in the test's own thread)
            failures.append(error)

    for _ in range(ROUNDS):
        threads = [threading.Thread(target=work, args=[agent]) for agent in agents]
        for thread in threads:
            thread.start()
        enough = acknowledged_by(agents) + chance.randrange(4 * AGENTS)
        while acknowledged_by(agents) < enough and not failures:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.003))
        os.kill(up.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        with closing(open_app(home)) as app:
            for agent in agents:
                check(app, agent.session, agent.acknowledged)
        up.restart(signal.SIGKILL)
    assert up.stop() == 0

    with capsys.disabled():
        print(
            f"\nkill -9 over HTTP: {ROUNDS} rounds (INTERLOCK_SEED={seed}),"
            f" {sum(agent.lost for agent in agents)} calls in flight,"
            f" {acknowledged_by(agents)} advances acknowledged"
        )
    assert sum(agent.lost for agent in agents) == ROUNDS * AGENTS
