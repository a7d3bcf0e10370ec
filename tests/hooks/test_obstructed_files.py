"""Where a file should be is a pipe, a device or something without end: nobody waits for it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.agents.hosts.claude_code import HOST
from interlock.cli import commands
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent
from tests.hooks.desk import Desk

pytestmark = pytest.mark.timeout(20)  # the busiest machine needs less, and a pipe never ends
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


NOTED: tuple[HookEvent, ...] = ("post-tool", "session-start", "prompt-submit")


@pytest.fixture
def desk(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    made = Desk(home, tmp_path)
    made.config(LOOSE)
    made.begin()
    return made


@pytest.mark.parametrize("obstruction", OBSTRUCTIONS)
def test_a_config_that_is_no_file_denies_at_once_and_stops_no_command(
    desk: Desk, obstruction: str
) -> None:
    path = desk.project / ".interlock" / "config.toml"
    path.unlink()
    OBSTRUCTIONS[obstruction](path)

    denied = desk.tool("Write", file_path="a")

    reason = "it has more than 256 KB" if obstruction == "endless" else "it is not a file"
    assert denied.answer == "deny"
    assert reason in denied.text
    assert commands.run_cli(["trust", "--show"]) == 1
    assert commands.run_cli(["workflow", "list"]) == 1


@pytest.mark.parametrize("name", HOME_FILES)
def test_a_pipe_in_the_data_home_keeps_nobody_waiting(desk: Desk, name: str) -> None:
    path = desk.home / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    payload = json.dumps({"session_id": desk.session, "tool_name": "Write"}).encode()

    assert desk.tool("Write", file_path="a").answer == "deny"
    for event in NOTED:
        assert run_hook(HOST, event, desk.home, payload).code == 0
    assert commands.run_cli(HOME_FILES[name].split()) in (0, 1)
