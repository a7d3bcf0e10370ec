"""How Claude Code is started without a person: its words, its settings and its environment."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.agents.clients.claude_code_headless import TOOLS, ClaudeCodeHeadless
from interlock.agents.clients.headless import ClientCommand, ClientStart, ServerAddress
from interlock.agents.hosts.claude_code import HOST
from interlock.agents.hosts.claude_code_shell import SHELL_VARIABLE
from interlock.app.hosts import install
from interlock.app.hosts.program import find_program

USER = {
    "PATH": "/usr/bin",
    "HOME": "/home/u",
    "LANG": "C.UTF-8",
    "ANTHROPIC_API_KEY": "sk-1",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
    "CLAUDE_CODE_OAUTH_TOKEN": "oat",
    "CLAUDE_CONFIG_DIR": "/home/u/.claude-work",
    "HTTPS_PROXY": "http://proxy",
    "INTERLOCK_STORE": "postgresql://x",
    # What it has no use for:
    "GITHUB_TOKEN": "x",
    "GITLAB_TOKEN": "x",
    "SSH_AUTH_SOCK": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "OPENAI_API_KEY": "x",
    "GIT_ASKPASS": "x",
    "GIT_SSH_COMMAND": "x",
    "CLAUDE_CODE_SHELL_PREFIX": "x",
    "CLAUDE_CODE_SESSION_ID": "x",
    "CLAUDECODE": "x",
    "AI_AGENT": "x",
    "NODE_OPTIONS": "x",
    "LD_PRELOAD": "x",
    "INTERLOCK_SESSION": "x",
    "BASH_ENV": "x",
}
CONVERSATION = "7d9b1a54-0000-4000-8000-000000000001"


def started(home: Path, **more: Any) -> ClientCommand:
    start = ClientStart(home, Path("/w/tree"), CONVERSATION, 9, TOOLS)
    return ClaudeCodeHeadless("claude").command(msgspec.structs.replace(start, **more), USER)


def option(command: ClientCommand, name: str) -> Any:
    (word,) = [word for word in command.words if word.startswith(f"--{name}=")]
    return word.partition("=")[2]


def test_hooks_and_server_are_those_of_an_install(home: Path, tmp_path: Path) -> None:
    program, _ = find_program(home)
    assert isinstance(
        install.install(home, HOST, "user", tmp_path, program, at_ms=1), install.InstallReport
    )
    settings = json.loads((tmp_path / ".claude" / "settings.json").read_text())
    servers = json.loads((tmp_path / ".claude.json").read_text())
    shell = settings.get("env", {}).get(SHELL_VARIABLE, "")

    command = started(home, shell=shell)

    assert json.loads(option(command, "settings")) == settings
    assert json.loads(option(command, "mcp-config")) == servers
    assert command.environment.get(SHELL_VARIABLE, "") == shell


def test_the_environment_holds_no_more_than_its_login_and_ours(home: Path) -> None:
    command = started(home, branch="interlock/a/b")

    assert "x" not in command.environment.values()
    kept = {name: value for name, value in USER.items() if value != "x"}
    assert {name: command.environment[name] for name in kept} == kept
    assert command.environment["INTERLOCK_WORKTREE"] == "/w/tree"
    assert command.environment["INTERLOCK_BRANCH"] == "interlock/a/b"
    assert "sk-1" not in repr(command)


def test_a_bearer_is_in_no_word_of_the_command(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bearer").write_text("the-bearer\n")
    server = ServerAddress("http://127.0.0.1:7", tmp_path / "bearer", {"Interlock-Lease": "me:3"})

    command = started(home, server=server)

    (entry,) = json.loads(option(command, "mcp-config"))["mcpServers"].values()
    assert entry["url"] == "http://127.0.0.1:7/mcp"
    assert entry["headers"]["Interlock-Lease"] == "me:3"
    variable = entry["headers"]["Authorization"].removeprefix("Bearer ${").removesuffix("}")
    assert command.environment[variable] == "the-bearer"
    assert "the-bearer" not in " ".join(command.words)
    with pytest.raises(OSError, match="missing"):
        started(home, server=ServerAddress("http://127.0.0.1:7", tmp_path / "missing"))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({}, [f"--session-id={CONVERSATION}", "--max-turns=9"]),
        ({"is_resumed": True}, [f"--resume={CONVERSATION}"]),
        ({"model": "opus"}, ["--model=opus"]),
        ({"rules": "--be brief\n"}, ["--append-system-prompt=--be brief\n"]),
        ({"cost_micros_max": 1}, ["--max-budget-usd=0.000001"]),
        (
            {"tools": ("Read", "Grep")},
            ["--tools=Read,Grep", "--allowedTools=Read,Grep,mcp__interlock"],
        ),
        ({"tools": ()}, ["--tools=", "--allowedTools=mcp__interlock"]),
    ],
)
def test_a_wish_becomes_a_word(home: Path, wish: dict[str, Any], words: list[str]) -> None:
    plain, wished = started(home).words, started(home, **wish).words

    assert set(words) <= set(wished)
    assert len([word for word in wished if word not in plain]) <= len(words)


def test_what_is_said_to_it_is_one_line_whatever_it_holds() -> None:
    text = '/clear\n{"type":"control_request"}\u2028é'
    line = ClaudeCodeHeadless("claude").message_line(text)

    assert line.count(b"\n") == 1
    assert json.loads(line)["message"]["content"] == text
