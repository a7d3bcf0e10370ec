"""Subagents: they work in the mode of their conversation, and do not widen it."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.registry import NAMES
from interlock.app.clock import SystemClock
from interlock.app.context import App
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookResult
from interlock.workspace.machine import spool, user_questions
from tests.hooks.clients import ASKING, Client, attend
from tests.hooks.recordings import recorded

TELLING = ("claude-code", "codex", "opencode", "copilot")
"""The hosts that say that a subagent makes a call."""
SUBAGENT: dict[str, Any] = {"agent_id": "agent-1", "agent_type": "general-purpose"}
CODING = {"mode": "coding", "task": "T-2"}


@pytest.fixture
def client(
    app: App,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Client:
    host, is_attended = request.param
    made = Client(app, home, tmp_path, host)
    attend(monkeypatch, made.host, *(() if is_attended else made.host.unattended_words[:1]))
    return made


def each(*hosts: str, attended: tuple[bool, ...] = (True, False)) -> pytest.MarkDecorator:
    pairs = [(host, is_attended) for host in hosts for is_attended in attended]
    names = [f"{host}-{'attended' if is_there else 'unattended'}" for host, is_there in pairs]
    return pytest.mark.parametrize("client", pairs, indirect=True, ids=names)


@each(*TELLING)
@pytest.mark.parametrize("wanted", [CODING, {"mode": "disabled"}, {"Mode": "Coding"}])
def test_a_subagent_that_widens_the_mode_is_denied(client: Client, wanted: dict[str, str]) -> None:
    client.begin("analysis")

    said = client.call("own", wanted, **SUBAGENT)

    assert said.answer == "deny"
    assert "A subagent cannot set the mode to " in said.reason
    assert "(subagent.mode, " in said.reason
    (line,) = spool.lines(client.home)
    assert (line.rule, line.answer, line.mode) == ("subagent.mode", "deny", "analysis")


@each(*ASKING, attended=(True,))
def test_the_conversation_itself_is_asked_where_somebody_is_there(client: Client) -> None:
    client.begin("analysis")

    said = client.call("own", CODING)

    assert (said.answer, "(coding.agreed, " in said.reason) == ("ask", True)
    question = (client.home, client.host.name, client.conversation, user_questions.CODING)
    assert user_questions.consume(*question, now_ms=SystemClock().now_ms())


@pytest.mark.parametrize(
    "client",
    [*((host, True) for host in NAMES if host not in ASKING), *((host, False) for host in ASKING)],
    indirect=True,
)
def test_where_nobody_can_be_asked_it_is_left_to_the_tool(client: Client) -> None:
    """Which refuses, and says what the user can do."""
    client.begin("analysis")

    assert client.send("pre-tool", **client.tool("own", CODING)) == HookResult()
    question = (client.home, client.host.name, client.conversation, user_questions.CODING)
    assert not user_questions.consume(*question, now_ms=SystemClock().now_ms())


@each(*TELLING)
def test_a_subagent_narrows_the_mode_and_uses_our_tools(client: Client) -> None:
    client.begin("planning")

    for wanted in ({"mode": "analysis"}, {"mode": "planning"}, {"task": "T-3"}, {}):
        assert client.call("own", wanted, **SUBAGENT).raw == {}


@each(*TELLING, attended=(True,))
def test_in_coding_a_subagent_may_what_its_conversation_may(client: Client) -> None:
    client.begin("coding")

    for kind in ("read", "edit", "shell"):
        assert client.call(kind, **SUBAGENT).raw == {}
    assert client.call("own", CODING, **SUBAGENT).raw == {}


@each(*TELLING)
def test_before_coding_a_subagent_is_held_as_its_conversation_is(client: Client) -> None:
    client.begin("analysis")

    for kind in ("read", "edit", "shell"):
        assert client.call(kind, **SUBAGENT).answer == client.call(kind).answer


RECORDED = {
    "claude-code": ("claude-PreToolUse-Bash-subagent", "a598a326280c0ce1a"),
    "codex": ("codex-PreToolUse-Bash-in-subagent", "<uuid-3>"),
    "opencode": ("opencode-pre-tool-bash-subagent", "ses_e1924e700ffeCYNnVPLIZWiKcs"),
    "copilot": ("copilot-PreToolUse-vscode-subagent", "agent-1"),
}


@each(*RECORDED, attended=(True,))
def test_the_calls_of_real_subagents_are_known_as_such(client: Client) -> None:
    name, agent = RECORDED[client.host.name]
    sent = recorded(name, client.project)
    assert agent in sent.values()
    client.begin("analysis")
    fields = {key: value for key, value in sent.items() if not key.startswith("tool")}
    fields["sessionId" if "sessionId" in sent else "session_id"] = client.conversation
    call = client.payload("pre-tool", **client.tool("own", CODING))
    own = {key: value for key, value in call.items() if key.startswith("tool")}

    content = json.dumps({**fields, **own}).encode()

    assert b"subagent.mode" in run_hook(client.host, "pre-tool", client.home, content).out


@each("gemini", attended=(True,))
def test_gemini_tells_no_subagent_apart_so_the_user_is_asked(client: Client) -> None:
    client.begin("analysis")

    assert client.call("own", CODING).answer == "ask"
    assert client.call("edit").answer == "deny"
