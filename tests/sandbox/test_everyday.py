"""Everyday commands do the same inside the sandbox as outside, and change nothing there.

`everyday.toml` has the commands, `project.py` the project that they are run in.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import pytest

from interlock.core.gate.network_use import network_use
from interlock.core.gate.shell import analyse
from interlock.sandbox.command import _CACHES, _SETTINGS  # pyright: ignore[reportPrivateUsage]
from tests.effort import sample
from tests.sandbox.project import EverydayProject

SECONDS_MAX = 30
DIFFERING_SHARE_MAX = 0.02
COMMANDS = 40
"""How many of them `make test` runs: most of them make the same system calls."""


OUR_SETTINGS = re.compile(
    r"^({})\b|^({})\b|environment$".format(
        "|".join((*_SETTINGS, *_CACHES, "PYTEST_ADDOPTS", "INTERLOCK_SANDBOX")),
        "|".join(
            name.removeprefix("npm_config_").replace("_", "-")
            for name in (*_SETTINGS, *_CACHES)
            if name.startswith("npm_config_")
        ),
    )
)
"""The lines with which a command shows what the sandbox sets, in the environment or for npm."""


class EverydayCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    run: str
    needs: tuple[str, ...] = ()
    normalise: tuple[str, ...] = ()
    cold: str = ""
    shows_settings: bool = False


class Theme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    commands: tuple[str | EverydayCommand, ...]
    needs: tuple[str, ...] = ()
    reads: Literal["local", "remote"] = "local"

    def entries(self) -> Iterator[EverydayCommand]:
        for command in self.commands:
            entry = EverydayCommand(command) if isinstance(command, str) else command
            yield msgspec.structs.replace(entry, needs=(*self.needs, *entry.needs))


THEMES = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("everyday.toml").read_text(encoding="utf-8")),
    dict[str, Theme],
)
LOCAL = [entry for theme in THEMES.values() if theme.reads == "local" for entry in theme.entries()]
REMOTE = [
    entry.run for theme in THEMES.values() if theme.reads == "remote" for entry in theme.entries()
]


class Outcome(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


class Trial(NamedTuple):
    command: str
    outside: Outcome
    inside: Outcome
    changes: list[str]
    """The paths that the command changed from inside the sandbox."""

    @property
    def differs(self) -> bool:
        """True if an agent would have been told something else. Errors may be worded otherwise."""
        return self.outside[:2] != self.inside[:2] or (self.outside.stderr == "") != (
            self.inside.stderr == ""
        )


def run_bare(command: str, project: EverydayProject) -> Outcome:
    return _run(["bash", "-c", command], project)


def run_sandboxed(command: str, project: EverydayProject) -> Outcome:
    """Run it read-only, without the line that the sandbox adds for a command that has failed."""
    wrapper = [sys.executable, "-m", "interlock", "sandbox", "run", "--level", "read-only", "--"]
    exit_code, stdout, stderr = _run([*wrapper, "bash", "-c", command], project)
    return Outcome(exit_code, stdout, re.sub(r"(?m)^interlock:.*\n", "", stderr))


def _run(arguments: list[str], project: EverydayProject) -> Outcome:
    """Run it as an agent's client does: without a terminal and without input."""
    with subprocess.Popen(
        arguments,
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            stderr += f"\nnot finished after {SECONDS_MAX} seconds"
    return Outcome(process.returncode, stdout, stderr)


def _normalised(outcome: Outcome, entry: EverydayCommand) -> Outcome:
    stdout = outcome.stdout
    for pattern in entry.normalise:
        stdout = re.sub(pattern, "…", stdout)
    if entry.shows_settings:
        lines = [line for line in stdout.splitlines() if not OUR_SETTINGS.search(line)]
        stdout = "\n".join(line for line in lines if line)
    # Whether Python notices that `head` has had enough depends on which of them is faster.
    stderr = re.sub(r"(?s)(Exception ignored|Traceback).*BrokenPipeError.*?\n", "", outcome.stderr)
    return outcome._replace(stdout=stdout, stderr=stderr)


def _missing_programs(entry: EverydayCommand, project: EverydayProject) -> list[str]:
    path = project.environment["PATH"]
    return [name for name in entry.needs if shutil.which(name, path=path) is None]


def _try_commands(project: EverydayProject, entries: Sequence[EverydayCommand]) -> list[Trial]:
    trials: list[Trial] = []
    for entry in entries:
        if _missing_programs(entry, project):
            continue
        outside = run_bare(entry.run, project)
        project.restore()
        inside = run_sandboxed(entry.run, project)
        changes = project.restore()
        outside, inside = (_normalised(outcome, entry) for outcome in (outside, inside))
        trials.append(Trial(entry.run, outside, inside, changes))
    return trials


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> EverydayProject:
    made = EverydayProject(tmp_path_factory.mktemp("everyday"))
    if run_sandboxed("true", made).exit_code != 0:
        pytest.skip("NOT TESTED: there is no sandbox on this machine, so no command is run in it")
    return made


@pytest.fixture(scope="module")
def trials(project: EverydayProject, tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """Every command that asks nobody else, run outside and inside, as far as it can be run here."""
    projects = [project, EverydayProject(tmp_path_factory.mktemp("everyday"))]
    tried = sample(LOCAL, COMMANDS)
    halves = [tried[0::2], tried[1::2]]
    with ThreadPoolExecutor(len(projects)) as pool:
        trials = [*chain(*pool.map(_try_commands, projects, halves))]
    print(f"{len(trials)} commands, {len(tried) - len(trials)} skipped: a program is missing")
    return trials


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_everyday_commands_do_the_same_inside_as_outside(trials: list[Trial]) -> None:
    unknown = [trial.command for trial in trials if trial.outside.exit_code in (126, 127)]
    differing = [trial for trial in trials if trial.differs]

    assert unknown == [], "these do not run at all: say what they need"
    share = len(differing) / len(trials)
    print("\n".join(trial.command for trial in differing))
    assert share <= DIFFERING_SHARE_MAX, "\n".join(
        f"{trial.command}\n  outside: {trial.outside}\n  inside:  {trial.inside}"
        for trial in differing
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_everyday_command_changes_the_project_or_the_home(trials: list[Trial]) -> None:
    assert {trial.command: trial.changes for trial in trials if trial.changes} == {}


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in LOCAL if entry.cold], ids=lambda e: e.run)
def test_a_second_call_finds_the_cache_of_the_first(
    entry: EverydayCommand, project: EverydayProject
) -> None:
    if missing := _missing_programs(entry, project):
        pytest.skip(f"{missing} are missing")
    first = run_sandboxed(entry.run, project)
    second = run_sandboxed(f"({entry.run}) > /dev/null 2>&1; {entry.run}", project)

    assert re.search(entry.cold, first.stdout + first.stderr)
    assert not re.search(entry.cold, second.stdout + second.stderr)


def test_no_local_command_is_asked_about() -> None:
    """Those that need a network or a daemon are: the others keep the sandbox as it is."""
    asked = [entry.run for entry in LOCAL if network_use(analyse(entry.run))]
    not_asked = [command for command in REMOTE if not network_use(analyse(command))]
    local = ("journalctl", "ss", "lsof", "netstat")  # they read what every command may read
    unsupported = ("git remote show", "npm outdated", "go list")  # they need more of the directory

    assert asked == []
    assert [command for command in not_asked if not command.startswith(local + unsupported)] == []
