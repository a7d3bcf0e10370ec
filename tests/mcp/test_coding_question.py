"""Going on to coding: the hook has the client ask the user, and only then the tool changes it."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from interlock.app.clock import SystemClock
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.cli import commands
from interlock.core.ids import SessionId
from interlock.core.session.events import ModeChanged, decode_envelope
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from tests.hooks.desk import Desk
from tests.mcp.agent import Agent

TOOL = "mcp__interlock__session"
CODING = {"mode": "coding"}
HOUR_MS = 3_600_000


@pytest.fixture
def desk(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    opt_in(tmp_path, "standard")
    monkeypatch.chdir(tmp_path)
    found = Desk(home, tmp_path)
    found.begin()
    return found


class LaterClock(SystemClock):
    def __init__(self, later_ms: int) -> None:
        self._later_ms = later_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._later_ms


def agent_in(app: App, *, later_ms: int = 0) -> Agent:
    later = msgspec.structs.replace(app, clock=LaterClock(later_ms))
    return Agent(McpProtocol(later, TOOLS))


def test_the_user_is_asked_once_in_a_session(app: App, desk: Desk) -> None:
    agent = agent_in(app)
    refused = agent.refused("session", CODING)
    assert "does not have it" in refused["message"]
    assert refused["details"]["hint"].startswith("The user can type `/mode coding`, run")

    asked = desk.tool(TOOL, **CODING)
    answered = agent.ok("session", **CODING)

    assert asked.answer == "ask"
    assert asked.text.startswith("The agent asks to switch to coding, in which it edits files")
    assert answered["mode"] == "coding"
    assert desk.tool("Write", file_path="a").answer == "allow"
    links = app.reader.links(SessionId(answered["session"]))
    changes = [decode_envelope(link.body).event for link in links]
    assert ModeChanged("coding", "agent", "", is_agreed=True) in changes
    assert agent.ok("session", mode="analysis")["mode"] == "analysis"
    assert desk.tool(TOOL, **CODING).answer == "allow", "it has been answered"
    assert agent.ok("session", **CODING)["mode"] == "coding"


class Asked(NamedTuple):
    """How a question was asked that does not count."""

    answer: str
    """Of the hook; where it is allow, the tool refuses, and says more."""
    conversation: str = "host-1"
    variable: tuple[str, str] = ("CLAUDE_CODE_SESSION_ATTENDED", "1")
    later_ms: int = 0


NOT_COUNTING = {
    "in another conversation": Asked("ask", "host-2"),
    "where nobody is": Asked("allow", variable=("CLAUDE_CODE_SESSION_ATTENDED", "0")),
    "by a hook that the agent ran": Asked("allow", variable=("AI_AGENT", "claude-code_2_agent")),
    "more than an hour ago": Asked("ask", later_ms=HOUR_MS + 60_000),
    "in the future": Asked("ask", later_ms=-60_000),
}


@pytest.mark.invariant("agents-keep-their-rules")
@pytest.mark.parametrize("name", NOT_COUNTING)
def test_without_a_fresh_question_in_its_own_conversation_it_is_refused(
    app: App, desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked = NOT_COUNTING[name]
    session = agent_in(app).ok("session")["session"]
    monkeypatch.setenv(*asked.variable)
    asking = Desk(desk.home, desk.project, asked.conversation)
    asking.begin()
    assert asking.tool(TOOL, **CODING).answer == asked.answer
    agent = agent_in(app, later_ms=asked.later_ms)

    problem = agent.refused("session", {**CODING, "sessionId": session})

    assert "does not have it" in problem["message"]
    assert desk.tool("Write", file_path="a").answer == "deny"


def test_a_question_is_used_once_and_not_by_a_command(
    app: App, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_in(app)
    assert desk.tool(TOOL, **CODING).answer == "ask"
    with monkeypatch.context() as patch:
        patch.setenv("CLAUDECODE", "1")
        assert commands.run_cli(["mode", "coding"]) == 1
    (question,) = (desk.home / "asked").iterdir()

    assert agent.ok("session", **CODING)["mode"] == "coding"

    assert not question.exists()
