"""kill -9 at any moment of a real server over real pipes: what was acknowledged is there."""

import random
import statistics
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from interlock.app.context import open_app
from interlock.mcp.client import StdioClient
from tests.crash.acknowledged import ROUNDS, check, project_with_line, seeded

CALLS_MAX = 4


class LossyRun:
    """An agent that goes on from the last answer it got, whatever happens to its server."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.home, self.workspace = home, workspace
        self.acknowledged: list[str] = []
        self.seconds = [0.001]
        """How long answered calls took."""
        server = self.server()
        begun = server.call("start_workflow", workflowId="line", goal="Survive")
        self.session: str = begun["structuredContent"]["session"]
        self.token: str = begun["structuredContent"]["continueToken"]
        server.close()

    def server(self) -> StdioClient:
        client = StdioClient(self.home, workspace=self.workspace)
        client.initialize()
        return client

    @property
    def arguments(self) -> dict[str, object]:
        notes = f"step {len(self.acknowledged)}"
        return {"continueToken": self.token, "output": {"notesMarkdown": notes}}

    def acknowledge(self, result: dict[str, dict[str, str]]) -> None:
        self.acknowledged.append(f"step {len(self.acknowledged)}")
        self.token = result["structuredContent"]["continueToken"]

    def round(self, chance: random.Random) -> bool:
        """Some answered calls, then one during which the server dies. True if it was in flight."""
        server = self.server()
        for _ in range(chance.randrange(CALLS_MAX)):
            begun = time.perf_counter()
            self.acknowledge(server.call("continue_workflow", **self.arguments))
            self.seconds.append(time.perf_counter() - begun)
        server.post("tools/call", {"name": "continue_workflow", "arguments": self.arguments})
        # Before the call arrives, in the middle of it, or just after: sleeping takes longer than
        # asked, so that the later end of this lies beyond the answer.
        time.sleep(chance.uniform(0, 0.8 * statistics.median(self.seconds)))
        server.server.kill()
        assert server.server.stdout is not None
        last_words = server.server.stdout.read()
        server.kill()
        if not last_words.endswith(b"\n"):
            return True
        self.acknowledge(msgspec.json.decode(last_words)["result"])
        return False


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.invariant("acknowledged-survives")
def test_what_was_acknowledged_survives_kill_9(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, chance = seeded()
    project_with_line(tmp_path, steps=ROUNDS * CALLS_MAX + 1)
    run = LossyRun(home, tmp_path)

    in_flight = sum(run.round(chance) for _ in range(ROUNDS))

    with capsys.disabled():
        print(
            f"\nkill -9: {ROUNDS} rounds (INTERLOCK_SEED={seed}), {in_flight} with a call in"
            f" flight, {len(run.acknowledged)} advances acknowledged"
        )
    assert in_flight > ROUNDS // 2, "most rounds should hit a call in flight"
    with closing(open_app(home)) as app:
        check(app, run.session, run.acknowledged)

    server = run.server()
    run.acknowledge(server.call("continue_workflow", **run.arguments))
    assert server.close() == 0
