"""Runs of a long line of steps, for measuring."""

from itertools import count
from pathlib import Path

import msgspec

from interlock.app.advance import advance
from interlock.app.context import App
from interlock.app.start import Start, start
from interlock.app.submission import Output, Taken, take
from interlock.core.ids import StepId, WorkflowId
from interlock.core.session.answer import Answered
from interlock.core.workflow.definition import Step, Workflow

_numbers = count(1)
PROMPT = "Look at the part of the code that this step is about, change it, and run its tests. "


def prepared(workspace: Path, *, steps: int) -> None:
    """A project with one workflow, `line`, of so many steps, each with a prompt of its own."""
    directory = workspace / ".interlock" / "workflows"
    directory.mkdir(parents=True, exist_ok=True)
    workflow = Workflow(
        id=WorkflowId("line"),
        name="A line",
        description="For measuring",
        version="1.0.0",
        steps=tuple(
            Step(StepId(f"step-{n}"), f"Step {n}", f"{n}: {PROMPT * 3}")
            for n in range(1, steps + 1)
        ),
    )
    (directory / "line.json").write_bytes(msgspec.json.encode(workflow))


def begin(app: App, workspace: Path) -> Answered:
    goal = f"Measure it {next(_numbers)}"
    answered = start(app, Start(WorkflowId("line"), goal=goal, workspace=workspace))
    assert isinstance(answered, Answered)
    return answered


def notes(number: int) -> str:
    """500 bytes, no two alike."""
    return f"{number}: ".ljust(500, "abcdefghij"[number % 10])


def advance_in(app: App, before: Answered, number: int) -> Answered:
    taken = take(Output(notes(number)), None)
    assert isinstance(taken, Taken)
    answered = advance(app, before.answer.continue_token, taken)
    assert isinstance(answered, Answered)
    return answered
