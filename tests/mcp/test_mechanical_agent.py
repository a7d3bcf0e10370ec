"""An agent that knows nothing and fills in only blanks gets through any foreign workflow."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.refusals import NoSuchRun
from interlock.app.runs import approvals
from interlock.app.runs.user_actions import find_run
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.events import TraceAppended, decode_envelope
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.workspace.projects.catalogue import BUNDLED_DIRECTORY
from tests.blanks import fill
from tests.core.workflow.test_foreign_schema import ForeignFile
from tests.core.workflow.workflow_samples import encoded
from tests.effort import sample, scale
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


def go_through(app: App, agent: Agent, workflow: str) -> tuple[str, dict[str, Any]]:
    """Return the run and its last answer. Whatever waits for an approval is approved."""
    start = {"workflowId": workflow, "goal": f"Try it {next(_numbers)}"}
    result = agent.call("start_workflow", start)
    for _ in range(3):
        if not result["isError"]:
            break
        call = result["structuredContent"]["details"]["correctCall"]
        result = agent.call(call["tool"], fill(call["params"]))
    assert not result["isError"], result["content"][0]["text"]
    answer: dict[str, Any] = result["structuredContent"]
    run: str = answer["introduction"]["run"]
    for _ in range(CALLS_MAX):
        if answer["isComplete"]:
            return run, answer
        if "approval" in answer:
            approvals.answer(app, answer["approval"]["id"], ApprovalVerdict("granted", "user"))
        call = answer["nextCall"]
        answer = agent.ok(call["tool"], **fill(call["params"]))
    raise AssertionError(f"{workflow} does not come to an end")


def assert_accounted_for(app: App, run_id: str, end: dict[str, Any]) -> None:
    """Every step was done, or skipped for a reason, or a gap tells what is left."""
    progress = end["progress"]
    assert progress["done"] + progress["skipped"] == progress["of"]
    match = find_run(app.reader, run_id)
    assert not isinstance(match, NoSuchRun)
    run, stream = match
    assert (run.steps_done, run.steps_skipped) == (progress["done"], progress["skipped"])
    envelopes = [decode_envelope(link.body) for link in app.reader.links(stream.session)]
    events = [envelope.event for envelope in envelopes if envelope.run == run.run]
    entries = [one for event in events if isinstance(event, TraceAppended) for one in event.entries]
    reasons = [one.why for one in entries if one.what in ("skipped", "loop_skipped", "loop_ended")]
    assert all(reasons), entries
    assert reasons or not progress["skipped"]
    assert len(end.get("gaps", ())) == run.gaps_open


SAMPLES = sorted(path for path in FOREIGN.glob("*.json"))
BUNDLED = sorted(path.stem for path in BUNDLED_DIRECTORY.glob("*.json"))


@pytest.mark.parametrize("workflow", BUNDLED)
def test_bundled_workflows(app: App, agent: Agent, workflow: str) -> None:
    run, end = go_through(app, agent, workflow)

    assert_accounted_for(app, run, end)


def test_samples_of_foreign_workflows(app: App, agent: Agent) -> None:
    names: list[str] = []
    for path in SAMPLES:
        put(path.read_bytes(), path.stem)
    for entry in agent.ok("list_workflows")["workflows"]:
        if entry["id"] not in BUNDLED:
            names.append(entry["id"])
    assert len(names) >= 8, "the others are files with errors"
    for name in sample(names, 5):
        run, end = go_through(app, agent, name)

        assert_accounted_for(app, run, end)


def test_workflows_over_the_whole_foreign_schema(app: App, agent: Agent) -> None:
    for seed in range(scale(60)):
        document = ForeignFile(seed).document
        if not isinstance(compile_content(encoded(document)), Compilation):
            continue  # it calls a routine that is not here
        document["id"] = f"wr.made-{seed}"
        put(encoded(document), f"made-{seed}")

        run, end = go_through(app, agent, f"wr.made-{seed}")

        assert_accounted_for(app, run, end)
