"""A conversation that is lost after any step loses nothing of what was submitted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App
from interlock.core import canonical
from interlock.core.workflow.compiled_workflow import CompiledLoop, CompiledWorkflow
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.bundled.driver import Answer, Driver, Params
from tests.bundled.test_bundled import driver_of, each, entry_of, ways_of
from tests.mcp.agent import Agent

NOTES_LENGTH = 2_048
GAPS = [
    {"kind": "gap", "severity": "warning", "summary": f"heron {n} not counted".ljust(450, ".")}
    for n in (1, 2, 3)
]
"""Submitted with the first step: together too large to be shown with its notes."""
SLICES = [{"title": f"Lay plank {n}", "check": f"test-plank-{n}"} for n in (1, 2, 3)]


class HandedIn(msgspec.Struct, frozen=True):
    step: str
    notes: str
    artifacts: tuple[str, ...]


class LongRun:
    """One run with long notes, and everything that was submitted on the way."""

    def __init__(self, driver: Driver, workflow: CompiledWorkflow, goal: str) -> None:
        self._driver = driver
        self._workflow = workflow
        self._steps = {str(step.id): (step, loops) for step, loops in workflow.steps_with_loops()}
        self.goal = goal
        self.handed_in: list[HandedIn] = []
        self.values: dict[str, Any] = {one.name: f"any {one.name}" for one in workflow.inputs}

    def points(self) -> Iterator[Answer]:
        """Do step after step, and yield the answer wherever one is pending or the run ended."""
        answer = self._driver.start(self._workflow.id, goal=self.goal, context=self.values)
        while not answer["isComplete"]:
            answer = self._hand_in(answer)
            while "approval" in answer:
                answer = self._driver.go_on(answer)
            yield answer

    def _hand_in(self, answer: Answer) -> Answer:
        params = self._with_long_notes(self._driver.output_for(answer), answer)
        following = self._driver.call(params)
        if following["kind"] == "blocked":
            return self._hand_in(following)
        output = params["output"]
        artifacts = tuple(canonical.encode(one).decode() for one in output.get("artifacts", ()))
        step = answer["pending"]["stepId"]
        self.handed_in.append(HandedIn(step, output["notesMarkdown"], artifacts))
        self.values |= params.get("context", {})
        return following

    def _with_long_notes(self, params: Params, answer: Answer) -> Params:
        output, number = params["output"], len(self.handed_in)
        words = " ".join(f"{answer['pending']['stepId']}/{number}.{n}" for n in range(300))
        notes = f"{output.get('notesMarkdown', '')}\n{words}"[:NOTES_LENGTH].strip()
        artifacts = [*output.get("artifacts", ()), *([] if self.handed_in else GAPS)]
        params["output"] = {**output, "notesMarkdown": notes, "artifacts": artifacts}
        if "slices" in params.get("context", {}):
            params["context"]["slices"] = SLICES
        return params

    def kept(self) -> Iterator[str]:
        """The newest notes of each step that is kept."""
        newest = {one.step: one.notes for one in self.handed_in}
        return (notes for name, notes in newest.items() if self._steps[name][0].keep)

    def item_fields(self, answer: Answer) -> Iterator[str]:
        """The fields of the items that the loops around the pending step are at."""
        for loop in self._loops_around(answer):
            if loop.kind == "forEach" and answer["pending"]["loop"]["id"] == loop.id:
                item = self.values[loop.items][answer["pending"]["loop"]["iteration"] - 1]
                yield from item.values()

    def _loops_around(self, answer: Answer) -> tuple[CompiledLoop, ...]:
        return self._steps[answer["pending"]["stepId"]][1] if answer["pending"] else ()


@each
def test_a_new_conversation_is_given_all_that_was_handed_in(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    workflow = entry_of(app, name).pinned.workflow
    for number, way in enumerate(ways_of(workflow)):
        driver = driver_of(app, Agent(McpProtocol(app, TOOLS)), name, way)
        run = LongRun(driver, workflow, f"Cross the river by way {number}")
        for answer in run.points():
            check_break(app, run, answer)


def check_break(app: App, run: LongRun, before: Answer) -> None:
    agent = Agent(McpProtocol(app, TOOLS))  # a new conversation, which knows nothing
    found = agent.call("resume_session", {"workspacePath": str(Path.cwd())})
    call = found["structuredContent"]["candidates"][0]["nextCall"]
    assert call["tool"] == "continue_workflow"
    result = agent.call(call["tool"], call["params"])
    answer, text = result["structuredContent"], shown_text(found) + shown_text(result)

    assert answer["pending"] == before["pending"], "it is the same place"
    assert f"Goal: {run.goal}" in text
    assert [notes for notes in run.kept() if notes not in text] == []
    lines = [f"- {key}: {canonical.encode(one).decode()}" for key, one in run.values.items()]
    assert [line for line in lines if line not in text] == []
    prompt = answer["pending"]["prompt"] if answer["pending"] else ""
    assert [field for field in run.item_fields(before) if field not in prompt] == []
    assert [gap for gap in GAPS if f"(warning): {gap['summary']}" not in text] == []
    read = "\n".join((text, *read_left_out(agent, answer)))
    missing = [
        (one.step, part[:60])
        for one in run.handed_in
        for part in (one.notes, *one.artifacts)
        if part not in read
    ]
    assert missing == []


def read_left_out(agent: Agent, answer: Answer) -> Iterator[str]:
    """What the calls show that an answer names for what it leaves out, and theirs in turn."""
    pending, seen = [one["step"] for one in answer.get("leftOut", ())], set[str]()
    while pending:
        step = pending.pop()
        if step in seen:
            continue
        seen.add(step)
        token = answer["continueToken"]
        params = {"continueToken": token, "intent": "rehydrate", "step": step}
        result = agent.call("continue_workflow", params)
        yield shown_text(result)
        pending += [one["step"] for one in result["structuredContent"].get("leftOut", ())]


def shown_text(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]
