"""Requirements of a session's start that are open: edits wait in strict, and warn in standard."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.app.callers.session_record import renew_start, state_of
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.state import SessionState
from tests.hooks.scene import HOST, Scene
from tests.hooks.test_fast_process import fast_command, outcome
from tests.person import run_as_person
from tests.sessions import begin_recorded

Call = tuple[str, dict[str, Any]]
WRITE: Call = ("Write", {"file_path": "<PROJECT>/a.py", "content": "x"})
READ: Call = ("Read", {"file_path": "<PROJECT>/a.py"})
ASK: Call = ("AskUserQuestion", {})


def command(text: str) -> Call:
    return "Bash", {"command": text}


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True)


class StrictScene(Scene):
    """A strict project on `main`, with an agent that codes in it."""

    def __init__(self, app: App, home: Path, base: Path) -> None:
        super().__init__(app, home, base)
        git(self.project, "init", "-qb", "main")
        git(self.project, "commit", "-q", "--allow-empty", "-m", "begin")
        self.begin_again("strict", "host-2")

    def begin_again(self, profile: str, name: str) -> None:
        self.config.unlink()
        opt_in(self.project, profile)
        trust_checkout(self.home, self.project, at_ms=self.app.clock.now_ms())
        gated_sessions.change_status(self.app, self.session, "ended", "for the test")
        self.name = name
        talk = Conversation(HOST, name)
        self.session = begin_recorded(self.app, self.project, talk).session
        self.goes_to("coding")

    def answer(self, call: Call) -> tuple[str, str]:
        """The decision on a call and what is said, from the process that a client starts."""
        content = self.payload(*call, session_id=self.name)
        result = outcome(fast_command(self), content)
        assert result.code == 0, result.err
        found: dict[str, str] = {}
        if result.out:
            found = json.loads(result.out)["hookSpecificOutput"]
        said = found.get("permissionDecisionReason") or found.get("additionalContext", "")
        return found.get("permissionDecision", "allow"), said

    @property
    def state(self) -> SessionState:
        return state_of(self.app, self.session)


@pytest.fixture
def strict(app: App, home: Path, tmp_path: Path) -> StrictScene:
    return StrictScene(app, home, tmp_path)


def test_strict_on_main_edits_wait_for_a_branch_which_the_agent_can_make(
    strict: StrictScene,
) -> None:
    assert not strict.state.protocol_start_complete
    answer, said = strict.answer(WRITE)
    assert answer == "deny"
    for part in (
        "`notOnMain`",
        "(main)",
        "`git switch -c NAME`",
        "interlock session waive notOnMain",
    ):
        assert part in said
    assert strict.answer(command("git commit -am x"))[0] == "deny"
    assert strict.answer(command("git switch -c fix && touch a"))[0] == "deny"
    for free in (READ, ASK, command("git status"), command("git checkout -b fix")):
        assert strict.answer(free) == ("allow", "")
    assert strict.answer(command("cd . && git switch -c fix")) == ("allow", "")

    git(strict.project, "switch", "-qc", "fix")

    assert strict.answer(WRITE) == ("allow", "")
    assert strict.state.protocol_start_complete
    assert strict.state.protocol_start_evidence["notOnMain"] == "fix"

    git(strict.project, "switch", "-q", "main")
    assert strict.answer(WRITE)[0] == "deny", "it is back on the main branch"
    assert not strict.state.protocol_start_complete


def test_a_person_waives_a_requirement_with_a_reason_and_an_agent_does_not(
    strict: StrictScene,
) -> None:
    waive = [sys.executable, "-P", "-m", "interlock", "session", "waive", "notOnMain"]
    waive += ["--session", strict.session, "--reason"]
    environment = {**os.environ, "INTERLOCK_HOME": str(strict.home)}
    for words, is_agent in (([*waive, "x"], True), ([*waive, " "], False)):
        variables = {**environment, "CLAUDECODE": "1"} if is_agent else environment
        refused = run_as_person(words, cwd=strict.project, environment=variables)
        assert refused.returncode == 1, refused.stderr
    assert strict.answer(command(" ".join(waive[2:])))[0] == "deny"
    assert strict.answer(WRITE)[0] == "deny"

    done = run_as_person([*waive, "a hotfix"], cwd=strict.project, environment=environment)
    assert done.returncode == 0, done.stderr

    assert strict.answer(WRITE) == ("allow", "")
    evidence = strict.state.protocol_start_evidence["notOnMain"]
    assert evidence.startswith("skipped: waived by ")
    assert evidence.endswith(", in a terminal: a hotfix")
    renew_start(strict.app, strict.session)
    assert strict.state.protocol_start_evidence["notOnMain"] == evidence, "it stays waived"
    (logbook,) = (
        path
        for path in (strict.project / ".agents/sessions").iterdir()
        if strict.session in path.read_text()
    )
    gated_sessions.change_status(strict.app, strict.session, "paused", "so it is written")
    assert "waived by" in logbook.read_text()


def test_standard_warns_once_of_what_is_open(strict: StrictScene) -> None:
    sessions = strict.project / ".agents"
    subprocess.run(["rm", "-r", str(sessions)], check=True)
    sessions.write_text("in the way")
    strict.begin_again("standard", "host-3")
    assert not strict.state.protocol_start_complete

    answer, said = strict.answer(WRITE)
    assert answer == "allow"
    assert "`sessionLogCreated`" in said
    assert "notOnMain" not in said, "in standard that is told at the start, and blocks nothing"
    assert strict.answer(WRITE) == ("allow", "")

    sessions.unlink()
    assert strict.answer(WRITE) == ("allow", "")
    assert strict.state.protocol_start_complete, "the logbook was made as soon as that was possible"
