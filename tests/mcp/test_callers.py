"""Several clients in one worktree, as real processes: each one's server finds its own session."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import GateRow
from interlock.core.ids import SessionId
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.store import gate_rows
from tests.app.callers.conversations import begun, in_client
from tests.mcp import playing_client
from tests.mcp.agent import Agent
from tests.scenes import install, linear
from tests.sessions import record_progress

pytestmark = pytest.mark.slow


class Client:
    """An agent client, played by a process of its own."""

    def __init__(self, app: App, home: Path, project: Path) -> None:
        self._app = app
        script = [sys.executable, "-m", playing_client.__name__, str(home), str(project)]
        self._process = subprocess.Popen(
            script,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _do(self, **asked: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def hook(self, conversation: str, source: str = "startup") -> str:
        """Run the hook of a session start; the session that it leads to."""
        payload = {"session_id": conversation, "source": source}
        told = self._do(hook="session-start", payload=payload)
        row = gate_rows.read_state(self._app.home, "claude-code", conversation)
        assert isinstance(row, GateRow)
        session = row.session
        # What a conversation knows already is not told again.
        assert session in told or (source == "resume" and not told)
        return session

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        return self._do(tool=tool, arguments=arguments)

    def inner(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The same by a client without hooks that this one starts."""
        return self._do(inner={"tool": tool, "arguments": arguments})

    def command(self, *words: str) -> str:
        return self._do(command=words)

    def close(self) -> None:
        self._process.communicate(timeout=20)


Launch = Callable[[], Client]


@pytest.fixture
def project(app: App, tmp_path: Path) -> Path:
    opt_in(tmp_path, "standard")
    install(app, tmp_path, linear())
    return tmp_path


@pytest.fixture
def launch(app: App, home: Path, project: Path) -> Iterator[Launch]:
    launched: list[Client] = []

    def one() -> Client:
        launched.append(Client(app, home, project))
        return launched[-1]

    yield one
    for client in launched:
        client.close()


def test_each_of_two_clients_finds_its_own_session(app: App, launch: Launch) -> None:
    first, second = launch(), launch()
    mine, yours = first.hook("one"), second.hook("two")
    assert mine != yours

    for client, session in ((first, mine), (second, yours), (first, mine)):
        assert client.call("session")["session"] == session
        run = client.call("start_workflow", workflowId="line", goal=f"for {session}")
        assert run["introduction"]["session"] == session
        assert json.loads(client.command("session", "get-state"))["sessionId"] == session

    assert "planning" in first.command("mode", "planning")
    assert first.call("session")["mode"] == "planning"
    assert second.call("session")["mode"] == "analysis"
    assert first.hook("another name", "clear") == mine
    assert second.hook("two", "resume") == yours
    assert second.hook("new") not in (mine, yours), "a start is a new session"
    gated_sessions.change_mode(app, SessionId(mine), "coding", by="user")
    assert (
        first.call("session", action="end", summary="Nothing was left")["status"]["word"] == "ended"
    )
    cleared = first.hook("after the end", "clear")
    assert cleared not in (mine, yours)
    assert first.call("session")["mode"] == "analysis", "the user agreed for the session that ended"


def test_an_agent_whose_session_was_ended_is_not_taken_for_another_agent(
    app: App, launch: Launch
) -> None:
    first, second = launch(), launch()
    first.hook("talk-1")
    other = SessionId(second.hook("talk-2"))
    second.call("record_decision", description="Mine", rationale="It is the first")
    first.call("session", action="start")
    ended = first.call("session", action="end", summary="Nothing was left")
    assert ended["status"]["word"] == "ended"
    before = app.reader.stream(other)

    assert first.call("session")["session"] == ""
    calls: tuple[tuple[str, dict[str, str]], ...] = (
        ("session", {"mode": "planning"}),
        ("record_decision", {"description": "Theirs", "rationale": "It would be"}),
    )
    for tool, arguments in calls:
        refused = first.call(tool, **arguments)
        assert refused["code"] == "unknown_session"
        assert refused["message"] == "You have no open session here"
        assert other not in str(refused)
    assert app.reader.stream(other) == before

    assert first.call("session", action="start")["session"] != other


def test_a_run_in_which_another_agent_works_is_shown_without_a_call_that_joins_it(
    launch: Launch,
) -> None:
    first, second = launch(), launch()
    first.hook("talk-1")
    second.hook("talk-2")
    second.call("start_workflow", workflowId="line", goal="Paint the fence")

    (told,) = [line for line in first.call("session")["summary"].splitlines() if "Paint" in line]

    assert told.endswith("Claude Code, conversation talk-2 works on it: leave it to that agent.")
    assert "resume_session" not in told
    (own,) = [line for line in second.call("session")["summary"].splitlines() if "Paint" in line]
    assert "Your run of line" in own
    assert "To continue: resume_session" in own


def test_naming_a_session_in_use_does_not_join_it(launch: Launch) -> None:
    first, second = launch(), launch()
    own, theirs = first.hook("talk-1"), second.hook("talk-2")
    run = second.call("start_workflow", workflowId="line", goal="Paint the fence")

    found = first.call("resume_session", runId=run["introduction"]["run"])

    assert found["hint"] == (
        f"This conversation does not join {theirs}, which is in use. Claude Code, conversation"
        " talk-2 works on the first candidate: ask the user before you continue it."
    )
    assert first.call("session")["session"] == own
    call = found["candidates"][0]["nextCall"]
    assert first.call(call["tool"], **call["params"])["pending"] == run["pending"]


def test_a_client_that_another_one_starts_works_for_it_and_does_not_move_it(
    launch: Launch, app: App
) -> None:
    first, other = launch(), launch()
    old, mine = other.hook("before"), first.hook("now")
    other.call("start_workflow", workflowId="line", goal="Paint the fence")

    assert first.inner("session")["session"] == mine
    (found,) = first.inner("resume_session", sessionId=old)["candidates"]
    assert found["nextCall"]["tool"] == "continue_workflow"
    assert first.inner("session", action="start", sessionId=old)["session"] == old

    assert app.reader.session_of_conversation("claude-code", "now") == mine
    assert first.call("session")["session"] == mine


@pytest.fixture
def run(app: App, project: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A run in the session of another conversation."""
    monkeypatch.chdir(project)
    session = begun(app, project, "one", "planning")
    agent = Agent(McpProtocol(app, TOOLS))
    return agent.ok("start_workflow", workflowId="line", goal="Paint", sessionId=session)


def test_to_resume_an_older_session_moves_the_conversation_there(
    app: App, project: Path, child: int, run: dict[str, Any]
) -> None:
    old, new = run["introduction"]["session"], begun(app, project, "two")
    later = Agent(McpProtocol(in_client(app, child, "two"), TOOLS))

    (found,) = later.ok("resume_session", query="paint")["candidates"]
    assert found["nextCall"] == {
        "tool": "resume_session",
        "params": {"runId": run["introduction"]["run"]},
    }
    assert later.ok("session")["session"] == new, "to look moves nothing"
    record_progress(app, old)
    named = later.ok("resume_session", **found["nextCall"]["params"])
    assert f"now part of {old} (mode planning)" in named["hint"]
    assert "## Task list\n\n- in progress: Build it" in named["hint"], "it is new to it"
    (there,) = named["candidates"]
    assert there["nextCall"]["tool"] == "continue_workflow"

    shown = later.ok("continue_workflow", **there["nextCall"]["params"])
    assert shown["pending"] == run["pending"]
    assert later.ok("session")["session"] == old
    assert app.reader.session_of_conversation("claude-code", "two") == old
    assert app.reader.session_of_conversation("claude-code", "one") == old
    again = later.ok("resume_session")
    (own,) = again["candidates"]
    assert own["nextCall"]["tool"] == "continue_workflow", "there is nowhere to move any more"
    assert again["hint"].startswith("Make the first nextCall"), "no question about one's own work"


def test_where_an_agent_may_not_follow_it_is_told_and_gets_its_token_all_the_same(
    app: App, project: Path, child: int, run: dict[str, Any]
) -> None:
    old, new = run["introduction"]["session"], begun(app, project, "two")
    gated_sessions.change_mode(app, old, "disabled", by="user")
    later = Agent(McpProtocol(in_client(app, child, "two"), TOOLS))

    named = later.ok("resume_session", sessionId=old)

    assert "only the user switches the gate off" in named["hint"]
    assert later.ok("session")["session"] == new
    call = named["candidates"][0]["nextCall"]
    assert later.ok(call["tool"], **call["params"])["pending"] == run["pending"]


def test_the_work_of_a_client_without_hooks_is_its_own(app: App, run: dict[str, Any]) -> None:
    """The user is asked about the work of others only."""
    agent = Agent(McpProtocol(app, TOOLS))
    assert agent.ok("resume_session")["hint"].startswith("Ask the user")
    agent.ok("continue_workflow", continueToken=run["continueToken"], intent="rehydrate")

    found = agent.ok("resume_session")

    assert found["hint"].startswith("Make the first nextCall")
    assert found["candidates"][0]["isOwn"]


def test_where_several_sessions_may_be_meant_each_has_its_call(
    app: App, project: Path, run: dict[str, Any]
) -> None:
    """A client without hooks, beside two with them."""
    agent = Agent(McpProtocol(app, TOOLS))
    named = run["introduction"]["session"]
    sessions = {named, begun(app, project, "two")}

    problem = agent.refused("session", {"task": "T-1"})

    assert problem["code"] == "several_sessions"
    calls = problem["details"]["nextCalls"]
    assert {call["params"]["sessionId"] for call in calls} == sessions
    assert all(call["params"]["task"] == "T-1" for call in calls)
    assert "correctCall" not in problem["details"], "none is more likely than the others"
    chosen = agent.ok(calls[0]["tool"], **calls[0]["params"])
    assert (chosen["session"], chosen["task"]) == (calls[0]["params"]["sessionId"], "T-1")
    assert agent.ok("session", token=f"`{run['continueToken']}`")["session"] == named
    assert agent.refused("session", {"token": "ct1oops"})["code"] == "token_mangled"
    other = agent.ok("start_workflow", workflowId="line", goal="of nobody here")
    assert other["introduction"]["session"] not in sessions
    own = agent.ok("session", continueToken=other["continueToken"])["session"]
    assert own == other["introduction"]["session"]
    assert agent.ok("session", action="start")["session"] == own, "it works in that one now"


def test_a_server_whose_client_has_no_session_any_more_is_not_lost(
    app: App, project: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of a process may outlive its session."""
    monkeypatch.chdir(project)
    agent = Agent(McpProtocol(in_client(app, child, "gone"), TOOLS))

    problem = agent.refused("session", {"mode": "planning"})

    assert problem["details"]["correctCall"] == {"tool": "session", "params": {"action": "start"}}
    begun = agent.ok("session", action="start")
    assert agent.ok("session")["session"] == begun["session"]
    assert app.reader.session_of_conversation("claude-code", "gone") == begun["session"]


def test_a_directory_that_is_not_there_is_refused(agent: Agent) -> None:
    problem = agent.refused("session", {"workspacePath": "a\0b", "task": "T-1"})

    assert problem["code"] == "invalid_arguments"
    assert problem["details"]["correctCall"]["params"] == {"task": "T-1"}


def test_a_wrong_variable_has_no_call_that_would_help(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_SESSION", "ses_none")

    problem = agent.refused("start_workflow", {"workflowId": "line", "goal": "g"})

    assert "INTERLOCK_SESSION" in problem["message"]
    assert "correctCall" not in problem["details"]
