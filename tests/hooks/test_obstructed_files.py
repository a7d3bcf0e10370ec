"""Where a file should be is a pipe, a device or something without end: nobody waits for it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hooks.desk import Desk

DEADLINE_SECONDS = 20  # the busiest machine needs less, and a pipe would need for ever
HOOK = "hook --host claude-code --event pre-tool"
LOOSE = '[gate]\nreading_tools = ["x"]\n'


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def endless_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


OBSTRUCTIONS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "directory": os.mkdir,
    "device": link_to_zeros,
    "endless": endless_file,
}
HOME_FILES = {
    "gate-off": "mode",
    "gate.db": "mode planning",
    "installed.json": "mode",
    "config.toml": "preferences show",
    "trusted.json": "trust --show",
    "bypasses.json": "gate bypass list",
    "spool/gate.jsonl": "gate log",
}
"""With a command that reads the file too."""


@pytest.fixture
def desk(home: Path, tmp_path: Path) -> Desk:
    made = Desk(home, tmp_path)
    made.config(LOOSE)
    made.begin()
    return made


def run(desk: Desk, words: str) -> subprocess.CompletedProcess[bytes]:
    payload = {"session_id": desk.session, "cwd": str(desk.project), "tool_name": "Write"}
    return subprocess.run(
        [sys.executable, "-m", "interlock", *words.split()],
        input=json.dumps({**payload, "tool_input": {"file_path": "a"}}).encode(),
        capture_output=True,
        cwd=desk.project,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("obstruction", OBSTRUCTIONS)
def test_a_config_that_is_no_file_denies_at_once_and_stops_no_command(
    desk: Desk, obstruction: str
) -> None:
    path = desk.project / ".interlock" / "config.toml"
    path.unlink()
    OBSTRUCTIONS[obstruction](path)

    denied = run(desk, HOOK)

    reason = "it has more than 256 KB" if obstruction == "endless" else "it is not a file"
    answer = json.loads(denied.stdout)["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert reason in answer["permissionDecisionReason"]
    assert run(desk, "trust --show").returncode == 1
    assert run(desk, "workflow list").returncode == 1


@pytest.mark.parametrize("name", HOME_FILES)
def test_a_pipe_in_the_data_home_keeps_nobody_waiting(desk: Desk, name: str) -> None:
    path = desk.home / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)

    denied = run(desk, HOOK)

    assert json.loads(denied.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert run(desk, "hook --host claude-code --event post-tool").returncode == 0
    for event in ("session-start", "prompt-submit"):
        assert run(desk, f"hook --host claude-code --event {event}").returncode == 0
    assert run(desk, HOME_FILES[name]).returncode in (0, 1)
