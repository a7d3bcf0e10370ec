"""What the model's commands can change in the real Claude Code, by the mode of its session."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.desk import Desk
from tests.e2e.real_clients import OFFLINE
from tests.e2e.terminal import KEY, ClaudeTerminal
from tests.e2e.test_claude import CLAUDE, desk, play, pytestmark

__all__ = ["desk", "pytestmark"]  # a fixture, and what all tests with the client need

PERMISSIONS = {"allow": ["Bash(cat:*)", "Bash(pytest:*)"], "deny": ["Bash(wc:*)"]}
OWN_HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": "cat > own-hook"}]}
RULED = (
    *("cat seen.txt", "pytest --version", "wc -l seen.txt", "python3 -c 'print(1)'"),
    *("cat seen.txt && wc x", "pytest --version && echo x > new.txt"),
)


def shell(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command, "description": "try"}}


def results(requests: list[dict[str, Any]]) -> list[str]:
    """The results of the tools, as the model got them."""
    found: dict[str, str] = {}
    for request in requests:
        for message in request["body"]["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block.get("type") == "tool_result":
                    found[block["tool_use_id"]] = str(block["content"])
    return list(found.values())


def test_a_command_that_writes_runs_and_fails_and_the_model_reads_why(desk: Desk) -> None:
    requests = play(
        desk,
        shell("cat seen.txt && echo x > new.txt"),
        shell("mkdir -p $TMPDIR/made && git status --short && cd .git"),
        shell("pwd; cat $INTERLOCK_HOME/keyring"),
        shell("interlock mode planning"),
        shell('python3 -c \'open("new.txt", "w")\'; git -C .. log'),
    )

    assert not (desk.project / "new.txt").exists()
    assert "shell commands run in a sandbox" in json.dumps(requests), "told when it began"
    failed, listed, hidden, changed, planned = results(requests)
    assert "here" in failed, "what it read before"
    assert "new.txt: Permission denied" in failed
    assert "the mode is analysis" in failed
    assert "/mode coding" in failed
    assert "interlock:" not in listed, "nothing failed"
    assert f"{desk.project}/.git\n" in hidden, "the directory is that of the command before"
    assert "keyring: Permission denied" in hidden
    assert "mode planning" in changed
    assert "the mode is planning" in planned


def test_the_users_permission_rules_decide_as_without_interlock(desk: Desk) -> None:
    settings = desk.project / ".claude" / "settings.local.json"
    settings.parent.mkdir(exist_ok=True)
    hooks = {"PreToolUse": [OWN_HOOK]}
    settings.write_text(json.dumps({"permissions": PERMISSIONS, "hooks": hooks}))

    def outcomes() -> list[str]:
        requests = play(desk, *map(shell, RULED), allowed="Read")
        return [text.partition("interlock:")[0].strip() for text in results(requests)]

    with_interlock = outcomes()
    assert not (desk.project / "new.txt").exists()
    assert (desk.project / "own-hook").exists(), "a hook of the user's changes nothing"
    desk.interlock("uninstall", "claude-code")

    assert with_interlock == outcomes()
    assert with_interlock[0] == "here"
    assert with_interlock[1].startswith("pytest ")
    assert "denied" in with_interlock[2]


def test_a_conversation_in_a_subdirectory_is_confined_too(desk: Desk) -> None:
    (desk.project / "sub").mkdir()

    requests = play(desk, shell("echo x > new.txt"), directory="sub")

    assert not (desk.project / "sub" / "new.txt").exists()
    assert "the mode is analysis" in results(requests)[0]


@pytest.mark.parametrize("place", ["user", pytest.param("project", marks=pytest.mark.long)])
@pytest.mark.parametrize("variable", ["CLAUDE_CODE_SHELL", "CLAUDE_CODE_SHELL_PREFIX"])
def test_a_shell_of_the_users_own_does_not_silently_open_the_gate(
    desk: Desk, variable: str, place: str
) -> None:
    """Then the gate decides by the text of a command; a prefix runs in our shell, as all does."""
    own = desk.base / "own-bash"
    own.write_text('#!/bin/sh\n[ "$1" = -c ] && exec bash "$@"\nexec bash -c "$1"\n')
    own.chmod(0o755)
    setting = {"env": {variable: str(own)}}
    if place == "user":
        desk.interlock("uninstall", "claude-code")
        path = desk.base / "user" / ".claude" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(setting))
        installed = desk.interlock("install", "claude-code")
        assert ("stays" in installed) == (variable == "CLAUDE_CODE_SHELL")
    else:
        path = desk.project / ".claude" / "settings.local.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(setting))

    requests = play(desk, shell("echo x > new.txt"), shell("cat seen.txt"))

    assert not (desk.project / "new.txt").exists()
    assert results(requests)[1] == "here"


def test_what_the_user_types_lets_commands_write(desk: Desk) -> None:
    """In a terminal: reading in analysis, then `/mode`, then `/mode coding`."""
    made = desk.project / "made.txt"
    turns = (
        shell("echo x > made.txt"),
        "word-one",
        "word-two",
        "word-three",
        shell("echo x > made.txt"),
        "word-four",
    )
    with desk.model(*turns) as (address, log):
        environment = desk.environment(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=address, **OFFLINE)
        terminal = ClaudeTerminal(CLAUDE.program, desk.project, environment)
        try:
            terminal.wait_for("shift+tab")
            terminal.type_line("go")
            terminal.wait_for("word-one")
            assert not made.exists()
            terminal.type_line("/mode")
            terminal.wait_for("word-two")
            terminal.type_line("/mode coding --task T-1")
            terminal.wait_for("word-three")
            terminal.type_line("go on")
            terminal.wait_for("word-four")
        finally:
            terminal.close()

    assert made.read_text() == "x\n"
    bodies = Path(log).read_text()
    assert "The mode is analysis" in bodies, "the answer to `/mode` alone"
    assert "The user has set the mode to coding" in bodies
