"""Every kind of event is brought about through a surface, and every one can be said in words."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from interlock.agents.hosts import claude_code, codex
from interlock.agents.hosts.host import Host
from interlock.app.context import App
from interlock.app.protocol.end_request import SessionEnding, end_session
from interlock.app.unattended import orders
from interlock.app.unattended.orders import OrderedWork, OrderRequest, order_work
from interlock.cli import commands
from interlock.core.ids import WorkflowId
from interlock.core.session.events import SessionEvent, decode_envelope
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.order import DeliveryWish, Spent, UnattendedState
from interlock.core.views.events import event_summary
from interlock.core.workflow.definition import Verification
from interlock.core.workflow.passthrough import Assessment, Dimension, UserOnly
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent
from tests.blanks import fill
from tests.hooks.clients import attend
from tests.hooks.recordings import recorded
from tests.mcp.agent import Agent
from tests.scenes import install, linear

MISSING_FILE = """
[[protocol.requirements]]
id = "report"
level = "MUST"
step = "There is a report"
file = "missing.md"
"""
ARTIFACTS = [
    {"kind": "user_only", "resolution": "answered", "detail": "blue"},
    {
        "kind": "capability_observation",
        "capability": "web_browsing",
        "status": "available",
        "evidence": "opened a page",
    },
    {"kind": "workflow_divergence", "reason": "efficiency_skip", "summary": "Skipped a part"},
    {"kind": "gap", "severity": "warning", "summary": "No tests yet"},
]


TASKS_AND_SUBAGENT: dict[str, HookEvent] = {
    "codex-PostToolUse-update_plan": "post-tool",
    "codex-SubagentStart-explorer": "subagent-start",
    "codex-SubagentStop-explorer": "subagent-stop",
}
PLAN: dict[str, HookEvent] = {
    "claude-SessionStart-startup": "session-start",
    "claude-PostToolUse-ExitPlanMode-approved-auto": "post-tool",
}


def attend_session(app: App, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A session under a gate, through a hook and the command line."""
    assert commands.run_cli(["init"]) == 0
    payload = {"session_id": "host-1", "cwd": str(project), "source": "startup"}
    run_hook(codex.HOST, "session-start", app.home, msgspec.json.encode(payload))
    assert commands.run_cli(["session", "set-state", "--task", "T-1"]) == 0
    for number in range(11):
        assert commands.run_cli(["agent", "invoke", "qa", f"Part {number}"]) == 0
        assert commands.run_cli(["agent", "complete", "qa", f"Good {number}"]) == 0
    capsys.readouterr()
    assert commands.run_cli(["decision", "add", "Ship it", "--because", "good", "--json"]) == 0
    decision = json.loads(capsys.readouterr().out)["id"]
    assert commands.run_cli(["decision", "judge", decision, "approve", "--by", "qa"]) == 0
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "call-1"}
    content = msgspec.json.encode({**payload, **call})
    denied = run_hook(codex.HOST, "pre-tool", app.home, content).out.decode()
    approval = denied.partition("approvals grant ")[2].partition("`")[0]
    assert commands.run_cli(["approvals", "grant", approval]) == 0
    assert run_hook(codex.HOST, "pre-tool", app.home, content).out == b""
    assert commands.run_cli(["feature", "complete", "Export", "--reviewer", "qa"]) == 0
    assert "  (qa)" in capsys.readouterr().out
    approving = ["agent", "complete", "qa", "Good enough", "--verdict", "approve"]
    assert commands.run_cli(approving) == 0
    assert commands.run_cli(["session", "show"]) == 0
    assert "feature “Export” is complete: approve" in capsys.readouterr().out
    assert commands.run_cli(["note", "write", "Findings", "--content", "Good"]) == 0
    report(app, project, codex.HOST, TASKS_AND_SUBAGENT)
    waiver = ["session", "waive", "qaValidation", "--reason", "a trial"]
    assert commands.run_cli(waiver) == 0
    assert commands.run_cli(["session", "pause"]) == 0


def report(app: App, project: Path, host: Host, payloads: dict[str, HookEvent]) -> None:
    """Send recorded payloads in one conversation of a client."""
    for name, event in payloads.items():
        payload = recorded(name, project, session_id="host-1")
        run_hook(host, event, app.home, msgspec.json.encode(payload))


def hand_over(app: App, project: Path) -> None:
    """A session that leaves a hand-off and ends at the second try, and the next, which goes on.

    The jobs that run between the tries also deliver what unattended work has left.
    """
    assert commands.run_cli(["session", "resume"]) == 0
    assert commands.run_cli(["agent", "invoke", "analyst", "Look"]) == 0
    assert commands.run_cli(["agent", "complete", "analyst", "Half", "--handoff-to", "qa"]) == 0
    config = project / ".interlock" / "config.toml"
    text = config.read_text()
    (attended,) = app.reader.attended_sessions_in(str(project))
    patient = msgspec.structs.replace(app, waits_for_jobs=False)
    assert isinstance(end_session(patient, attended.session, "All"), SessionEnding)
    config.write_text(f"{text}{MISSING_FILE}")  # after it was checked, and before it was done
    command = [sys.executable, "-m", "interlock", "jobs", "run"]
    subprocess.run(command, check=True, timeout=60)
    config.write_text(text)
    assert commands.run_cli(["session", "end", "--summary", "All"]) == 0
    assert commands.run_cli(["session", "start"]) == 0
    assert commands.run_cli(["agent", "invoke", "qa", "Go on"]) == 0


def work_unattended(app: App, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Work that is ordered, controlled and spoken to on the command line, and reported on."""
    git = ["git", "-C", str(project), "-c", "user.name=Ana", "-c", "user.email=ana@localhost"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
    capsys.readouterr()
    order = ["run", "start", "everything", "--goal", "See to it", "--driver", "--json"]
    assert commands.run_cli([*order, "--model", "scripted:none.json"]) == 0
    session = json.loads(capsys.readouterr().out)["session"]
    assert commands.run_cli(["driver", "steer", session, "Mind the gap"]) == 0
    assert commands.run_cli(["driver", "limits", session, "--turns", "7"]) == 0
    moved = UnattendedMoved("parked", Spent(), "failed", "It was tried")
    assert isinstance(orders.record_move(app, session, moved), UnattendedState)
    assert commands.run_cli(["driver", "cancel", session]) == 0
    order_delivery(app, project)


def order_delivery(app: App, project: Path) -> None:
    """Work that is to be pushed, and is done without having named any file."""
    request = OrderRequest(WorkflowId("everything"), "Push it", project, "scripted:none.json")
    wanted = msgspec.structs.replace(request, delivery=DeliveryWish(("push",)))
    ordered = order_work(app, wanted, place="in a test")
    assert isinstance(ordered, OrderedWork)
    done = UnattendedMoved("done", Spent(), outcome="success")
    assert isinstance(orders.record_move(app, ordered.session, done), UnattendedState)


@pytest.mark.slow
@pytest.mark.invariant("every-event-has-an-emitter")
def test_every_kind_of_event_comes_through_a_surface(
    agent: Agent,
    app: App,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q", "-b", "main"], check=True)
    asks = msgspec.structs.replace(
        linear(2).steps[0], user_only=UserOnly("needs_user_choice", "Red or blue?")
    )
    judges = msgspec.structs.replace(
        linear(2).steps[1],
        assessment_refs=("ready",),
        require_confirmation={"kind": "human_approval"},
        verification=Verification("make check"),
    )
    ready = Assessment("ready", "Is it ready?", (Dimension("sure", "How sure", ("low", "high")),))
    everything = msgspec.structs.replace(
        linear(2, "everything"),
        steps=(asks, judges),
        capabilities={"web_browsing": "required"},
        assessments=(ready,),
    )
    install(app, tmp_path, everything)
    answer = agent.ok("start_workflow", workflowId="everything", goal="All kinds")
    assert answer["nextIntent"] == "await_user_confirmation"
    session, run = answer["introduction"]["session"], answer["introduction"]["run"]
    agent.ok("checkpoint_workflow", continueToken=answer["continueToken"], notesMarkdown="so far")
    for _ in range(10):
        answer = agent.ok("continue_workflow", continueToken=answer["continueToken"], output={})
        assert answer["kind"] == "blocked"
    assert commands.run_cli(["run", "unblock", run]) == 0
    assert commands.run_cli(["preferences", "set", run, "--risk-policy", "balanced"]) == 0
    answer = agent.ok(
        "continue_workflow",
        continueToken=answer["continueToken"],
        output={"notesMarkdown": "done", "artifacts": ARTIFACTS},
        context={"colour": "blue"},
    )
    (gap,) = answer["gaps"]
    closing = {"kind": "gap_resolution", "gapId": gap["id"], "how": "wrote them"}
    assessed = {"kind": "assessment", "dimensions": {"sure": "high"}}
    answer = agent.ok(
        "continue_workflow",
        continueToken=answer["continueToken"],
        output={"notesMarkdown": "done", "artifacts": [closing, assessed]},
    )
    assert answer["kind"] == "approval"
    assert commands.run_cli(["approvals", "grant", answer["approval"]["id"]]) == 0
    answer = agent.ok("continue_workflow", continueToken=answer["continueToken"])
    assert agent.ok("continue_workflow", **fill(answer["nextCall"]["params"]))["isComplete"]
    other = agent.ok("start_workflow", workflowId="everything", goal="Given up", sessionId=session)
    assert commands.run_cli(["run", "abandon", other["introduction"]["run"]]) == 0
    assert commands.run_cli(["session", "archive", session]) == 0
    attend_session(app, tmp_path, capsys)
    work_unattended(app, tmp_path, capsys)
    hand_over(app, tmp_path)
    attend(monkeypatch, claude_code.HOST)
    report(app, tmp_path, claude_code.HOST, PLAN)

    links = [link for one in app.reader.all_sessions() for link in app.reader.links(one)]
    events = [decode_envelope(link.body).event for link in links]
    assert {type(event) for event in events} == set(get_args(SessionEvent))
    assert all(map(event_summary, events))
