"""Runs of a long line of steps, for measuring."""

import os
import time
from itertools import count
from pathlib import Path

import msgspec

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.runs.advance import advance
from interlock.app.runs.start import StartRequest, start
from interlock.app.runs.submission import Output, Submission, parse_submission
from interlock.core import ids
from interlock.core.ids import StepId, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.session import start_run as beginning
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.decide import PlannedReply
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.start_run import NewRun
from interlock.core.tokens import SigningKey
from interlock.core.workflow.compiled_workflow import PinnedWorkflow
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


def begin(app: App, workspace: Path, session: str | None = None) -> RenderedAnswer:
    goal = f"Measure it {next(_numbers)}"
    caller = local_caller(app, workspace, session=session)
    answered = start(app, StartRequest(WorkflowId("line"), goal, caller))
    assert isinstance(answered, RenderedAnswer)
    return answered


def notes(number: int) -> str:
    """500 bytes, no two alike."""
    return f"{number}: ".ljust(500, "abcdefghij"[number % 10])


def advance_in(app: App, before: RenderedAnswer, number: int) -> RenderedAnswer:
    taken = parse_submission(Output(notes(number)), None)
    assert isinstance(taken, Submission)
    answered = advance(app, before.answer.continue_token, taken)
    assert isinstance(answered, RenderedAnswer)
    return answered


def pinned_line(app: App, workspace: Path) -> PinnedWorkflow:
    entries, _ = app.catalogue.entries(workspace)
    return next(entry.pinned for entry in entries if entry.workflow.id == WorkflowId("line"))


def plan_of_start(pinned: PinnedWorkflow, workspace: Path, goal: str, key: SigningKey) -> Plan:
    """What a start appends, without what comes before it."""
    given = NewRun(
        stream=Stream(ids.session_id(os.urandom(8))),
        run=ids.run_id(os.urandom(8)),
        root=ids.node_id(os.urandom(8)),
        goal=goal,
        workspace=str(workspace),
        context={},
        preferences=Preferences(),
        observation=None,
    )
    decided = beginning.start(given, pinned, key=key, at_ms=time.time_ns() // 10**6)
    assert isinstance(decided, PlannedReply), "a plain workflow starts"
    return decided.plan
