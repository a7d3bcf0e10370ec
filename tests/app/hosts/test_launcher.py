"""The user's launcher, by the command lines that a client runs, and where something is gone."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from interlock.agents.hosts.claude_code_shell import (
    CALLER_VARIABLE,
    CLIENT_VARIABLE,
    SHELL_VARIABLE,
    is_confined,
)
from interlock.agents.hosts.host import LAUNCHER, cannot_start
from interlock.agents.hosts.launcher import START
from interlock.agents.hosts.own_entries import home_in
from interlock.agents.hosts.registry import NAMES
from interlock.app.clock import SystemClock
from tests.app.hosts.launching import SILENT, Machine, Outcome, hook_commands

Caller = Literal["agent", "harness"]
SCRIPT = f"{LAUNCHER}-bash"
TEXT = 'echo "it\'s $0 $SHELL"'
FULL_EVENTS = ("session-start", "prompt-submit", "stop", "subagent-start", "pre-compact")
"""Those for which the fast hook has nothing to say."""
NOT_RUN = Outcome(126, "", f"{cannot_start('claude-code')}\n")
RUN = Outcome(0, "it's /bin/bash /bin/bash\n", "")

for_each_host = pytest.mark.parametrize("host", NAMES)


@pytest.fixture
def machine(tmp_path: Path, home: Path) -> Machine:
    return installed(tmp_path, home)


def installed(base: Path, home: Path, host: str = "claude-code") -> Machine:
    made = Machine(base, home, host)
    made.install()
    return made


def denied(host: str) -> Outcome:
    return Outcome(2, "", f"{cannot_start(host)}\n")


def shell(machine: Machine, caller: Caller) -> Outcome:
    """As the client does: where the script is gone, it takes the user's shell."""
    script = machine.home / SCRIPT
    program = str(script) if os.access(script, os.X_OK) else "/bin/bash"
    variables = {CALLER_VARIABLE: f"claude-code_2-1-325_{caller}", "SHELL": program}
    return machine.run([program, "-c", TEXT], variables)


@for_each_host
def test_where_everything_is_there_it_is_started(host: str, tmp_path: Path, home: Path) -> None:
    machine = installed(tmp_path, home, host)
    start = machine.package / START

    for event in machine.host.events:
        slow = f"-I -m interlock hook --host {host} --event {event.name} --home {home}"
        fast = f"-I -S {start} hook {host} {event.name} {home} -I"
        words = slow if event.name in FULL_EVENTS else fast
        assert machine.hook(event.name) == Outcome(0, f"started {words}\n", "")
    assert machine.server() == Outcome(0, "started -I -m interlock mcp\n", "")


def test_the_shell_of_an_agent_is_started_and_that_of_the_client_is_the_users(
    machine: Machine,
) -> None:
    start, home = machine.package / START, machine.home

    assert shell(machine, "agent") == Outcome(
        0, f"started -I -S {start} shell {home} -I /bin/bash -c {TEXT}\n", ""
    )
    assert shell(machine, "harness") == RUN


FAULTS: dict[str, Callable[[Machine], object]] = {
    "interpreter": lambda machine: machine.interpreter.unlink(),
    "package": lambda machine: shutil.rmtree(machine.package),
    "launcher": lambda machine: (machine.home / LAUNCHER).unlink(),
    "data home": lambda machine: shutil.rmtree(machine.home),
}


@pytest.mark.slow
@pytest.mark.parametrize("gone", FAULTS)
@for_each_host
def test_where_something_is_gone_only_a_project_that_has_opted_in_is_guarded(
    host: str, gone: str, tmp_path: Path, home: Path
) -> None:
    machine = installed(tmp_path, home, host)
    FAULTS[gone](machine)

    assert {machine.hook(event.name) for event in machine.host.events} == {SILENT}
    machine.opt_in()
    assert machine.hook("pre-tool") == denied(host)
    others = [event.name for event in machine.host.events if event.name != "pre-tool"]
    assert {machine.hook(name) for name in others} == {SILENT}


@pytest.mark.parametrize("gone", ["interpreter", "package"])
@for_each_host
def test_where_the_program_was_removed_files_can_still_be_read(
    host: str, gone: str, tmp_path: Path, home: Path
) -> None:
    machine = installed(tmp_path, home, host)
    machine.opt_in()
    FAULTS[gone](machine)
    example = machine.host.example_call("s", "/a", "read")
    (key,) = example.keys() & {"tool_name", "toolName"}

    def call(tool: str, text: str) -> Outcome:
        more = {"text": text, "tool_name": "Read", "toolName": "Read"}
        payload = {"cwd": "/a", key: tool, "tool_input": more}
        return machine.hook("pre-tool", "user", json.dumps(payload).encode())

    for kind in ("read", "search"):
        for tool in machine.host.tools.get(kind, "").split():
            assert call(tool, "a.py") == SILENT, tool
            assert call(tool, f"{home}/Secret") == denied(host)
    for kind in ("edit", "shell"):
        for tool in machine.host.tools[kind].split():
            assert call(tool, '"tool_name":"Read"') == denied(host), tool


@pytest.mark.parametrize("gone", ["interpreter", "launcher"])
@for_each_host
def test_a_repository_inside_a_project_belongs_to_itself(
    host: str, gone: str, tmp_path: Path, home: Path
) -> None:
    """As where Interlock runs; a worktree and a submodule have a file there, and belong to it."""
    machine = installed(tmp_path, home, host)
    machine.opt_in()
    (machine.project / ".git").mkdir()
    FAULTS[gone](machine)
    inner = machine.project / "src" / ".git"

    inner.mkdir()
    assert machine.hook("pre-tool") == SILENT
    inner.rmdir()
    inner.write_text("gitdir: elsewhere")
    assert machine.hook("pre-tool") == denied(host)


@pytest.mark.parametrize("gone", FAULTS)
def test_where_something_is_gone_the_shell_of_an_agent_is_guarded_too(
    gone: str, machine: Machine
) -> None:
    FAULTS[gone](machine)
    has_launcher = gone in ("interpreter", "package")

    assert shell(machine, "agent") == shell(machine, "harness") == RUN
    machine.opt_in()
    # Without a launcher nothing but the hook can deny, and it has.
    assert shell(machine, "agent") == (NOT_RUN if has_launcher else RUN)
    assert shell(machine, "harness") == RUN


@pytest.mark.parametrize(("code", "outcome"), [(0, 0), (1, 2), (2, 2), (127, 2), (142, 2)])
def test_an_interpreter_that_fails_denies_only_where_a_project_has_opted_in(
    code: int, outcome: int, machine: Machine
) -> None:
    machine.answers(f"exit {code}")

    assert machine.hook("pre-tool").code == (2 if code == 2 else 0)
    machine.opt_in()
    assert machine.hook("pre-tool").code == outcome
    for name in ("post-tool", "tool-failed", "subagent-stop", "session-end"):
        assert machine.hook(name).code == (2 if code == 2 else 0)


@pytest.mark.parametrize("name", ["with space", "O'Brien", 'say "$HOME" `x` \\', "two\nlines"])
@for_each_host
def test_a_data_home_may_have_any_name(host: str, name: str, tmp_path: Path) -> None:
    machine = installed(tmp_path, tmp_path / name, host)
    machine.opt_in()

    assert str(machine.home) in machine.hook("pre-tool").out
    assert machine.server().out == "started -I -m interlock mcp\n"
    commands = hook_commands(machine.host, "user", str(machine.home))
    assert {home_in(command) for command in commands.values()} == {str(machine.home)}
    assert all(machine.host.is_own_command(command) for command in commands.values())
    machine.interpreter.unlink()
    assert machine.hook("pre-tool") == denied(host)
    (machine.home / LAUNCHER).unlink()
    assert machine.hook("pre-tool") == denied(host)


@pytest.mark.parametrize("name", ["with space", "O'Brien", 'say "$HOME" `x` \\', "two\nlines"])
def test_a_shell_of_ours_works_from_a_data_home_of_any_name(name: str, tmp_path: Path) -> None:
    machine = installed(tmp_path, tmp_path / name)
    machine.opt_in()

    assert str(machine.home) in shell(machine, "agent").out
    machine.interpreter.unlink()
    assert shell(machine, "agent") == NOT_RUN
    (machine.home / LAUNCHER).unlink()
    assert shell(machine, "agent") == RUN


def test_a_client_that_began_before_the_install_is_not_taken_for_confined(
    machine: Machine,
) -> None:
    """It has taken up the settings, but keeps the shell that it has used before."""
    script, home = machine.home / SCRIPT, str(machine.home)
    client = subprocess.Popen(["sleep", "60"])
    began = SystemClock().now_ms() / 1000
    environment = {
        SHELL_VARIABLE: str(script),
        CALLER_VARIABLE: "claude-code_2-1-325_harness",
        CLIENT_VARIABLE: str(client.pid),
    }
    try:
        os.utime(script, (began - 1, began - 1))
        assert is_confined(environment, "Bash", home)
        assert not is_confined(environment, "PowerShell", home)
        assert not is_confined(environment, "Bash", f"{home}2")
        for name in environment:
            assert not is_confined({**environment, name: ""}, "Bash", home)
        os.utime(script, (began + 1, began + 1))
        assert not is_confined(environment, "Bash", home)
        script.unlink()
        assert not is_confined(environment, "Bash", home)
    finally:
        client.kill()
        client.wait()
