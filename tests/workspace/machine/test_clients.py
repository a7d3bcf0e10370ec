"""Clients are remembered by their process, and forgotten when they have gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.workspace.machine import clients, processes
from interlock.workspace.machine.clients import RETENTION_MS, Client
from interlock.workspace.machine.processes import Process

NOW_MS = 1_000_000_000_000  # long ago: what is written now is not old then


def itself() -> Process:
    return processes.running_processes([os.getpid()])[0]


def remember(home: Path, process: Process, conversation: str, now_ms: int = NOW_MS) -> None:
    clients.remember(home, process, "claude-code", conversation, now_ms=now_ms)


def test_a_process_holds_the_conversation_that_it_was_last_seen_with(home: Path) -> None:
    remember(home, itself(), "one")
    remember(home, itself(), "two")

    mine = itself()
    newest = Client(mine.pid, mine.started, "claude-code", "two", processes.machine(), NOW_MS)
    assert clients.recall(home, mine) == [newest]
    assert clients.look_for_clients(home).held == {("claude-code", "two"): NOW_MS}


def test_a_number_that_came_back_is_another_process(home: Path) -> None:
    remember(home, itself()._replace(started="long ago"), "one")

    assert clients.recall(home, itself()) == []
    assert clients.look_for_clients(home).gone == {("claude-code", "one")}


def test_a_process_of_another_machine_cannot_be_said_to_be_gone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "machine", lambda: "a container")
    remember(home, itself()._replace(started="there"), "one")
    monkeypatch.undo()

    assert clients.look_for_clients(home).unseen == {("claude-code", "one")}
    assert clients.look_for_clients(home).gone == frozenset()


def test_a_process_may_hold_several_and_a_machine_without_a_name_says_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "machine", lambda: "")
    process = itself()._replace(started="gone")
    for number, name in enumerate(("one", "two")):
        clients.remember(home, process, "codex", name, now_ms=number, holds_one=False)

    assert [held.conversation for held in clients.recall(home, process)] == ["two", "one"]
    assert clients.look_for_clients(home).gone == frozenset()


def test_what_is_kept_is_for_the_users_eyes(home: Path) -> None:
    remember(home, itself(), "one")

    assert (home / clients.DIRECTORY).stat().st_mode & 0o777 == 0o700


def test_a_file_that_makes_no_sense_is_no_client(home: Path) -> None:
    remember(home, itself(), "one")
    (path,) = (home / clients.DIRECTORY).iterdir()
    path.write_text("{")

    assert clients.recall(home, itself()) == []
    assert clients.look_for_clients(home) == ({}, frozenset(), frozenset(), {})


def test_those_that_have_gone_are_forgotten_after_a_while(home: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (gone,) = processes.running_processes([child.pid])
    remember(home, gone, "gone")
    child.communicate(b"\n")
    (path,) = (home / clients.DIRECTORY).iterdir()
    os.utime(path, (NOW_MS / 1_000, NOW_MS / 1_000))

    remember(home, itself(), "here", NOW_MS + RETENTION_MS)
    assert clients.recall(home, gone) is not None
    remember(home, itself(), "here", NOW_MS + RETENTION_MS + 1)

    assert clients.recall(home, gone) == []
    assert clients.recall(home, itself()) is not None
