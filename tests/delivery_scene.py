"""Unattended work that is done and waits to be delivered: a real repository, remote and forge."""

from pathlib import Path
from typing import Any

import msgspec

from interlock.app.context import App
from interlock.app.runs.advance import advance
from interlock.app.unattended import driver_desk
from interlock.app.unattended.orders import OrderedWork, OrderRequest, order_work, state_of
from interlock.app.unattended.worktrees import make_worktree
from interlock.core.canonical import Json
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.announcements import Announcement, decode_announcement
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.delivery import DeliveryState
from interlock.core.unattended.order import DeliveryWish, Spent, UnattendedState
from interlock.durable.delivery import DELIVER
from interlock.durable.job import JobContext
from tests.forge_stub import StubForge
from tests.scenes import install, linear, output
from tests.unattended_scene import MODEL, make_repository, report
from tests.workspace.git.test_state import run

FORGE = "ours"
SHOP = "team/shop"
GOAL = "Fix the export\n\nIt is cut off."
FILES = {"export.py": "rows = 1\n"}
VERDICT: dict[str, Json] = {
    "kind": "review_verdict",
    "verdict": "minor",
    "confidence": "high",
    "findings": [{"severity": "minor", "summary": "A name", "file": "export.py", "line": 1}],
    "summary": "It is good.",
}


def handoff(*files: str) -> dict[str, Json]:
    return {
        "kind": "coding_handoff",
        "keyDecisions": ["Count rows first"],
        "knownLimitations": ["No CSV"],
        "testsAdded": ["test_export"],
        "filesChanged": list(files),
    }


class DeliveryScene:
    """A repository with a remote, and a forge in the user's settings."""

    def __init__(self, app: App, directory: Path, stub: StubForge) -> None:
        self.app, self.stub = app, stub
        self.repository = make_repository(directory / "checkout")
        self.remote = directory / "remote.git"
        install(app, self.repository, linear(1))
        run(self.repository, "add", "-A")
        run(self.repository, "commit", "-q", "-m", "workflow")
        run(directory, "init", "-q", "--bare", "-b", "main", str(self.remote))
        run(self.repository, "remote", "add", "origin", str(self.remote))
        run(self.repository, "push", "-q", "origin", "main")
        token = directory / "forge-token"
        token.write_text(f"{stub.token}\n")
        section = f'[forges.{FORGE}]\nkind = "{stub.kind}"\nurl = "{stub.url}"\n'
        (app.home / "config.toml").write_text(f'{section}token_file = "{token}"\n')

    def wish(self, *parts: Any, **more: Any) -> DeliveryWish:
        return DeliveryWish(parts or ("push", "request", "comment"), FORGE, SHOP, **more)

    def do_work(
        self,
        wish: DeliveryWish,
        *,
        files: dict[str, str] | None = None,
        artifacts: tuple[Json, ...] | None = None,
        **changes: Any,
    ) -> SessionId:
        """Have the work done as a driver does it, up to its last report. Nothing is delivered."""
        files = FILES if files is None else files
        artifacts = (handoff(*files), VERDICT) if artifacts is None else artifacts
        request = OrderRequest(WorkflowId("line"), GOAL, self.repository, MODEL, delivery=wish)
        request = msgspec.structs.replace(request, **changes)
        ordered = order_work(self.app, request, place="in a test")
        assert isinstance(ordered, OrderedWork), ordered
        session, state = ordered.session, state_of(self.app, ordered.session)
        assert state is not None
        worktree, branch = make_worktree(self.app.home, session, state.order)
        shown = driver_desk.show_step(self.app, session, worktree)
        assert isinstance(shown, RenderedAnswer), shown
        advanced = advance(
            self.app, shown.answer.continue_token, output("All is done.", *artifacts)
        )
        assert isinstance(advanced, RenderedAnswer), advanced
        for name, text in files.items():
            (worktree / name).write_text(text)
        run(worktree, "add", "-A")
        run(worktree, "commit", "-q", "--allow-empty", "-m", "Fix the export")
        commit = run(worktree, "rev-parse", "HEAD")
        moved = UnattendedMoved("done", Spent(), outcome="success", commit=commit)
        place = {"worktree": str(worktree), "branch": branch}
        report(self.app, session, msgspec.structs.replace(moved, **place))
        return session

    def state(self, session: SessionId) -> UnattendedState:
        state = state_of(self.app, session)
        assert state is not None
        return state

    def delivery(self, session: SessionId) -> DeliveryState:
        delivery = self.state(session).delivery
        assert delivery is not None
        return delivery

    def announcement(self, session: SessionId) -> Announcement:
        """The announcement that starts the newest delivery."""
        found = [decode_announcement(one.content) for one in self.app.reader.outbox(limit=100)]
        return next(
            one
            for one in reversed(found)
            if one.topic == "unattended/deliver" and one.session_id == session
        )

    def run_job(self, session: SessionId, *, tries: int = 8) -> DeliveryState:
        """Run the steps of the job as an executor does, only without a pause between tries."""
        job, results = self.delivery(session).job, dict[str, Json]()
        for step in DELIVER.steps:
            context = JobContext(job, self.announcement(session), dict(results))
            for number in range(tries):
                try:
                    result = step.work(self.app, context)
                    break
                except OSError as failure:
                    if number + 1 == tries:
                        assert DELIVER.give_up is not None
                        DELIVER.give_up(self.app, context, str(failure))
                        return self.delivery(session)
            else:
                raise AssertionError("a step ends or fails")
            results[step.name] = msgspec.json.decode(msgspec.json.encode(result.value))
            if result.is_last:
                break
        return self.delivery(session)

    def pushed(self) -> list[str]:
        """The branches that were pushed, each with its commit."""
        listed = run(self.remote, "for-each-ref", "--format=%(refname:short) %(objectname)")
        return [line for line in listed.splitlines() if not line.startswith("main ")]
