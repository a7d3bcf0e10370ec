"""Hooks of Claude Code that another client has found in its settings, and runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.claude_code import HOST
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts.markers import mark_installed
from interlock.hooks import fast
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent, HookResult
from tests.hooks.recordings import payload_names, recorded

SILENCE = HookResult()
FOREIGN: dict[str, dict[str, Any]] = {
    "cursor": {"cursor_version": "3.14.7", "conversation_id": "c", "workspace_roots": []},
    "copilot": {"timestamp": "2026-09-05T10:30:00.000Z", "sessionId": "2f8cf53e"},
    "gemini": {"timestamp": "2026-11-17T00:06:33.522Z", "session_id": "2f8cf53e"},
}
"""Fields that other clients add to the payload of a hook of Claude Code."""


@pytest.fixture(params=FOREIGN)
def other(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("AI_AGENT", raising=False)
    if request.param == "gemini":
        monkeypatch.setenv("GEMINI_SESSION_ID", "2f8cf53e")
    else:
        monkeypatch.delenv("GEMINI_SESSION_ID", raising=False)
    return request.param


@pytest.fixture
def project(app: App, tmp_path: Path) -> Path:
    assert isinstance(app, App)
    opt_in(tmp_path, "standard")
    return tmp_path


def sent(name: str, project: Path, other: str = "") -> bytes:
    return json.dumps({**recorded(name, project), **FOREIGN.get(other, {})}).encode()


def test_where_the_other_client_has_hooks_of_its_own_this_one_is_silent(
    home: Path, project: Path, other: str
) -> None:
    mark_installed(home, other, is_installed=True)

    for name, event in payload_names("claude-code").items():
        assert run_hook(HOST, event, home, sent(name, project, other)) == SILENCE, name
    assert not list((home / "spool").glob("*")), "nor is anything noted twice"


def test_where_it_has_none_this_one_decides(home: Path, project: Path, other: str) -> None:
    for elsewhere in set(FOREIGN) - {other}:
        mark_installed(home, elsewhere, is_installed=True)
    mark_installed(home, "claude-code", is_installed=True)

    outcome = run_hook(HOST, "pre-tool", home, sent("claude-PreToolUse-Write", project, other))

    assert b'"permissionDecision":"deny"' in outcome.out
    mark_installed(home, other, is_installed=True)
    mark_installed(home, other, is_installed=False)
    again = run_hook(HOST, "pre-tool", home, sent("claude-PreToolUse-Write", project, other))
    assert again.out == outcome.out, "it was uninstalled"


def test_the_hook_of_claude_code_itself_always_answers(home: Path, project: Path) -> None:
    for name in NAMES:
        mark_installed(home, name, is_installed=True)

    outcome = run_hook(HOST, "pre-tool", home, sent("claude-PreToolUse-Write", project))

    assert b'"permissionDecision":"deny"' in outcome.out


@pytest.mark.parametrize("other", ["cursor", "copilot"])
def test_what_another_client_surely_sends_is_for_the_full_hook(
    home: Path, project: Path, other: str
) -> None:
    events: tuple[HookEvent, ...] = ("pre-tool", "post-tool", "session-end")
    names = ("claude-PreToolUse-Write", "claude-PostToolUse-Bash", "claude-SessionEnd")

    for event, name in zip(events, names, strict=True):
        assert not fast.run("claude-code", event, str(home), sent(name, project, other))


def test_a_time_alone_makes_no_other_client(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer Claude Code may send one: then it must not lose its gate."""
    for name in NAMES:
        mark_installed(home, name, is_installed=True)
    content = json.dumps({**recorded("claude-PreToolUse-Write", project), "timestamp": "now"})

    for environment in ({}, {"COPILOT_CLI": "1", "AI_AGENT": "claude-code_2_harness"}):
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        outcome = run_hook(HOST, "pre-tool", home, content.encode())
        assert b'"permissionDecision":"deny"' in outcome.out


def test_copilot_runs_a_shared_hook_of_claude_code_with_a_payload_that_is_known(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AI_AGENT", raising=False)
    monkeypatch.setenv("COPILOT_CLI", "1")
    content = sent("copilot-PreToolUse-pascal", project)
    assert b'"permissionDecision":"deny"' in run_hook(HOST, "pre-tool", home, content).out

    mark_installed(home, "copilot", is_installed=True)

    assert run_hook(HOST, "pre-tool", home, content) == SILENCE


@pytest.mark.parametrize("host", NAMES)
def test_no_client_takes_its_own_payloads_for_those_of_another(host: str, tmp_path: Path) -> None:
    for name in payload_names(host):
        environment = {"GEMINI_SESSION_ID": "x"} if host == "gemini" else {}
        assert host_named(host).other_client(recorded(name, tmp_path), environment) == "", name
