"""A project in which something of everything has happened, and two more: a shed, and a checkout."""

import json
from pathlib import Path
from typing import Any

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.sessions.session_approvals import permit_call, request_approval
from interlock.core.ids import SessionId
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from interlock.core.session.session_approvals import request_wish, tool_call_wish
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.conversation import (
    ModelMessage,
    SpokenPart,
    ToolReply,
    ToolRequest,
    Usage,
)
from interlock.core.unattended.journal import ModelAnswered, ModelCalled, ToolEnded, ToolStarted
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent
from tests.app.coordination.team import Team, git
from tests.core.views.driven_runs import step
from tests.delivery_scene import DeliveryScene
from tests.forge_stub import StubForge
from tests.hooks.desk import HOST, Desk
from tests.scenes import SettableClock
from tests.server.stage import Stage
from tests.trigger_scene import TriggerScene
from tests.unattended_scene import JournalWriter, order, report, spend

SHIP: dict[str, Any] = {
    "id": "ship",
    "name": "Ship a change",
    "description": "From an idea to a change that is merged.",
    "version": "1.2.0",
    "steps": [
        step("look"),
        step("tell", validationCriteria={"type": "contains", "value": "Tests:"}),
        step("ask", requireConfirmation={"kind": "human_approval", "question": "Merge this?"}),
        step("merge"),
    ],
}
NIGHTLY = {
    "source": "cron",
    "schedule": "0 3 * * *",
    "zone": "Europe/Berlin",
    "workflow": "hello",
    "goal": "Tidy up",
    "limits": {"turns": 5},
}
CONFIG = '\n[gate.rules]\n"shell.unknown" = "advisory"\n'
HANDOFF = "## Decisions\n- Rows, not pages\n\n## Next Steps\n- Ask design\n"


class Shop:
    """`shop`, with agents at work in it."""

    def __init__(self, app: App, directory: Path, stub: StubForge, clock: SettableClock) -> None:
        self.app, self.clock = app, clock
        self.root = directory / "shop"
        self._make_project()
        self._talk()
        self._run_workflows()
        self._meet()
        self._work_unattended(directory, stub)
        (directory / "empty").mkdir()
        sessions = app.reader.all_sessions()
        runs = [run.run for session in sessions for run in app.reader.runs(session)]
        self.things = (*sessions, *runs)
        """The ids of sessions and runs, in the order in which they began."""
        clock.at_ms += 60_000

    def _make_project(self) -> None:
        workflows = self.root / ".interlock" / "workflows"
        workflows.mkdir(parents=True)
        (workflows / "ship.json").write_text(json.dumps(SHIP))
        (workflows / "oops.json").write_text("{}")
        theirs = self.root.with_name("theirs")
        theirs.mkdir()
        (theirs / "ship-it.json").write_text(json.dumps({**SHIP, "id": "ship-it"}))
        git(self.root, "init", "-q", "-b", "main")
        opt_in(self.root, "standard")
        with (self.root / ".interlock" / "config.toml").open("a") as config:
            config.write(CONFIG)
        (self.root / "HANDOFF.md").write_text(HANDOFF)
        (self.root / "page.py").write_text("rows = 1\n")
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "first")

    def _talk(self) -> None:
        """A conversation in a client, whose hooks tell what its agent does."""
        desk = Desk(self.app.home, self.root)
        desk.begin()
        desk.tool("Write", file_path="page.py")
        desk.mode("coding")
        desk.tool("Bash", command="make test")
        ran: dict[HookEvent, str] = {"post-tool": "make test", "tool-failed": "make prove"}
        for event, command in ran.items():
            payload = {
                "session_id": desk.session,
                "cwd": str(self.root),
                "tool_name": "Bash",
                "tool_input": {"command": command},
            }
            run_hook(HOST, event, self.app.home, json.dumps(payload).encode())
        (session,) = self.app.reader.all_sessions()
        self.session = SessionId(session)

    def _run_workflows(self) -> None:
        stage = Stage(self.app, self.root)
        gaps = [
            {"kind": "gap", "severity": severity, "summary": summary}
            for severity, summary in (("critical", "No tests"), ("warning", "No CSV"))
        ]
        for goal in ("Count the rows", "Export the list", "Search by name", "Draw the logo"):
            self.clock.at_ms += 60_000
            looked = stage.start("ship", goal, sessionId=self.session)
            waits = stage.go_on(looked, f"{goal}: looked at `page.py`.", artifacts=gaps)
            gaps = []
            stage.call(
                "checkpoint_workflow",
                continueToken=waits["continueToken"],
                notesMarkdown="Half of it.",
            )
            waits = stage.go_on(stage.go_on(waits, "Done."), "Tests: 12 passed.")
            stage.go_on(waits, "Will merge 3 commits.")
        for goal in ("Paint the shop", "Print a sign"):
            blocked = stage.go_on(stage.start("ship", goal, sessionId=self.session), "Looked.")
            for _ in range(BLOCKED_IN_ROW_MAX):
                blocked = stage.go_on(blocked, "Done.")
        begun = stage.start("hello", "Say hello", sessionId=self.session)
        stage.go_on(begun, "One way.")
        stage.go_on(begun, "Another way.")
        wish = tool_call_wish("Bash", {"command": "make"}, str(self.root), title="Calls `Bash`")
        permit_call(self.app, self.session, wish)
        self.clock.at_ms += 60_000
        request_approval(self.app, self.session, request_wish("Rewrite it", "1. Drop it", ""))

    def _meet(self) -> None:
        """Ana works on the same project."""
        team = Team(self.app, self.root)
        team.clock.at_ms = self.clock.at_ms
        team.join("Ana", "checkout")
        team.join("Bo")
        team.reserve("Ana", "src/**")
        team.send("Ana", "overseer", "May I go on?")
        team.send("Ana", "overseer", "The build is red")
        (self.root / "src").mkdir()
        (self.root / "src" / "a.py").write_text("x\n")
        git(self.root, "add", "src")

    def _work_unattended(self, directory: Path, stub: StubForge) -> None:
        delivery = DeliveryScene(self.app, directory, stub)
        forge = (self.app.home / "config.toml").read_text()
        triggers = TriggerScene(directory, home=self.app.home, forges=forge)
        triggers.write(nightly=NIGHTLY)
        self.clock.at_ms += 60_000
        delivery.do_work(delivery.wish())
        self.clock.at_ms += 60_000
        session = order(self.app, triggers.repository)
        report(self.app, session, UnattendedMoved("working", spend(3), level="workspace"))
        writer = JournalWriter(self.app, session)
        asked = ToolRequest("c1", "Bash", json.dumps({"command": "make"}))
        said = ModelMessage((SpokenPart("I build it."), asked))
        writer.write(ModelCalled("d", 1), ModelAnswered(said, "tools", Usage(10, 5), 40_000))
        writer.write(ToolStarted("c1", "Bash"))
        writer.write(ToolEnded(ToolReply("c1", "Bash", "built"), 20, 0))
        report(self.app, session, UnattendedMoved("parked", spend(4), "limit", "4 turns are spent"))
        self.clock.at_ms += 60_000
        order(self.app, triggers.repository, "Paint it")
        trust_checkout(self.app.home, self.root.resolve(), at_ms=1)
