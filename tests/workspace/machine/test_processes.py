"""Processes, really started: who led to whom, and that a number is not mistaken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.workspace.machine import processes
from interlock.workspace.machine.processes import Process

# macOS: the path of a program, which may have spaces; a login shell has a dash.
PS = """\
    1     0 Sat Nov 15 20:01:02 2026 /sbin/launchd
  512     1 Sat Nov 15 20:05:00 2026 /Applications/My Terminal.app/Contents/MacOS/My Terminal
  600   512 Sat Nov 15 20:05:01 2026 -zsh
 7001   600 Sun Nov  1 09:00:00 2026 /opt/homebrew/bin/node
not a line
"""


@pytest.fixture(params=["proc", "ps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to ask the system, where it knows both."""
    if request.param == "proc" and not (processes.PROC / "self" / "stat").exists():
        pytest.skip("there is no /proc here")
    if request.param == "ps":
        monkeypatch.setattr(processes, "PROC", Path("/no/such/proc"))
    return request.param


def test_those_that_led_to_a_process_are_listed_nearest_first(way: str) -> None:
    program = "import os; print(os.getppid(), os.getpid()); input()"
    child = subprocess.Popen(
        ["/bin/sh", "-c", f"{sys.executable} -c '{program}'; true"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    shell, python = map(int, child.stdout.readline().split())

    led = processes.ancestors(python)
    child.communicate("\n")

    assert [found.pid for found in led[:2]] == [shell, os.getpid()], way
    assert led[0].name in ("sh", "dash", "bash", "busybox")
    assert all(found.started for found in led)
    assert led[1:] == [
        next(p for p in led if p.pid == os.getpid()),
        *processes.ancestors(led[1].pid),
    ]


def test_a_process_is_told_from_a_later_one_with_its_number(way: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (found,) = processes.running_processes([child.pid])
    child.communicate(b"\n")

    assert found.started != processes.ancestors(os.getpid())[0].started, way
    assert processes.running_processes([child.pid]) == []


def test_where_the_system_does_not_tell_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROC", Path("/no/such/proc"))
    monkeypatch.setattr(processes, "PS", "no-such-program")

    assert processes.ancestors(os.getpid()) == []
    assert processes.running_processes([os.getpid()]) == []


def test_what_ps_says_is_read() -> None:
    found = processes.parse_ps(PS)

    assert {pid: (child.process.name, child.parent) for pid, child in found.items()} == {
        1: ("launchd", 0),
        512: ("My Terminal", 1),
        600: ("-zsh", 512),
        7001: ("node", 600),
    }
    assert found[7001].process == Process(7001, "Sun Nov 1 09:00:00 2026", "node")


def test_the_command_line_of_a_process_is_read(way: str) -> None:
    program = "print(flush=True);input()"  # `ps` shows words
    child = subprocess.Popen(
        [sys.executable, "-c", program, "one", "two"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    child.stdout.readline()  # Linux shows the command line only some time after `exec`
    (found,) = processes.running_processes([child.pid])

    has_terminal, words = processes.terminal_and_words(found)
    child.communicate(b"\n")

    assert (has_terminal, words) == (False, (sys.executable, "-c", program, "one", "two")), way
    assert processes.terminal_and_words(found) == (False, ())
