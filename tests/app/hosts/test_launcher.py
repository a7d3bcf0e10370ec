"""The launcher, by the command lines that a client runs: what happens where something is gone."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code import Scope
from interlock.agents.hosts.claude_code_shell import (
    CALLER_VARIABLE,
    CLIENT_VARIABLE,
    LAUNCHER,
    SHELL_VARIABLE,
    is_confined,
)
from interlock.agents.hosts.launcher import CANNOT_START, START, Program
from interlock.app.clock import SystemClock
from interlock.app.hosts import install as use
from interlock.app.hosts.install import InstallReport

Caller = Literal["agent", "harness"]
SCRIPT = f"{LAUNCHER}-bash"
TEXT = 'echo "it\'s $0 $SHELL"'


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


SILENT = Outcome(0, "", "")
DENIED = Outcome(2, "", f"{CANNOT_START}\n")
NOT_RUN = Outcome(126, "", f"{CANNOT_START}\n")
RUN = Outcome(0, "it's /bin/bash /bin/bash\n", "")


class Machine:
    """An interpreter and a package that say that they were started, and a project."""

    def __init__(self, base: Path, home: Path) -> None:
        self.home, self.project = home, base / "my project"
        self.interpreter, self.package = base / "bin of ours" / "python", base / "site" / "it's"
        (self.project / "src").mkdir(parents=True)
        (self.package / START).parent.mkdir(parents=True)
        (self.package / START).write_text("")
        self.interpreter.parent.mkdir()
        self.answers('echo "started $*"')
        package = str(self.package)
        program = Program(str(self.interpreter), ("-I",), str(home), package, "/bin/bash")
        assert isinstance(use.install(home, "user", base, program, at_ms=1), InstallReport)

    def answers(self, script: str) -> None:
        self.interpreter.write_text(f"#!/bin/sh\n{script}\n")
        self.interpreter.chmod(0o755)

    def opt_in(self) -> None:
        (self.project / ".interlock").mkdir()
        (self.project / ".interlock" / "config.toml").write_text("")

    def hook(self, name: str, scope: Scope = "user") -> Outcome:
        (hook,) = [hook for hook in claude_code.HOOKS if hook.name == name]
        line = claude_code.hook_command(str(self.home), hook, scope)
        return self._run(["/bin/sh", "-c", line], "harness")

    def shell(self, caller: Caller) -> Outcome:
        """As the client does: where the script is gone, it takes the user's shell."""
        script = self.home / SCRIPT
        shell = str(script) if os.access(script, os.X_OK) else "/bin/bash"
        return self._run([shell, "-c", TEXT], caller, SHELL=shell)

    def _run(self, words: list[str], caller: Caller, **variables: str) -> Outcome:
        done = subprocess.run(
            words,
            cwd=self.project / "src",
            env={
                "PATH": os.environ["PATH"],
                CALLER_VARIABLE: f"claude-code_2-1-325_{caller}",
                **variables,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use, "STANDALONE", ())


@pytest.fixture
def machine(tmp_path: Path, home: Path) -> Machine:
    return Machine(tmp_path, home)


def test_where_everything_is_there_it_is_started(machine: Machine) -> None:
    start, home = machine.package / START, machine.home

    assert machine.hook("pre-tool") == Outcome(
        0, f"started -I -S {start} hook claude-code pre-tool {home} -I\n", ""
    )
    assert machine.hook("session-start") == Outcome(
        0,
        f"started -I -m interlock hook --host claude-code --event session-start --home {home}\n",
        "",
    )
    assert machine.shell("agent") == Outcome(
        0, f"started -I -S {start} shell {home} -I /bin/bash -c {TEXT}\n", ""
    )
    assert machine.shell("harness") == RUN
    entry = claude_code.start_of(claude_code.server(str(home)))
    assert entry is not None
    assert subprocess.check_output(entry[0]) == b"started -I -m interlock mcp\n"


FAULTS: dict[str, Callable[[Machine], object]] = {
    "interpreter": lambda machine: machine.interpreter.unlink(),
    "package": lambda machine: shutil.rmtree(machine.package),
    "launcher": lambda machine: (machine.home / LAUNCHER).unlink(),
    "data home": lambda machine: shutil.rmtree(machine.home),
}


@pytest.mark.parametrize("gone", FAULTS)
def test_where_something_is_gone_nobody_notices_who_has_not_opted_in(
    gone: str, machine: Machine
) -> None:
    FAULTS[gone](machine)

    assert {machine.hook(hook.name) for hook in claude_code.HOOKS} == {SILENT}
    assert machine.hook("pre-tool", "project") == SILENT
    assert machine.shell("agent") == machine.shell("harness") == RUN


@pytest.mark.parametrize("gone", FAULTS)
def test_where_something_is_gone_a_project_that_has_opted_in_is_guarded_and_told_so(
    gone: str, machine: Machine
) -> None:
    machine.opt_in()
    FAULTS[gone](machine)
    has_launcher = gone in ("interpreter", "package")

    assert machine.hook("pre-tool") == DENIED
    others = [hook.name for hook in claude_code.HOOKS if hook.name != "pre-tool"]
    assert {machine.hook(name) for name in others} == {SILENT}
    # A colleague who has never installed Interlock has no launcher either.
    assert machine.hook("pre-tool", "project") == (DENIED if has_launcher else SILENT)
    # Without a launcher nothing but the hook can deny, and it has.
    assert machine.shell("agent") == (NOT_RUN if has_launcher else RUN)
    assert machine.shell("harness") == RUN


@pytest.mark.parametrize(("code", "outcome"), [(0, 0), (1, 2), (2, 2), (127, 2), (142, 2)])
def test_an_interpreter_that_fails_denies_only_where_a_project_has_opted_in(
    code: int, outcome: int, machine: Machine
) -> None:
    machine.answers(f"exit {code}")

    assert machine.hook("pre-tool").code == (2 if code == 2 else 0)
    machine.opt_in()
    assert machine.hook("pre-tool").code == outcome
    assert machine.hook("post-tool").code == (2 if code == 2 else 0)


@pytest.mark.parametrize("name", ["with space", "O'Brien", 'say "$HOME" `x` \\', "two\nlines"])
def test_a_data_home_may_have_any_name(name: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, tmp_path / name)
    machine.opt_in()

    assert str(machine.home) in machine.hook("pre-tool").out
    assert str(machine.home) in machine.shell("agent").out
    command = claude_code.hook_command(str(machine.home), claude_code.HOOKS[0], "user")
    assert claude_code.home_in(command) == str(machine.home)
    machine.interpreter.unlink()
    assert machine.hook("pre-tool") == DENIED
    assert machine.shell("agent") == NOT_RUN
    (machine.home / LAUNCHER).unlink()
    assert machine.hook("pre-tool") == DENIED
    assert machine.shell("agent") == RUN


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
