"""An agent that knows nothing and fills in only blanks gets through any foreign workflow."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.blanks import fill
from tests.core.workflow.test_foreign_schema import ForeignFile
from tests.core.workflow.workflow_samples import encoded
from tests.effort import scale
from tests.mcp.agent import Agent, prefer

CALLS_MAX = 1_500
_numbers = count(1)


@pytest.fixture
def agent(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.chdir(tmp_path)
    prefer({"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "aggressive"})
    return Agent(McpProtocol(app, TOOLS))


def put(workflow: bytes, name: str) -> None:
    directory = Path(".interlock/workflows")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_bytes(workflow)


def go_through(agent: Agent, workflow: str) -> dict[str, Any]:
    """Return the last answer of a run."""
    start = {"workflowId": workflow, "goal": f"Try it {next(_numbers)}"}
    result = agent.call("start_workflow", start)
    for _ in range(3):
        if not result["isError"]:
            break
        call = result["structuredContent"]["details"]["correctCall"]
        result = agent.call(call["tool"], fill(call["params"]))
    assert not result["isError"], result["content"][0]["text"]
    answer: dict[str, Any] = result["structuredContent"]
    for _ in range(CALLS_MAX):
        if answer["isComplete"] or "approval" in answer:
            return answer
        call = answer["nextCall"]
        answer = agent.ok(call["tool"], **fill(call["params"]))
    raise AssertionError(f"{workflow} does not come to an end")


def test_workflows_over_the_whole_foreign_schema(agent: Agent) -> None:
    for seed in range(scale(60)):
        document = ForeignFile(seed).document
        if not isinstance(compile_content(encoded(document)), Compilation):
            continue  # it calls a routine that is not here
        document["id"] = f"wr.made-{seed}"
        put(encoded(document), f"made-{seed}")

        answer = go_through(agent, f"wr.made-{seed}")

        if "approval" not in answer:
            progress = answer["progress"]
            assert progress["done"] + progress["skipped"] == progress["of"]
