"""Sessions that were driven through the use cases, for views to look at."""

import json
from pathlib import Path
from typing import Any, Literal

from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.runs import approvals
from interlock.app.runs.advance import advance
from interlock.app.runs.checkpoint import checkpoint
from interlock.app.runs.rehydrate import rehydrate
from interlock.app.runs.start import StartRequest, start
from interlock.app.sessions.lookup import SessionView, show_session
from interlock.app.sessions.session_views import ViewedSession, read_nodes, view_session
from interlock.core.canonical import Json
from interlock.core.ids import BlobRef, NodeId, SessionId, WorkflowId
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.approve import ApprovalVerdict
from interlock.core.session.events import Envelope
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.views.run_nodes import RunNodes
from tests.scenes import output

GAP = {"kind": "gap", "severity": "warning", "summary": "No tests yet"}
AGAIN = {"kind": "loop_control", "decision": "continue"}
STOP = {"kind": "loop_control", "decision": "stop"}


def step(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "title": name.capitalize(), "prompt": f"Do {name}.", **fields}


def loop(name: str, *body: dict[str, Any], title: str = "", **rule: Any) -> dict[str, Any]:
    """Return a loop that the agent controls, unless `rule` says otherwise."""
    asked = {"type": "while", "maxIterations": 3, **rule}
    head = {"id": name, "type": "loop", "title": title or name.capitalize()}
    return {**head, "loop": asked, "body": [*body]}


def times(name: str, count: int, *body: dict[str, Any]) -> dict[str, Any]:
    """Return a loop with `count` passes."""
    return loop(name, *body, type="for", count=count, maxIterations=count)


class Driven:
    """A run of a workflow with these steps, and the token that the agent holds."""

    def __init__(self, app: App, workspace: Path, *steps: dict[str, Any], **fields: Any) -> None:
        document = {
            "id": "driven",
            "name": "Driven",
            "description": "For views",
            "version": "1.0.0",
            "steps": list(steps),
            **fields,
        }
        directory = workspace / ".interlock" / "workflows"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "driven.json").write_text(json.dumps(document))
        self.app = app
        asked = StartRequest(
            WorkflowId("driven"),
            goal="Drive it",
            caller=local_caller(app, workspace),
            context={"depth": None, "ready": None},  # nobody knows them
        )
        self._hold(start(app, asked))

    def hand_in(
        self,
        notes: str = "done",
        *artifacts: Any,
        token: str | None = None,
        context: dict[str, Json] | None = None,
    ) -> "Driven":
        taken = output(notes, *artifacts, context=context)
        return self._hold(advance(self.app, token or self.token, taken))

    def checkpoint(self, notes: str, token: str | None = None) -> None:
        assert isinstance(checkpoint(self.app, token or self.token, output(notes)), RenderedAnswer)

    def decide(self, verdict: Literal["granted", "denied"], reason: str = "") -> "Driven":
        """Answer the approval that is waited for, and go on where it leads."""
        assert self.answered.answer.approval
        name = self.answered.answer.approval.id
        approvals.answer(self.app, name, ApprovalVerdict(verdict, "user", reason))
        return self.shown()

    def shown(self) -> "Driven":
        app = self.app
        return self._hold(rehydrate(app.reader, app.keyring, app.pinned_workflow, token=self.token))

    def _hold(self, answered: object) -> "Driven":
        assert isinstance(answered, RenderedAnswer), answered
        self.answered = answered
        self.token = answered.answer.continue_token
        return self

    @property
    def session(self) -> SessionId:
        return self.answered.session

    @property
    def view(self) -> SessionView:
        found = show_session(self.app, self.session)
        assert isinstance(found, SessionView)
        assert found.health.state == "healthy"
        return found

    @property
    def envelopes(self) -> tuple[Envelope, ...]:
        return self.view.events

    @property
    def head(self) -> Head:
        return self.view.head

    @property
    def run(self) -> RunHead:
        return next(run for run in self.view.runs if run.run == self.answered.run)

    @property
    def tip(self) -> NodeId:
        assert self.run.tip is not None
        return self.run.tip

    @property
    def nodes(self) -> RunNodes:
        viewed = view_session(self.app, self.session)
        assert isinstance(viewed, ViewedSession)
        return read_nodes(self.app, viewed).of_run(self.run.run)

    def blobs(self, refs: tuple[BlobRef, ...]) -> dict[BlobRef, bytes]:
        return {ref: self.app.reader.blob(ref) for ref in refs}


def planned(app: App, workspace: Path) -> Driven:
    """Plan, with an approval; two deep steps that may be skipped; rounds of work; an end."""
    approval = {"kind": "human_approval", "question": "Is the plan good?"}
    deep = {"runCondition": {"var": "depth", "equals": "full"}}
    return Driven(
        app,
        workspace,
        step("plan", requireConfirmation=approval),
        step("deep", **deep),
        step("deeper", **deep),
        loop("rounds", step("work"), title="The rounds"),
        step("end"),
    )
