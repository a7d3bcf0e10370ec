"""Every tool and command finds the same session, whatever kind it is and however it is called."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.app.callers.caller import Connection
from interlock.app.context import App
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.sessions.session_approvals import open_requests
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.session.events import DEPARTED
from interlock.core.session.state import SessionState
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.server.api import OPERATIONS
from interlock.server.api.sessions import ModeRequest, SessionParameters
from interlock.server.http_refusals import CONFLICT, status_of
from tests.app.callers.conversations import begun
from tests.cli.conftest import Terminal
from tests.mcp.agent import Agent
from tests.scenes import install, linear

KINDS = ("hooks", "no hooks", "no project", "two sessions", "http")


class Scene:
    """One session of a kind, and the agent that works in it."""

    def __init__(self, app: App, root: Path, kind: str, patch: pytest.MonkeyPatch) -> None:
        self.app, self.root, self.kind = app, root, kind
        install(app, root, linear())
        (root / ".git").mkdir()
        if kind != "no project":
            opt_in(root, "standard")
        self.agent = self.connect()
        if kind in ("hooks", "two sessions"):
            self.session = begun(app, root, "held")
            patch.setenv("CLAUDE_CODE_SESSION_ID", "held")
        if kind == "two sessions":
            begun(app, root, "another")
        if kind not in ("hooks", "two sessions"):
            self.session = self.start()

    def connect(self) -> Agent:
        connection = Connection("http:1") if self.kind == "http" else None
        return Agent(McpProtocol(self.app, TOOLS, connection=connection))

    def start(self, goal: str = "Paint the fence") -> str:
        answer = self.agent.ok(
            "start_workflow", workflowId="line", goal=goal, workspacePath=str(self.root)
        )
        self.token = answer["continueToken"]
        return answer["introduction"]["session"]

    def owner(self, identity: str) -> str:
        """The session that acts under this name."""
        board = read_board(self.app, open_desk(self.app, self.root))
        names = [one.id for one in board.identities_of(SessionId(self.session))]
        return self.session if identity in names else identity

    def asked(self, approval: str) -> str:
        (found,) = (
            x.session for x in open_requests(self.app.reader) if x.request.approval == approval
        )
        return found


def _approval(scene: Scene, named: dict[str, Any]) -> str:
    answer = scene.agent.ok("request_approval", title="Buy", content="all of it", **named)
    return scene.asked(answer["approval"])


def _note(scene: Scene, _: dict[str, Any]) -> str:
    scene.agent.ok("write_note", title="Red it is", content="- [decision] red")
    text = scene.agent.ok("read_note", identifier="Red it is")["text"]
    assert "session" in text, text
    return scene.session if scene.session in text else text


TOOL_CALLS: dict[str, Callable[[Scene, dict[str, Any]], str]] = {
    "session": lambda scene, named: scene.agent.ok("session", **named)["session"],
    "set": lambda scene, named: scene.agent.ok("session", task="T-1", **named)["session"],
    "mode": lambda scene, named: scene.agent.ok("session", mode="planning", **named)["session"],
    "record_decision": lambda scene, named: scene.agent.ok(
        "record_decision", description="Red", rationale="It is seen", **named
    )["session"],
    "delegate": lambda scene, named: scene.agent.ok("delegate", agent="qa", prompt="Look", **named)[
        "session"
    ],
    "complete_delegation": lambda scene, named: scene.agent.ok(
        "complete_delegation", delegation="qa", summary="Good", **named
    )["session"],
    "request_approval": _approval,
    "preflight": lambda scene, named: scene.owner(
        scene.agent.ok("preflight", **named)["identity"]["id"]
    ),
    "reserve_paths": lambda scene, named: scene.owner(
        scene.agent.ok("reserve_paths", paths=["src/**"], **named)["identity"]
    ),
    "send_message": lambda scene, named: scene.owner(
        scene.agent.ok("send_message", to=["all"], subject="Hello", **named)["messages"][0][
            "sender"
        ]
    ),
}
COMMANDS: dict[str, Callable[[Any], str]] = {
    "session get-state": lambda said: said["sessionId"],
    "session show --json": lambda said: said["session"],
    "session log --json": lambda said: said["session"],
    "mode --json": lambda said: said["sessionId"],
    "mode planning --json": lambda said: said["sessionId"],
    "session set-state --task T-2 --json": lambda said: said["sessionId"],
    "session start --json": lambda said: said["sessionId"],
    "session handoff --json": lambda said: said["session"],
    "session end --dry-run --json": lambda said: said["session"],
}


@pytest.fixture(params=KINDS)
def scene(
    app: App, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    monkeypatch.chdir(tmp_path)
    return Scene(app, tmp_path, request.param, monkeypatch)


def test_every_tool_finds_the_session_of_its_connection(scene: Scene) -> None:
    ways: list[dict[str, Any]] = [{}, {"sessionId": scene.session}]

    found = {(tool, *way): call(scene, way) for tool, call in TOOL_CALLS.items() for way in ways}

    assert set(found.values()) == {scene.session}, found
    assert _note(scene, {}) == scene.session
    if scene.kind not in ("hooks", "two sessions"):
        assert scene.agent.ok("session", continueToken=scene.token)["session"] == scene.session
    assert scene.start("Another goal") == scene.session


def test_every_command_finds_it_too(scene: Scene, typed: Terminal) -> None:
    for command, session_of in COMMANDS.items():
        said = typed(*command.split())
        assert said.out.startswith("{"), (command, said)
        assert session_of(json.loads(said.out)) == scene.session, command
    invoked = typed("agent", "invoke", "qa", "Look at it")
    assert scene.session in invoked.out
    assert typed("decision", "add", "Red", "--because", "It is seen").code == 0
    delegated = scene.agent.ok("session")["summary"]
    assert "qa" in delegated, "the tools see what the commands have recorded"


def test_without_a_client_the_mode_is_recorded_and_nothing_enforces_it(
    scene: Scene, typed: Terminal
) -> None:
    note = "This session has no connected client, so nothing enforces its mode. To connect one, run"
    is_enforced = scene.kind in ("hooks", "two sessions")

    said = typed("mode", "planning")
    shown = scene.agent.ok("session")

    assert (said.code, shown["mode"]) == (0, "planning")
    assert (note in said.err, note in shown["summary"]) == (not is_enforced, not is_enforced)


def test_a_session_without_a_client_ends_and_leaves_a_foreign_directory_alone(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Terminal
) -> None:
    scene = Scene(app, tmp_path, "no project", monkeypatch)
    before = sorted(tmp_path.rglob("*"))

    ended = typed("session", "end", "--summary", "Painted")

    assert ended.code == 0, ended
    state = json.loads(typed("session", "get-state", "--session", scene.session).out)
    assert state["status"] == "ended"
    assert sorted(tmp_path.rglob("*")) == before
    refused = scene.agent.refused("session", {"sessionId": scene.session, "mode": "planning"})
    assert refused["code"] == "session_ended"


def test_clients_of_one_http_server_do_not_mix(app: App, tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("one", "two")]
    agents = [Agent(McpProtocol(app, TOOLS, connection=Connection(f"http:{n}"))) for n in range(3)]
    sessions: list[str] = []
    for agent, root in zip(agents, (*roots, roots[0]), strict=True):
        root.mkdir(exist_ok=True)
        install(app, root, linear())
        answer = agent.ok(
            "start_workflow", workflowId="line", goal="The same", workspacePath=str(root)
        )
        sessions.append(answer["introduction"]["session"])

    assert len(set(sessions)) == 3, "two of them even work in one directory"
    for agent, session in zip(agents, sessions, strict=True):
        assert agent.ok("session")["session"] == session
        assert agent.ok("record_decision", description="x", rationale="y")["session"] == session
        refused = agent.refused(
            "reserve_paths", {"paths": ["a"], "sessionId": sessions[agent is agents[0]]}
        )
        assert "another agent's" in refused["message"]


def test_agents_without_hooks_in_one_worktree_do_not_mix(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Terminal
) -> None:
    scene = Scene(app, tmp_path, "no hooks", monkeypatch)
    scene.agent.ok("record_decision", description="Red", rationale="It is seen")
    other = scene.connect()

    refused = other.refused("record_decision", {"description": "Blue", "rationale": "Sky"})
    start = {"workflowId": "line", "goal": "Paint the gate"}
    own = other.ok("start_workflow", **start)["introduction"]["session"]

    assert refused["details"]["correctCall"] == {"tool": "session", "params": {"action": "start"}}
    assert own != scene.session
    assert other.ok("preflight")["identity"]["id"] != scene.agent.ok("preflight")["identity"]["id"]
    said = typed("mode", "planning").err
    assert f"interlock mode planning --session {own}" in said
    assert f"interlock mode planning --session {scene.session}" in said


def test_an_http_client_does_not_inherit_the_servers_environment(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent may have started the server: its variables and ancestors say nothing of others."""
    opt_in(tmp_path, "standard")
    theirs = begun(app, tmp_path, "held")
    begun(app, tmp_path, "another")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "held")
    monkeypatch.setenv("INTERLOCK_SESSION", theirs)
    agent = Agent(McpProtocol(app, TOOLS, connection=Connection("http:1")))

    refused = agent.refused("session", {"workspacePath": str(tmp_path), "task": "T-1"})

    assert refused["code"] == "several_sessions"


def test_rest_changes_the_mode_of_every_session_that_has_not_ended(scene: Scene) -> None:
    change = next(one for one in OPERATIONS if one.name == "changeMode").call
    read = next(one for one in OPERATIONS if one.name == "showState").call
    at = SessionParameters(session=scene.session)
    if scene.kind == "hooks":
        gated_sessions.change_status(scene.app, SessionId(scene.session), "ended", DEPARTED)

    changed = change(scene.app, at, ModeRequest("planning"))

    assert isinstance(changed, SessionState)
    assert read(scene.app, at, None) == changed
    assert changed.current_mode == "planning"
    if scene.kind == "hooks":
        return
    gated_sessions.change_status(scene.app, SessionId(scene.session), "ended", "by the user")
    refused = change(scene.app, at, ModeRequest("analysis"))
    assert isinstance(refused, SessionEnded)
    assert status_of(refused.explain().code) == CONFLICT


def test_a_session_whose_client_is_gone_is_found_and_changed_by_its_id(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Terminal
) -> None:
    scene = Scene(app, tmp_path, "hooks", monkeypatch)
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID")
    gated_sessions.change_status(app, begun(app, tmp_path, "held"), "ended", DEPARTED)

    changed = typed("mode", "planning", "--session", scene.session, "--json")

    assert json.loads(changed.out)["currentMode"] == "planning"
    shown = json.loads(typed("session", "show", scene.session, "--json").out)
    assert shown["session"] == scene.session
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "held")
    back = scene.connect().ok("session")
    assert (back["session"], back["mode"]) == (scene.session, "planning")
