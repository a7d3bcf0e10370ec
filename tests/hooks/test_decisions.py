"""Every host before a tool call: what is denied, asked about or passed, in the host's own form."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.context import App
from interlock.app.gate import gate_journal
from interlock.core.gate.state import MODES, Mode
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import BLOCKING_EXIT_CODE, HookResult
from tests.hooks.clients import ASKING, TOOLS, Client, attend, read_decision

SILENCE = HookResult()
KINDS = ("read", "own", "edit", "shell")


def nested(answer: str, reason: str) -> dict[str, Any]:
    fields = {"permissionDecision": answer, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


def both(answer: str, reason: str) -> dict[str, Any]:
    fields = {"permissionDecision": answer, "permissionDecisionReason": reason}
    return {**fields, **nested(answer, reason)}


FORMS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "claude-code": nested,
    "codex": nested,
    "gemini": lambda answer, reason: {
        "decision": answer,
        "reason": reason,
        **({"systemMessage": reason} if answer == "ask" else {}),
    },
    "opencode": lambda answer, reason: {"decision": answer, "reason": reason},
    "cursor": lambda answer, reason: {
        "permission": answer,
        "user_message": reason,
        "agent_message": reason,
    },
    "copilot": both,
}
"""The answer of a hook before a tool call, as each client reads it."""


@pytest.fixture(params=NAMES)
def client(app: App, home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Client:
    return Client(app, home, tmp_path, request.param)


@pytest.fixture(params=[True, False], ids=["attended", "unattended"])
def is_attended(
    client: Client, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> bool:
    """Whether somebody is at the client, who could answer a question."""
    words = () if request.param else client.host.unattended_words[:1]
    attend(monkeypatch, client.host, *words)
    return request.param


def test_in_analysis_an_edit_is_denied_in_the_form_of_the_host(
    client: Client, *, is_attended: bool
) -> None:
    client.begin("analysis")

    said = client.call("edit")

    assert said.raw == FORMS[client.host.name]("deny", said.reason)
    tool = TOOLS[client.host.name]["edit"][0]
    assert f"The mode is analysis, so files cannot be edited (`{tool}`)" in said.reason
    can_ask = is_attended and client.host.name in (*ASKING, "codex")
    assert ("the user is asked" in said.reason) == can_ask
    by_user = f"the user has to type `{client.host.mode_command} coding`"
    assert (by_user in said.reason) != can_ask
    assert client.host.is_denial(said.raw), "which the doctor looks for"


def test_an_unsure_command_asks_where_somebody_can_be_asked_and_is_denied_elsewhere(
    client: Client, *, is_attended: bool
) -> None:
    client.begin("analysis")

    said = client.call("shell")

    answer = "ask" if is_attended and client.host.name in ASKING else "deny"
    assert said.raw == FORMS[client.host.name](answer, said.reason)
    assert "this command may do more than read" in said.reason
    assert client.host.is_denial(said.raw) == (answer == "deny")


@pytest.mark.usefixtures("is_attended")
@pytest.mark.parametrize("mode", MODES)
def test_what_is_allowed_is_allowed_in_silence(client: Client, mode: Mode) -> None:
    """Others may still say no; and some clients take an allowance for an order, or for an error."""
    client.begin(mode)

    for kind in KINDS if mode in ("coding", "disabled") else ("read", "own"):
        assert client.send("pre-tool", **client.tool(kind)) == SILENCE, kind
    reading = client.tool("shell", {"command": "git status"})
    assert client.send("pre-tool", **reading) == SILENCE


def test_a_client_that_an_agent_started_asks_nobody(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.begin("analysis")
    attend(monkeypatch, client.host)
    assert client.call("shell").answer == ("ask" if client.host.asks else "deny")

    monkeypatch.setenv("AI_AGENT", "claude-code_2-1-325_agent")

    assert client.call("shell").answer == "deny"


def test_a_conversation_that_nobody_knows_only_reads(client: Client) -> None:
    for kind in KINDS:
        expected = "allow" if kind in ("read", "own") else "deny"
        assert client.call(kind).answer == expected, kind


@pytest.mark.parametrize("tool", ["brand_new_tool", "mcp__other__thing"])
def test_a_tool_that_nobody_knows_is_asked_about_where_somebody_can_be_asked(
    client: Client, tool: str, *, is_attended: bool
) -> None:
    client.begin("planning")

    said = read_decision(
        client.host.name, client.told("pre-tool", tool_name=tool, tool_input={"a": 1})
    )

    answer = "ask" if is_attended and client.host.name in ASKING else "deny"
    assert said.raw == FORMS[client.host.name](answer, said.reason)
    assert "(tool.unlisted," in said.reason


def test_a_path_that_holds_our_rules_is_denied_in_every_mode(client: Client) -> None:
    client.begin("coding")
    keys = {"claude-code": "file_path", "gemini": "file_path", "cursor": "file_path"}
    keys |= {"opencode": "filePath", "copilot": "path"}
    target = f"{client.project}/.interlock/config.toml"
    change = {keys.get(client.host.name, "command"): target}
    if client.host.name == "codex":
        change = {"command": "*** Begin Patch\n*** Update File: .interlock/config.toml\n+x\n"}

    said = client.call("edit", change)

    assert said.raw == FORMS[client.host.name]("deny", said.reason)
    assert "(path.protected, " in said.reason


ADVICE: dict[str, Callable[[str], dict[str, Any]]] = {
    "claude-code": lambda text: {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": text}
    },
    "codex": lambda text: {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": text}
    },
    "gemini": lambda text: {"hookSpecificOutput": {"additionalContext": text}},
    "opencode": lambda text: {"context": text},
    "cursor": lambda _: {},
    "copilot": lambda text: {
        "additionalContext": text,
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": text},
    },
}


def test_what_a_rule_only_advises_against_passes_with_a_word_where_the_host_has_room(
    client: Client,
) -> None:
    client.begin("analysis")
    (client.home / "config.toml").write_text('[gate.rules]\n"mode.analysis" = "advisory"\n')

    raw = client.told("pre-tool", **client.tool("edit"))

    told = raw.get("context") or raw.get("hookSpecificOutput", {}).get("additionalContext", "")
    assert raw == ADVICE[client.host.name](told)
    assert not client.host.is_denial(raw)
    assert client.host.name == "cursor" or "a rule here advises against it" in told
    (line,) = gate_journal.journal_lines(client.home)
    assert (line.answer, line.opened) == ("allow", "advisory")


@pytest.mark.parametrize("host", NAMES)
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cwd": 7}', b"\xff"], ids=range(5))
def test_a_call_that_cannot_be_read_is_blocked_in_every_host(
    home: Path, host: str, content: bytes
) -> None:
    outcome = run_hook(host_named(host), "pre-tool", home, content)

    assert (outcome.code, outcome.out) == (BLOCKING_EXIT_CODE, b"")
    assert f"interlock doctor {host}" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("kind", ["edit", "read"])
def test_the_call_that_a_doctor_tries_is_one_that_the_hook_reads(client: Client, kind: str) -> None:
    client.begin("analysis")
    payload = client.host.example_call(client.conversation, str(client.project), kind)

    outcome = run_hook(client.host, "pre-tool", client.home, json.dumps(payload).encode())

    answer = json.loads(outcome.out or b"{}")
    assert client.host.is_denial(answer) == (kind == "edit")
