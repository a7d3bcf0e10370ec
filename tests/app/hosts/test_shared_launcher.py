"""What a team shares, on every machine: with Interlock, without it, and where it is there twice."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.host import LAUNCHER, cannot_start
from interlock.agents.hosts.launcher import START
from interlock.agents.hosts.registry import NAMES
from interlock.app.hosts.install import PLUGIN, InstallReport, write_plugin
from interlock.app.hosts.markers import mark_installed
from tests.app.hosts.launching import PATH, SILENT, Machine, Outcome, hook_commands, server_start

pytestmark = pytest.mark.slow

for_each_host = pytest.mark.parametrize("host", NAMES)


class Team(Machine):
    """A project with our files in it, and a colleague who has no data home."""

    def __init__(self, base: Path, host: str) -> None:
        super().__init__(base, base / "data home", host)
        self.user.mkdir()
        self.install("project")
        shutil.rmtree(self.home)

    def make_home(self, home: Path) -> None:
        """A data home of the colleague's, of an Interlock that says that it was started."""
        self.home = home
        self.program = type(self.program)(
            str(self.interpreter), ("-I",), str(home), str(self.package)
        )
        self.install("project")

    def started(self, event: str) -> Outcome:
        words = f"hook --host {self.host.name} --event {event} --home {self.home}"
        fast = f"-I -S {self.package / START} hook {self.host.name} {event} {self.home} -I"
        is_fast = event in ("pre-tool", "post-tool", "tool-failed", "subagent-stop", "session-end")
        return Outcome(0, f"started {fast if is_fast else f'-I -m interlock {words}'}\n", "")


@pytest.fixture
def team(tmp_path: Path, request: pytest.FixtureRequest) -> Team:
    return Team(tmp_path, getattr(request, "param", "claude-code"))


each_team = pytest.mark.parametrize("team", NAMES, indirect=True)


@each_team
def test_without_interlock_nothing_is_in_the_way_and_a_session_is_told_once(team: Team) -> None:
    assert shutil.which("interlock", path=PATH) is None
    events = [event.name for event in team.host.events]

    outcomes = {name: team.hook(name, "project") for name in events}

    begun = outcomes.pop("session-start")
    assert set(outcomes.values()) == {SILENT}
    assert (begun.code, begun.err) == (0, "")
    told = message_in(team.host.name, begun.out)
    assert told.startswith("This project uses Interlock, which is not installed")
    assert "`interlock install HOST`" in told
    done = team.server("project")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("This project uses Interlock, which is not installed")
    assert list(team.user.iterdir()) == []


def message_in(host: str, out: str) -> str:
    match host:
        case "cursor":
            return json.loads(out)["additional_context"]
        case "copilot":
            return json.loads(out)["additionalContext"]
        case "opencode":
            return json.loads(out)["context"]
        case _:
            return out


@each_team
def test_without_the_shared_launcher_nothing_is_in_the_way_either(team: Team) -> None:
    (team.project / ".interlock" / LAUNCHER).unlink()

    assert {team.hook(event.name, "project") for event in team.host.events} == {SILENT}
    done = team.server("project")
    assert (done.code != 0, done.out) == (True, "")
    assert f".interlock/{LAUNCHER}" in done.err


@each_team
def test_an_interlock_on_the_path_is_found(team: Team) -> None:
    script = team.user / "bin" / "interlock"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\necho "interlock $*"\n')
    script.chmod(0o755)
    path = f"{script.parent}:{PATH}"

    for event in team.host.events:
        words = f"interlock hook --host {team.host.name} --event {event.name}\n"
        assert team.hook(event.name, "project", PATH=path) == Outcome(0, words, "")
    assert team.server("project", PATH=path) == Outcome(0, "interlock mcp\n", "")


HOMES: dict[str, tuple[str, dict[str, str]]] = {
    "the usual one": ("user/.local/share/interlock", {}),
    "that of a Mac": ("user/Library/Application Support/interlock", {}),
    "among other data": ("data/interlock", {"XDG_DATA_HOME": "data"}),
    "as it is named": ("my home", {"INTERLOCK_HOME": "my home"}),
}


@pytest.mark.parametrize(
    ("team", "place"),
    [
        *((host, "the usual one") for host in NAMES),
        *(("claude-code", place) for place in [*HOMES][1:]),
    ],
    indirect=["team"],
)
def test_the_interlock_of_the_user_is_found_and_started(
    team: Team, place: str, tmp_path: Path
) -> None:
    name, variables = HOMES[place]
    team.make_home(tmp_path / name)
    filled = {key: str(tmp_path / value) for key, value in variables.items()}

    for event in team.host.events:
        assert team.hook(event.name, "project", **filled) == team.started(event.name)
    started = Outcome(0, "started -I -m interlock mcp\n", "")
    assert team.server("project", **filled) == started


@each_team
def test_a_projects_hooks_are_silent_where_the_users_own_answer(team: Team) -> None:
    team.make_home(team.user / ".local" / "share" / "interlock")
    others = [name for name in NAMES if name != team.host.name]
    for name in others:
        mark_installed(team.home, name, is_installed=True)
    assert team.hook("pre-tool", "project") == team.started("pre-tool"), "of this client none are"

    mark_installed(team.home, team.host.name, is_installed=True)

    assert {team.hook(event.name, "project") for event in team.host.events} == {SILENT}
    assert team.hook("pre-tool") == team.started("pre-tool"), "the user's own"
    assert team.server("project").out == "started -I -m interlock mcp\n"
    mark_installed(team.home, team.host.name, is_installed=False)
    assert team.hook("pre-tool", "project") == team.started("pre-tool")


@each_team
def test_a_project_is_guarded_where_the_users_interlock_is_broken(team: Team) -> None:
    """Nobody can say then that a colleague never had one."""
    team.make_home(team.user / ".local" / "share" / "interlock")
    team.interpreter.unlink()

    denied = Outcome(2, "", f"{cannot_start(team.host.name)}\n")
    assert team.hook("pre-tool", "project") == denied
    names = [event.name for event in team.host.events if event.name != "pre-tool"]
    assert {team.hook(name, "project") for name in names} == {SILENT}


def test_the_project_that_the_client_names_counts_wherever_it_is_run(team: Team) -> None:
    elsewhere = team.user / "elsewhere"
    elsewhere.mkdir()
    team.make_home(team.user / ".local" / "share" / "interlock")
    project = team.project
    team.project = elsewhere
    (elsewhere / "src").mkdir()

    assert team.hook("pre-tool", "project") == SILENT
    named = {"CLAUDE_PROJECT_DIR": str(project)}
    assert team.hook("pre-tool", "project", **named) == team.started("pre-tool")


@each_team
def test_a_directory_that_is_gone_keeps_nobody_waiting(team: Team) -> None:
    """A client may still be there, and start what it always starts."""
    server = " ".join(map(shlex.quote, server_start(team.host, "project", str(team.home))[0]))
    hook = hook_commands(team.host, "project", str(team.home))["pre-tool"]

    for command in (server, f"/bin/sh -c {shlex.quote(hook)}"):
        done = team.run(["/bin/sh", "-c", f"mkdir gone; cd gone; rmdir ../gone; {command}"], {})
        assert done.out == ""
    assert done.code == 0


def plugin_commands(home: Path) -> dict[str, str]:
    found = json.loads((home / PLUGIN / "plugin" / "hooks" / "hooks.json").read_text())
    return {
        native: handler["command"]
        for native, groups in found["hooks"].items()
        for group in groups
        for handler in group["hooks"]
    }


def test_a_plugins_hooks_are_silent_where_the_users_own_answer(tmp_path: Path, home: Path) -> None:
    machine = Machine(tmp_path, home)
    machine.opt_in()
    assert isinstance(write_plugin(machine.program), InstallReport)
    commands = plugin_commands(home)
    assert set(commands) == {event.native for event in claude_code.HOST.events}

    def outcomes() -> set[Any]:
        return {machine.run(["/bin/sh", "-c", text], {}) for text in commands.values()}

    assert all(outcome.out.startswith("started ") for outcome in outcomes())
    mark_installed(home, "codex", is_installed=True)
    assert all(outcome.out.startswith("started ") for outcome in outcomes())
    mark_installed(home, "claude-code", is_installed=True)
    assert outcomes() == {SILENT}


def test_a_plugin_that_was_left_behind_guards_a_project_that_has_opted_in(
    tmp_path: Path, home: Path
) -> None:
    machine = Machine(tmp_path, home)
    assert isinstance(write_plugin(machine.program), InstallReport)
    command = plugin_commands(home)["PreToolUse"]
    (home / LAUNCHER).unlink()

    assert machine.run(["/bin/sh", "-c", command], {}) == SILENT
    machine.opt_in()
    denied = Outcome(2, "", f"{cannot_start('claude-code')}\n")
    assert machine.run(["/bin/sh", "-c", command], {}) == denied
