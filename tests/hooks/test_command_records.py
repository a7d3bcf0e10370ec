"""Commands that agents have run: each host's are recorded, with how they ended, as far as told."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent, HookResult
from interlock.workspace.machine import spool
from tests.hooks.clients import TOOLS, Client
from tests.hooks.recordings import payload_names, recorded

SILENCE = HookResult()
RECORDED: dict[str, tuple[str, str, str]] = {
    "claude-PostToolUse-Bash": ("Bash", "cat allowed.txt", "success"),
    "claude-PostToolUse-Bash-subagent": ("Bash", "echo in-sub", "success"),
    "claude-PostToolUse-Bash-background": ("Bash", "sleep 1; echo bg; exit 4", "unknown"),
    "claude-PostToolUse-Bash-timeout": (
        *("Bash", "python3 -c 'import time;print(1,flush=True);time.sleep(20)'"),
        "unknown",
    ),
    "claude-PostToolUse-Bash-exit1-grep": ("Bash", "grep nothing a.txt", "unknown"),
    "claude-PostToolUseFailure": ("Bash", "exit 3", "failure"),
    "codex-PostToolUse-Bash": ("Bash", "echo ASKME > d4.txt", "unknown"),
    "codex-PostToolUse-Bash-failed": ("Bash", "echo oops; echo err >&2; exit 3", "unknown"),
    "codex-PostToolUse-Bash-in-subagent": ("Bash", "echo SUBRAN", "unknown"),
    "gemini-AfterTool-run_shell_command-ok": ("run_shell_command", "echo fine", "success"),
    "gemini-AfterTool-run_shell_command-exit3": (
        *("run_shell_command", "echo out; echo err >&2; env | sort > /work/run/shellenv; exit 3"),
        "failure",
    ),
    "opencode-post-tool-bash": ("bash", "env | sort; pwd", "success"),
    "opencode-post-tool-bash-exit3": ("bash", "echo out; echo err >&2; exit 3", "failure"),
    "opencode-post-tool-bash-subagent": ("bash", "echo in-child", "success"),
    "cursor-postToolUse": ("Shell", "npm test", "success"),
    "cursor-postToolUseFailure": ("Shell", "npm test", "failure"),
    "copilot-postToolUse": ("bash", "npm test", "success"),
    "copilot-postToolUse-exit1": ("bash", "npm test", "failure"),
    "copilot-PostToolUse-vscode": ("run_in_terminal", "npm test", "unknown"),
}
"""The payloads after a command, with the tool, the command and how it ended."""
AFTER: tuple[HookEvent, ...] = ("post-tool", "tool-failed")
CALLED = [
    (host, name)
    for host in NAMES
    for name, event in payload_names(host).items()
    if event in AFTER and "ExitPlanMode" not in name
]


@pytest.mark.parametrize(("host", "name"), CALLED)
def test_a_command_is_recorded_with_its_outcome_and_no_other_call_is(
    app: App, home: Path, tmp_path: Path, host: str, name: str
) -> None:
    assert isinstance(app, App)
    opt_in(tmp_path, "standard")
    sent, event = recorded(name, tmp_path), payload_names(host)[name]

    assert run_hook(host_named(host), event, home, json.dumps(sent).encode()) == SILENCE

    lines = [*spool.commands(home)]
    expected = [RECORDED[name]] if name in RECORDED else []
    assert [(line.tool, line.detail, line.outcome) for line in lines] == expected
    for line in lines:
        session = sent.get("session_id") or sent.get("sessionId")
        assert (line.host, line.host_session, line.cwd) == (host, session, str(tmp_path))
        assert line.event == event
        assert list(spool.lines(home)) == [], "it is no decision"


def gemini(text: str, **more: Any) -> dict[str, Any]:
    content = f"<untrusted_context>\n{text}\n</untrusted_context>"
    return {"llmContent": content, "returnDisplay": "", **more}


def copilot(text: str) -> dict[str, str]:
    return {"resultType": "success", "textResultForLlm": text}


GEMINI_CANCELLED = (
    "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without"
    " output. There was no output before it was cancelled."
)
RESPONSES: tuple[tuple[str, Any, str], ...] = (
    ("claude-code", {"stdout": "ok", "stderr": "", "interrupted": False}, "success"),
    ("claude-code", {"stdout": "", "stderr": "", "interrupted": True}, "unknown"),
    ("claude-code", {"stdout": "", "backgroundTaskId": "b1"}, "unknown"),
    ("claude-code", {}, "unknown"),
    ("claude-code", None, "unknown"),
    ("claude-code", "ok", "unknown"),
    ("codex", "Exit code: 0\n", "unknown"),
    ("codex", {"exit_code": 0}, "unknown"),
    ("gemini", gemini("Output: fine\nProcess Group PGID: 1"), "success"),
    ("gemini", gemini("Output: (empty)\nExit Code: 1\nProcess Group PGID: 1"), "failure"),
    ("gemini", gemini("Output: (empty)\nError: spawn ENOENT"), "failure"),
    ("gemini", gemini("Output: x", error={"message": "no"}), "failure"),
    ("gemini", gemini("Output: (empty)\nSignal: 9\nProcess Group PGID: 1"), "failure"),
    ("gemini", gemini(GEMINI_CANCELLED), "unknown"),
    ("gemini", gemini("Command was cancelled by user before it could complete."), "unknown"),
    ("gemini", gemini("Command moved to background (PID: 7). Output hidden."), "unknown"),
    ("gemini", {"llmContent": [{"text": "Output: x"}]}, "unknown"),
    ("gemini", {}, "unknown"),
    ("gemini", None, "unknown"),
    ("opencode", {"exit": 0}, "success"),
    ("opencode", {"exit": 137}, "failure"),
    ("opencode", {"exit": None}, "unknown"),
    ("opencode", {"exit": "0"}, "unknown"),
    ("opencode", {"exit": False}, "unknown"),
    ("opencode", {}, "unknown"),
    ("copilot", copilot("ok\n<shellId: 0 completed with exit code 0>"), "success"),
    ("copilot", copilot("<shellId: 0 completed with exit code 127>"), "failure"),
    ("copilot", copilot("<shellId: 1 completed with exit code 0>\n<exit code 1>"), "success"),
    ("copilot", copilot("<command with shellId: 3 is still running>"), "unknown"),
    ("copilot", copilot("completed with exit code zero"), "failure"),
    ("copilot", "x\n<shellId: 0 completed with exit code 2>", "failure"),
    ("copilot", None, "unknown"),
)
"""Responses of the tool for commands, in the words of each host, and their meaning."""


@pytest.mark.parametrize("row", RESPONSES, ids=lambda row: f"{row[0]}-{str(row[1])[:60]}")
def test_the_outcome_is_what_the_client_surely_says(
    app: App, home: Path, tmp_path: Path, row: tuple[str, Any, str]
) -> None:
    host, response, expected = row
    client = Client(app, home, tmp_path, host)

    assert client.send("post-tool", **client.tool("shell"), tool_response=response) == SILENCE

    (line,) = spool.commands(home)
    assert (line.tool, line.detail) == (TOOLS[host]["shell"][0], "make")
    assert line.outcome == expected


@pytest.mark.parametrize("host", NAMES)
def test_commands_are_kept_in_their_order_and_the_longest_are_cut(
    app: App, home: Path, tmp_path: Path, host: str
) -> None:
    client = Client(app, home, tmp_path, host)

    for command in ("first", "x" * 10_000, 'ü "quoted"\nsecond line'):
        client.send("post-tool", **client.tool("shell", {"command": command}))

    first, long, last = spool.commands(home)
    assert (first.detail, long.detail) == ("first", "x" * 4096)
    assert last.detail == 'ü "quoted"\nsecond line'


@pytest.mark.parametrize("host", NAMES)
def test_the_end_of_a_conversation_is_noted_with_its_reason(
    app: App, home: Path, tmp_path: Path, host: str
) -> None:
    client = Client(app, home, tmp_path, host)

    client.send("session-end", reason="clear")

    (line,) = spool.take_departures(home)
    assert (line.host, line.host_session, line.detail) == (host, client.conversation, "clear")
    assert spool.take_departures(home) == [], "it was taken"
