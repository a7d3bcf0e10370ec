"""How a session begins, and goes on: what is observed, recorded and told."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers.start_evidence import NOTES_MAX
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import delegations, gated_sessions
from interlock.app.protocol.bootstrap import tell_conversation
from interlock.core.notes.versions import digest_of, version_of
from interlock.core.protocol.delegation import CompletionRequest, DelegationRequest
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.requirements import START_IDS
from interlock.core.session.state import SessionState
from interlock.workspace.projects.named_files import ENTRIES_MAX, count_skills
from tests.app.callers.conversations import talk
from tests.sessions import begin_recorded


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    subprocess.run(["git", "init", "-qb", "main", str(root)], check=True)
    git(root, "commit", "-q", "--allow-empty", "-m", "begin")
    opt_in(root, "strict")
    return root


def test_what_is_there_is_recorded_under_the_keys_of_the_protocol(
    app: App, repository: Path
) -> None:
    for name in (".claude/skills/a/SKILL.md", ".claude/skills/a/b/run.sh", ".codex/skills/x.ps1"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x")
    (repository / ".claude/skills/loop").symlink_to("..")
    note = repository / ".interlock" / "notes" / "rules" / "Usage Mandatory.md"
    note.parent.mkdir(parents=True)
    note.write_text("- run `make check`\n")

    state = begin_recorded(app, repository, talk("one")).state

    version = version_of(digest_of("- run `make check`\n"))
    assert state.protocol_start_evidence == {
        "brainInit": "notes in .interlock/notes",
        "handoffRead": "skipped: no session was here before",
        "skillsVerified": "2 skills (1 SKILL.md, 1 .sh, 0 .ps1)",
        "sessionLogCreated": state.protocol_start_evidence["sessionLogCreated"],
        "constraintsRead": f"usage-mandatory {version}",
        "memoriesLoaded": "1 found",
        "branchVerified": "main",
        "notOnMain": "open: main",
    }
    assert set(state.protocol_start_evidence) == set(START_IDS)
    assert NOTES_MAX > ENTRIES_MAX


def test_skills_are_counted_only_so_far_and_only_in_the_project(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "project"
    for number in range(ENTRIES_MAX + 1):
        (outside / str(number)).mkdir(parents=True)
    (outside / "SKILL.md").touch()
    root.mkdir()
    (root / ".claude").symlink_to(outside)
    assert count_skills(root, (".claude", ".claude/0")).text.startswith("0 skills")

    many = count_skills(tmp_path, ("outside", "nowhere"))
    assert not many.is_complete
    assert many.text.startswith("at least ")


def told(app: App, state: SessionState, source: str = "startup") -> str:
    return tell_conversation(app, state, (), Conversation("claude-code", "one", source))


def test_strict_tells_what_is_open_and_its_remedy_from_the_first_word_on(
    app: App, repository: Path
) -> None:
    announced = gated_sessions.begin(app, repository, talk("one")).state
    recorded = begin_recorded(app, repository, talk("one")).state
    for state in (announced, recorded):
        assert "Required: The branch is not the main one (main)" in told(app, state)
        assert "git switch -c NAME" in told(app, state)
    git(repository, "switch", "-qc", "feature")

    assert "Required: " not in told(app, recorded)


def test_a_session_that_goes_on_is_told_what_has_changed_and_nothing_else(
    app: App, repository: Path
) -> None:
    (repository / "plan.md").write_text("x")
    started = begin_recorded(app, repository, talk("one"))
    session, heading = started.session, "Verify before you continue"
    assert heading not in told(app, started.state, "resume")

    request = DelegationRequest("qa", "test it", artifacts=("plan.md",))
    delegations.delegate(app, session, request)
    for agent in ("analyst",):
        delegations.delegate(app, session, DelegationRequest(agent, "look"))
        blocked = CompletionRequest(agent, "stuck", "blocked", blockers=("no access",))
        delegations.complete(app, session, blocked)
    git(repository, "switch", "-qc", "feature")
    git(repository, "commit", "-q", "--allow-empty", "-m", "more")
    (repository / "plan.md").unlink()
    state = gated_sessions.begin(app, repository, talk("one", "compact")).state

    assert heading not in told(app, state, "startup")
    text = told(app, state, "compact")
    for line in (
        heading,
        "The branch was main; now it is feature.",
        "1 newer commit on this branch.",
        "Gone, though qa works with it: plan.md.",
        "Still in the way: analyst: no access",
    ):
        assert line in text
    assert heading not in told(app, msgspec.structs.replace(state, version=0), "resume")
