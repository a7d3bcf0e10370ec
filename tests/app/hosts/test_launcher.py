"""The launcher, by the command lines that a client runs: what happens where something is gone."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code import Scope
from interlock.agents.hosts.claude_code_shell import LAUNCHER, shell_prefix
from interlock.agents.hosts.launcher import REPAIR, START, Program, launcher_text

Caller = Literal["agent", "harness"]
STAND_IN = '#!/bin/sh\necho "started $*"\n'
TEXT = 'source /u/.claude/shell-snapshots/snapshot-bash-1-x.sh 2>/dev/null || true && echo "it\'s"'


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


SILENT = Outcome(0, "", "")
DENIED = Outcome(2, "", f"{REPAIR}\n")
NOT_RUN = Outcome(126, "", f"{REPAIR}\n")
RUN = Outcome(0, "it's\n", "")


class Machine:
    """An interpreter and a package that say that they were started, and a project."""

    def __init__(self, base: Path, home: Path) -> None:
        self.home, self.project = home, base / "my project"
        self.interpreter, self.package = base / "bin of ours" / "python", base / "site" / "it's"
        (self.project / "src").mkdir(parents=True)
        (self.package / START).parent.mkdir(parents=True)
        (self.package / START).write_text("")
        self.interpreter.parent.mkdir()
        self.interpreter.write_text(STAND_IN)
        self.interpreter.chmod(0o755)
        self.program = Program(str(self.interpreter), ("-I",), str(home), str(self.package))
        home.mkdir(parents=True)
        (home / LAUNCHER).write_text(launcher_text(self.program))

    def opt_in(self) -> None:
        (self.project / ".interlock").mkdir()
        (self.project / ".interlock" / "config.toml").write_text("")

    def hook(self, name: str, scope: Scope = "user") -> Outcome:
        (hook,) = [hook for hook in claude_code.HOOKS if hook.name == name]
        return self._run(claude_code.hook_command(str(self.home), hook, scope), "harness")

    def shell(self, caller: Caller, text: str = TEXT) -> Outcome:
        return self._run(f"{shell_prefix(str(self.home))} {shlex.quote(text)}", caller)

    def _run(self, line: str, caller: Caller) -> Outcome:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.project / "src",
            env={"PATH": os.environ["PATH"], "AI_AGENT": f"claude-code_2-1-325_{caller}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)


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
        0, f"started -I -S {start} shell {home} {TEXT} -I\n", ""
    )
    assert machine.shell("harness") == RUN
    entry = claude_code.server(str(home))
    started = subprocess.run(
        [str(entry["command"]), *map(str, entry["args"])],  # pyright: ignore[reportArgumentType]
        capture_output=True,
        check=True,
    )
    assert started.stdout == b"started -I -m interlock mcp\n"


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
    machine.interpreter.write_text(f"#!/bin/sh\nexit {code}\n")

    assert machine.hook("pre-tool").code == (2 if code == 2 else 0)
    assert machine.hook("post-tool").code == (2 if code == 2 else 0)
    machine.opt_in()
    assert machine.hook("pre-tool").code == outcome


@pytest.mark.parametrize(
    "name", ["with space", "O'Brien", 'say "hi"', "$HOME `x` \\", "zwei\nteile"]
)
def test_a_data_home_may_have_any_name(name: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, tmp_path / name)
    machine.opt_in()

    assert str(machine.home) in machine.hook("pre-tool").out
    command = claude_code.hook_command(str(machine.home), claude_code.HOOKS[0], "user")
    assert claude_code.home_in(command) == str(machine.home)
    machine.interpreter.unlink()
    assert machine.hook("pre-tool") == DENIED


@pytest.mark.parametrize(
    ("text", "shell"),
    [
        (
            "source /u/.claude/shell-snapshots/snapshot-zsh-1-x.sh 2>/dev/null || true && echo",
            "zsh",
        ),
        (TEXT, "bash"),
        (f"{TEXT} /snapshot-zsh-1 2>/dev/null", "bash"),
        ("echo it", "/bin/sh"),
    ],
)
def test_a_text_of_the_client_goes_to_the_shell_for_which_it_was_written(
    text: str, shell: str, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bash", "zsh"):
        path = tmp_path / "bin of ours" / name
        path.write_text(f"#!/bin/sh\necho {name}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin of ours:/usr/bin:/bin")

    assert machine.shell("harness", text).out == ("it\n" if shell == "/bin/sh" else f"{shell}\n")
