"""The orchestrator skill: its scripts are calls of `interlock`, and its pages agree with them."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.core.protocol.gated_session import Conversation
from interlock.workspace.projects.catalogue import BUNDLED_DIRECTORY
from tests.app.coordination.team import Team, git
from tests.sessions import begin_recorded

SKILL = BUNDLED_DIRECTORY / "skills" / "orchestrator"
SCRIPTS = SKILL / "scripts"
RUN_SCRIPTS = ("preflight", "session_identity", "session_cleanup")
DOWN = '[coordination]\nmail_url = "http://127.0.0.1:9/"\nmail_down = "halt"\n'


class Outcome(NamedTuple):
    code: int
    answer: dict[str, Any]
    """The JSON on stdout; empty if nothing was printed there."""
    error: str


class Agent:
    """An agent that runs the scripts in a project, with the real `interlock` on its PATH."""

    def __init__(self, session: str, project: Path, programs: Path) -> None:
        self.session, self.project, self.programs = session, project, programs

    def run(self, script: str, *arguments: str | bytes) -> Outcome:
        done = subprocess.run(
            [SCRIPTS / f"{script}.py", *arguments],
            cwd=self.project,
            env={**os.environ, "PATH": str(self.programs), "INTERLOCK_SESSION": self.session},
            capture_output=True,
            check=False,
            timeout=60,
        )
        answer = json.loads(done.stdout or "{}")
        return Outcome(done.returncode, answer, done.stderr.decode())

    def refused(self, code: int, script: str, *arguments: str | bytes) -> str:
        """Run a script that must fail, and return the error that it prints as JSON."""
        done = self.run(script, *arguments)
        assert (done.code, done.answer) == (code, {}), done
        return json.loads(done.error)["error"]

    def replace_interlock(self, text: str) -> None:
        (self.programs / "interlock").write_text(text)


@pytest.fixture
def team(app: App, tmp_path: Path) -> Team:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "a.py").write_text("first\n")
    opt_in(root, "standard")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    team = Team(app, root)
    team.clock.at_ms = app.store_clock.now_ms()  # that of the command
    return team


@pytest.fixture
def agent(app: App, team: Team, tmp_path: Path) -> Agent:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(shutil.which(name) or name)
    (programs / "python3").symlink_to(sys.executable)
    interlock = programs / "interlock"
    interlock.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m interlock "$@"\n')
    interlock.chmod(0o755)
    session = begin_recorded(app, team.root, Conversation("claude-code", "me")).session
    return Agent(session, team.root, programs)


def stale_colleague(team: Team) -> str:
    """Ana, who was last seen 12 minutes ago, and holds paths and a work item."""
    team.later(-12)
    ana = team.join("Ana", "checkout")
    team.reserve("Ana", "src/**")
    team.claim("Ana", team.add("Write it").id)
    team.later(12)
    return ana.id


def test_preflight_without_others_registers_and_goes_on(agent: Agent) -> None:
    assert "not registered" in agent.refused(1, "session_identity", "show")

    found = agent.run("preflight", "detect", "--track", "checkout")

    own = found.answer["identity"]
    assert (found.code, own["track"], found.answer["questions"]) == (0, "checkout", [])
    for words in (["show"], ["show", own["id"]]):
        shown = agent.run("session_identity", *words)
        assert (shown.code, shown.answer["id"]) == (0, own["id"])


def test_preflight_finds_conflicts_of_each_kind(agent: Agent, team: Team) -> None:
    ana = team.join("Ana", "checkout")
    team.reserve("Ana", "src/**")
    item = team.claim("Ana", team.add("Write it").id).id

    words = ("--files", "src/a.py", "--track", "checkout", "--files", "docs/**", "--beads", item)
    found = agent.run("preflight", "detect", *words)

    assert found.code == 4
    conflicts = found.answer["conflicts"]
    assert conflicts["track_conflicts"][0]["track"] == "checkout"
    assert conflicts["file_conflicts"][0]["overlap"] == "src/a.py"
    assert conflicts["bead_conflicts"][0]["bead_id"] == item
    assert [one["about"] for one in found.answer["questions"]] == [ana.id] * 3
    assert "`Bo-1` is not here" in agent.refused(1, "session_identity", "show", "Bo-1")


def test_a_stale_session_is_ignored_or_taken_over_once(agent: Agent, team: Team) -> None:
    ana, bo = stale_colleague(team), team.join("Bo").id

    stale = agent.run("session_cleanup", "find-stale").answer
    asked = agent.run("preflight", "detect")
    ignored = agent.run("preflight", "detect", "--ignore", ana)

    assert [one["id"] for one in stale["stale_sessions"]] == [ana]
    assert (stale["count"], stale["stale_sessions"][0]["stale_minutes"]) == (1, 12)
    assert (asked.code, asked.answer["about"], ignored.code) == (4, ana, 0)
    assert "was seen" in agent.refused(1, "session_cleanup", "takeover", bo)
    words = ("--why", "it is silent", "--without-snapshot")
    taken = agent.run("session_cleanup", "takeover", ana, *words)
    assert (taken.code, taken.answer["released"]) == (0, ["src/**"])
    assert agent.run("session_cleanup", "find-stale").answer["count"] == 0
    agent.refused(1, "session_cleanup", "takeover", ana)
    assert "it is silent" in str(team.events())


@pytest.mark.parametrize("text", ["$(touch x); `touch x` | 'touch' \"x\"", "--help", "-- --json"])
def test_an_argument_is_neither_a_command_nor_an_option(agent: Agent, text: str) -> None:
    before = sorted(agent.project.iterdir())

    found = agent.run("preflight", "detect", f"--track={text}", f"--files={text}")

    assert found.answer["identity"]["track"] == text
    assert text in agent.refused(1, "session_cleanup", "takeover", f"--why={text}", "--", text)
    assert sorted(agent.project.iterdir()) == before


def test_a_halt_keeps_its_exit_code(agent: Agent, home: Path) -> None:
    (home / "config.toml").write_text(DOWN)

    assert "mail" in agent.refused(5, "preflight", "detect").lower()


@pytest.mark.parametrize("script", RUN_SCRIPTS)
def test_misuse_has_its_own_exit_code_pf8(agent: Agent, script: str) -> None:
    assert agent.run(script).code == 2
    assert agent.run(script, "unknown").code == 2
    assert "not UTF-8" in agent.refused(2, "preflight", "detect", b"--track=\xff")


@pytest.mark.parametrize(
    ("interlock", "code", "error"),
    [
        (None, 1, "`interlock` is not on PATH"),
        ("#!/nowhere/python\n", 1, "does not start"),
        ("#!/bin/sh\necho usage: interlock >&2\nexit 3\n", 3, "usage: interlock"),
        ("#!/bin/sh\necho Hello\n", 1, "printed no JSON"),
        ("#!/bin/sh\nkill -9 $$\n", 1, "printed no JSON"),
    ],
)
def test_a_missing_or_broken_interlock_is_an_error_in_json(
    agent: Agent, interlock: str | None, code: int, error: str
) -> None:
    if interlock is None:
        (agent.programs / "interlock").unlink()
    else:
        agent.replace_interlock(interlock)

    for words in (["preflight", "detect"], ["session_identity", "show"]):
        assert error in agent.refused(code, *words)
    assert error in agent.refused(code, "session_cleanup", "find-stale")


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_a_script_is_short_and_needs_nothing_but_python_pf9(path: Path) -> None:
    text = path.read_text("utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    imports = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [x.name for x in node.names]
        )
    }

    assert len(text.splitlines()) < 200
    assert imports <= {*sys.stdlib_module_names, *(other.stem for other in SCRIPTS.glob("*.py"))}


@pytest.mark.parametrize("script", RUN_SCRIPTS)
def test_a_script_is_a_program_that_leaves_nothing_behind_pf9(script: str, tmp_path: Path) -> None:
    copies = shutil.copytree(SCRIPTS, tmp_path / "s", ignore=shutil.ignore_patterns("__pycache__"))
    path = copies / f"{script}.py"
    environment = {"PATH": os.environ["PATH"]}

    done = subprocess.run(
        [path, "--help"], env=environment, capture_output=True, check=False, timeout=60
    )

    assert path.read_text("utf-8").startswith("#!/usr/bin/env python3\n")
    assert done.returncode == 0
    assert not (copies / "__pycache__").exists()


def test_the_pages_of_the_skill_lead_to_each_other() -> None:
    for page in (SKILL / "SKILL.md", *SKILL.glob("references/*.md")):
        for target in [part.split(")")[0] for part in page.read_text("utf-8").split("](")[1:]]:
            assert (page.parent / target).is_file(), f"{page.name}: {target}"
