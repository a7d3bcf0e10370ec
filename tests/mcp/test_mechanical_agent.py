"""An agent that knows nothing and fills in only blanks gets through every workflow there is."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.blanks import fill
from tests.core.workflow.test_foreign_schema import KNOWN, ForeignFile
from tests.core.workflow.workflow_samples import encoded
from tests.effort import scale
from tests.mcp.agent import Agent, prefer

FOREIGN = Path(__file__).parents[1] / "foreign"
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


def go_through(agent: Agent, workflow: str) -> tuple[dict[str, Any], set[str], set[str]]:
    """The last answer of a run, the steps that were shown, and the parts that were skipped."""
    start = {"workflowId": workflow, "goal": f"Try it {next(_numbers)}"}
    result = agent.call("start_workflow", start)
    for _ in range(3):
        if not result["isError"]:
            break
        call = result["structuredContent"]["details"]["correctCall"]
        result = agent.call(call["tool"], fill(call["params"]))
    assert not result["isError"], result["content"][0]["text"]
    answer: dict[str, Any] = result["structuredContent"]
    shown: set[str] = set()
    skipped: set[str] = set()
    for _ in range(CALLS_MAX):
        skipped |= {part["stepId"] for part in answer.get("skipped", ())}
        if answer["isComplete"] or "approval" in answer:
            return answer, shown, skipped
        shown.add(answer["pending"]["stepId"])
        call = answer["nextCall"]
        answer = agent.ok(call["tool"], **fill(call["params"]))
    raise AssertionError(f"{workflow} does not come to an end")


def assert_ended(answer: dict[str, Any]) -> None:
    if "approval" not in answer:
        progress = answer["progress"]
        assert progress["done"] + progress["skipped"] == progress["of"]


@pytest.mark.parametrize("path", sorted(FOREIGN.glob("*.json")), ids=lambda path: path.stem)
def test_workflows_of_another_engine(agent: Agent, path: Path) -> None:
    content = path.read_bytes()
    compiled = compile_content(content, KNOWN)
    if not isinstance(compiled, Compilation):
        pytest.skip("it has defects of its own")
    put(content, path.stem)
    compiled_workflow = compiled.pinned.workflow

    answer, shown, skipped = go_through(agent, compiled_workflow.id)

    assert_ended(answer)
    for step, loops in compiled_workflow.steps_with_loops():
        names = {step.id, *(loop.id for loop in loops)}
        assert step.id in shown or names & skipped or "approval" in answer, step.id


def test_workflows_over_the_whole_foreign_schema(agent: Agent) -> None:
    for seed in range(scale(60)):
        document = ForeignFile(seed).document
        if not isinstance(compile_content(encoded(document)), Compilation):
            continue  # it calls a routine that is not here
        document["id"] = f"wr.made-{seed}"
        put(encoded(document), f"made-{seed}")

        answer, _, _ = go_through(agent, f"wr.made-{seed}")

        assert_ended(answer)
