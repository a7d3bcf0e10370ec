"""The hand-over between runs: what was finished is offered once to the run that follows it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers.caller import Caller, Connection
from interlock.app.context import App
from interlock.app.runs import user_actions
from interlock.app.runs.resume import ResumeQuery, find_resumable_runs
from interlock.app.runs.start import StartRequest, start
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import RenderedAnswer
from tests.scenes import SettableClock, handed_in, install, linear


class Desk:
    """A repository on the branch `fix`, in which each run begins in a session of its own."""

    def __init__(self, app: App, root: Path) -> None:
        self.clock = SettableClock()
        self.app, self.root, self.count = msgspec.structs.replace(app, clock=self.clock), root, 0
        subprocess.run(["git", "init", "-qb", "fix", str(root)], check=True)
        for name, tag in (
            ("diagnosis", "debugging"),
            ("coding", "coding"),
            ("tour", "learning"),
        ):
            install(app, root, msgspec.structs.replace(linear(1, name), tags=(tag,)))

    def begin(self, workflow: str, session: str | None = None) -> RenderedAnswer:
        self.count += 1
        self.clock.at_ms += 1_000
        caller = Caller(
            surface="mcp",
            actor="user",
            workspace=self.root,
            connection=Connection(f"client {self.count}"),
            session=session,
        )
        goal = f"{workflow} {self.count}"
        answered = start(self.app, StartRequest(WorkflowId(workflow), goal, caller))
        assert isinstance(answered, RenderedAnswer), answered
        return answered

    def finish(self, run: RenderedAnswer, notes: str) -> None:
        self.clock.at_ms += 1_000
        assert handed_in(self.app, run, notes).answer.is_complete


@pytest.fixture
def desk(app: App, tmp_path: Path) -> Desk:
    return Desk(app, tmp_path)


def offers(run: RenderedAnswer) -> list[str]:
    assert run.answer.warnings == ()
    return [text for text in run.answer.notices if text.startswith("You can build on")]


def test_a_finished_diagnosis_is_offered_once_to_the_run_that_follows_on_its_branch(
    desk: Desk,
) -> None:
    diagnosis = desk.begin("diagnosis")
    desk.finish(diagnosis, "The cache is never cleared.")

    following = desk.begin("coding")

    assert following.session != diagnosis.session
    (offer,) = offers(following)
    assert "diagnosis run “diagnosis 1”" in offer
    assert "which ended with: The cache is never cleared." in offer
    assert f"\n{offer}" in following.text, "it is no warning"
    call: dict[str, Any] = json.loads(offer.partition("resume_session ")[2])
    query = ResumeQuery(desk.root, run=call["runId"])
    (found,) = find_resumable_runs(desk.app.reader, desk.app.keyring, query)
    assert found.row.session == diagnosis.session
    assert offers(desk.begin("coding")) == [], "the run before could already use it"


def test_what_is_abandoned_open_or_on_another_branch_is_not_offered(desk: Desk) -> None:
    given_up = desk.begin("diagnosis")
    user_actions.abandon(desk.app, given_up.run, "wrong")
    desk.begin("diagnosis")
    assert offers(desk.begin("coding")) == []
    done = desk.begin("diagnosis")
    desk.finish(done, "It is the clock.")

    subprocess.run(["git", "-C", str(desk.root), "switch", "-qc", "other"], check=True)
    assert offers(desk.begin("coding")) == []
    assert len(offers(desk.begin("coding", done.session))) == 1, "it is of the same session"


def test_only_a_workflow_that_continues_such_work_is_offered_it(desk: Desk) -> None:
    desk.finish(desk.begin("tour"), "I looked around.")
    desk.finish(desk.begin("coding"), "The export is written.")
    desk.finish(desk.begin("diagnosis"), "It is the clock.")

    assert offers(desk.begin("tour")) == []
    assert [offer.partition("“")[0] for offer in offers(desk.begin("coding"))] == [
        "You can build on the finished diagnosis run "
    ]
