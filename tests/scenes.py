"""Scenes that several tests begin with: workflows, keys, plans and runs."""

import os
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.runs.advance import advance
from interlock.app.runs.rehydrate import rehydrate
from interlock.app.runs.start import StartRequest, start
from interlock.app.runs.submission import Output, Submission, parse_submission
from interlock.core import ids
from interlock.core.canonical import Json
from interlock.core.explanation import Code
from interlock.core.ids import BlobRef, RunId, SessionId, StepId, WorkflowId
from interlock.core.refusal import Refusal
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.events import OutputAppended, RunStarted, SessionCreated
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.tokens import SigningKey
from interlock.core.workflow.compiled_workflow import PinnedWorkflow
from interlock.core.workflow.compiler import compile_workflow
from interlock.core.workflow.definition import Step, Workflow

_numbers = count(1)
KEY = SigningKey(7, b"k" * 32, "current")
SESSION = SessionId("ses_0000000000000001")
RUN = ids.run_id(bytes(8))
ROOT = ids.node_id(bytes(8))


def linear(steps: int = 3, workflow_id: str = "line") -> Workflow:
    return Workflow(
        id=WorkflowId(workflow_id),
        name="A line",
        description="Steps one after the other",
        version="1.0.0",
        steps=tuple(
            Step(StepId(f"step-{n}"), f"Step {n}", f"Do the thing number {n}.")
            for n in range(1, steps + 1)
        ),
    )


def refusal_code(outcome: object) -> Code:
    """The code of a refusal that has no type of its own."""
    assert isinstance(outcome, Refusal), outcome
    return outcome.explain().code


def pinned(steps: int = 3) -> PinnedWorkflow:
    return compile_workflow(linear(steps))


def install(app: App, workspace: Path, workflow: Workflow) -> None:
    """Put a workflow into a project."""
    assert isinstance(app, App)
    directory = workspace / ".interlock" / "workflows"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{workflow.id}.json").write_bytes(msgspec.json.encode(workflow))


def started(
    app: App, workspace: Path, goal: str = "", *, steps: int = 3, **more: Any
) -> RenderedAnswer:
    """A run of a line of steps, at its first. Each has a goal of its own: starts are idempotent."""
    install(app, workspace, linear(steps))
    goal = goal or f"Try it {next(_numbers)}"
    caller = local_caller(app, workspace, session=more.pop("session", None))
    answered = start(app, StartRequest(WorkflowId("line"), goal, caller, **more))
    assert isinstance(answered, RenderedAnswer)
    return answered


def shown(app: App, token: str) -> RenderedAnswer:
    """The answer to a token without output."""
    answered = rehydrate(app.reader, app.keyring, app.pinned_workflow, token=token)
    assert isinstance(answered, RenderedAnswer)
    return answered


def output(notes: str = "", *artifacts: Any, context: dict[str, Json] | None = None) -> Submission:
    """What an agent submits."""
    taken = parse_submission(Output(notes, artifacts), context)
    assert isinstance(taken, Submission)
    return taken


def handed_in(app: App, before: RenderedAnswer, notes: str = "done") -> RenderedAnswer:
    """The answer to submitting the pending step of `before`."""
    answered = advance(app, before.answer.continue_token, output(notes))
    assert isinstance(answered, RenderedAnswer)
    return answered


def run_in(session: SessionId) -> RunId:
    """The run with which `opening` begins a session."""
    return RUN if session == SESSION else RunId(session.replace("ses_", "run_"))


def opening(session: SessionId = SESSION) -> Plan:
    """The smallest plan that makes a session."""
    drafts = (
        EventDraft(f"session:{session}", SessionCreated("/work")),
        EventDraft(
            f"run:{session}",
            RunStarted(WorkflowId("line"), "1.0.0", pinned().hash, 3, "Try it"),
            run_in(session),
        ),
    )
    return plan(Stream(session), drafts, blobs={}, at_ms=1_000)


def after(previous: Plan) -> Stream:
    """The stream as it is once `previous` has been written."""
    version = previous.expected_version + len(previous.links)
    runs = {run.run: run for run in previous.runs}
    return Stream(previous.session, version, previous.end, previous.head, runs)


def noting(stream: Stream, *notes: str, blobs: dict[BlobRef, bytes] | None = None) -> Plan:
    """A plan with one event for each of `notes`."""
    drafts = [
        EventDraft(
            f"note:{note}",
            OutputAppended(ids.first_attempt(ROOT), note),
            run_in(stream.session),
            ROOT,
        )
        for note in notes
    ]
    return plan(stream, drafts, blobs=blobs or {}, at_ms=2_000)


def random_session() -> SessionId:
    return ids.session_id(os.urandom(ids.RANDOM_BYTES))


class SettableClock:
    def __init__(self, at_ms: int = 1_000_000) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        return self.at_ms
