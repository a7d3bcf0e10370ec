"""The end of a session: judged at once without a trace, and its effects, which can be repeated."""

import subprocess
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import delegations, ending, session_files
from interlock.app.sessions.logbook_file import LogbookFile
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation import CompletionRequest, DecisionRequest, DelegationRequest
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.delegation_events import VerdictGiven
from interlock.core.session.requirements import Fact, ProtocolProfile
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.git.commits import CommitOutcome, find_commit_of
from interlock.workspace.machine.spool import JournalLine, append_line
from tests.sessions import begin_recorded

PASSED = VerdictGiven("PASS", 90, "all green")


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org")):
        monkeypatch.delenv(f"GIT_AUTHOR_{name}", raising=False)
        monkeypatch.delenv(f"GIT_COMMITTER_{name}", raising=False)
        subprocess.run(["git", "config", "--global", f"user.{name.lower()}", value], check=True)
    root = tmp_path / "project"
    subprocess.run(["git", "init", "-qb", "feature", str(root)], check=True)
    (root / "code.py").write_text("x = 1\n")
    opt_in(root, "strict")
    git(root, "add", ".")
    git(root, "commit", "-qm", "begin")
    return root


@pytest.fixture
def session(app: App, repository: Path) -> SessionId:
    return begin_recorded(app, repository, Conversation("claude-code", "one")).session


def logbook_of(root: Path) -> Path:
    (path,) = (root / ".agents" / "sessions").iterdir()
    return path


def report(
    app: App, session: SessionId, summary: str = "", profile: ProtocolProfile | None = None
) -> ending.EndReport:
    found = ending.check_end(app, session, summary, profile)
    assert isinstance(found, ending.EndReport)
    return found


def has_verdict(app: App, session: SessionId, agent: str) -> None:
    delegations.delegate(app, session, DelegationRequest(agent, "judge it"))
    delegations.complete(app, session, CompletionRequest(agent, "It holds.", verdict=PASSED))


def test_all_that_stands_in_the_way_is_told_at_once_and_nothing_is_written(
    app: App, repository: Path, session: SessionId
) -> None:
    (repository / "code.py").write_text("x = 2\n")
    path = logbook_of(repository)
    path.write_text(path.read_text().replace("open\n", "open\n\n####### no heading\n#bad\n"))
    (repository / ".interlock" / "config.toml").write_text(
        '[project]\nprofile = "strict"\n\n[[protocol.requirements]]\nid = "checked"\n'
        'level = "MUST"\nstep = "All checks pass"\ncommand = "make check"\n'
    )
    before = {one: one.read_bytes() for one in repository.rglob("*.*") if one.is_file()}
    found = report(app, session)

    named = [blocker.partition(": ")[0] for blocker in found.blockers]
    assert named == [
        *("sessionLogValidated", "markdownLintRan", "gitCommitted", "qaValidation", "checked")
    ]
    assert f"{path.name}:" in found.blockers[1]
    assert "code.py" in found.blockers[2]
    assert "Run `make check` by itself" in found.blockers[4]
    assert before == {one: one.read_bytes() for one in repository.rglob("*.*") if one.is_file()}
    assert report(app, session, profile="light").blockers == ("checked: " + found.blockers[4][9:],)


def test_with_everything_done_nothing_stands_in_the_way(
    app: App, repository: Path, session: SessionId
) -> None:
    (repository / "code.py").write_text("x = 2\n")
    (repository / ".interlock" / "config.toml").write_text(
        '[[protocol.requirements]]\nid = "checked"\nlevel = "MUST"\nstep = "Checked"\n'
        'command = "make check"\n'
    )
    git(repository, "commit", "-qam", "change")
    append_line(
        app.home,
        JournalLine(
            *("ran", app.clock.now_ms() + 1_000, "claude-code", "post-tool", "one"),
            tool="Bash",
            detail="make check",
            outcome="success",
        ),
    )
    has_verdict(app, session, "qa")

    assert report(app, session, "Changed x.").blockers == ()
    (blocker,) = report(app, session, "Changed x.", "unattended").blockers
    assert blocker.startswith("criticValidation: critic has given no verdict.")
    has_verdict(app, session, "critic")
    assert report(app, session, profile="unattended").blockers == ()


def test_the_effects_are_the_same_when_repeated(
    app: App, repository: Path, session: SessionId
) -> None:
    has_verdict(app, session, "qa")
    decided = DecisionRequest("process", "Use one file", "It is small", "architect")
    delegations.record_decision(app, session, decided)
    path = logbook_of(repository)
    path.write_text(path.read_text().replace("done\n", "done\n\n* The parser   \n- and more\n"))
    effects = (
        session_files.write_logbook,
        session_files.write_summary_note,
        session_files.lint_session_files,
    )
    log, note, lint = (effect(app, session) for effect in effects)
    first = path.read_text()
    again = [effect(app, session) for effect in effects]

    assert isinstance(log, LogbookFile)
    assert isinstance(note, Fact)
    assert isinstance(lint, Fact)
    assert (log.fault, note.status, lint.status) == ("", "done", "done")
    assert again == [LogbookFile(log.path), note, lint]
    assert path.read_text() == first
    text = (repository / ".interlock" / "notes" / f"{note.evidence}.md").read_text()
    for line in (
        "> * The parser",
        "[verdict] qa: approve",
        "[decision] Use one file",
        "qa: completed",
    ):
        assert line in text, text
    assert "* The parser  \n* and more\n" in path.read_text()
    evidence = ending.end_evidence(report(app, session), log=log, problems=(), note=note, lint=lint)
    assert evidence == {
        "checklistComplete": "skipped: nothing was changed",
        "sessionLogValidated": f".agents/sessions/{path.name}",
        "validationPassed": "no findings",
        "handoffPreserved": "skipped: the project has no HANDOFF.md",
        "secretsScanned": "none found",
        "branchReverified": "skipped: nothing was changed",
        "brainMemoryUpdated": f"sessions/session-{session}-summary",
        "markdownLintRan": f"clean: .agents/sessions/{path.name}",
        "gitCommitted": git(repository, "rev-parse", "HEAD")[:12],
        "qaValidation": "skipped: investigation-only",
    }


def test_a_note_that_cannot_be_written_stops_nobody(
    app: App, repository: Path, session: SessionId
) -> None:
    sessions = repository / ".interlock" / "notes" / "sessions"
    for page in sessions.iterdir():
        page.unlink()
    sessions.rmdir()
    sessions.write_text("a file")

    note = session_files.write_summary_note(app, session)

    assert (note.status, note.evidence[:12]) == ("skipped", "not written:")


def test_only_the_files_of_the_session_are_committed_and_only_once(
    app: App, repository: Path, session: SessionId
) -> None:
    asked_for_none = session_files.commit_session_files(app, session, "job-1")
    assert (asked_for_none.sha, "does not ask" in asked_for_none.reason) == ("", True)
    (repository / ".interlock" / "config.toml").write_text("[protocol]\ncommit = true\n")
    not_trusted = session_files.commit_session_files(app, session, "job-1")
    assert (not_trusted.sha, "interlock trust" in not_trusted.reason) == ("", True)
    trust_checkout(app.home, repository, at_ms=0)
    (repository / "staged.py").write_text("mine\n")
    (repository / "code.py").write_text("mine too\n")
    git(repository, "add", "staged.py")
    session_files.write_summary_note(app, session)
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho the hook says no >&2\nexit 1\n")
    hook.chmod(0o755)
    refused = session_files.commit_session_files(app, session, "job-1")
    assert refused == CommitOutcome(reason="the hook says no", is_refused=True)
    hook.unlink()
    made = session_files.commit_session_files(app, session, "job-1")
    logbook_of(repository).write_text("changed since\n")
    again = session_files.commit_session_files(app, session, "job-1")

    assert made == again == CommitOutcome(find_commit_of(repository, "job-1") or "-")
    assert git(repository, "show", "--format=%B", "--name-only", "HEAD").splitlines() == [
        f"chore: session {session} artifacts",
        "",
        "Interlock-Job: job-1",
        "",
        "",
        f".agents/sessions/{logbook_of(repository).name}",
        f".interlock/notes/sessions/session-{session}-summary.md",
    ]
    assert git(repository, "diff", "--cached", "--name-only") == "staged.py"
    other = session_files.commit_session_files(app, session, "job-2")
    assert other.sha != made.sha, "another end is another commit"


def test_who_has_no_name_commits_nothing(app: App, repository: Path, session: SessionId) -> None:
    (repository / ".interlock" / "config.toml").write_text("[protocol]\ncommit = true\n")
    trust_checkout(app.home, repository, at_ms=0)
    subprocess.run(["git", "config", "--global", "--remove-section", "user"], check=True)
    git(repository, "config", "user.useConfigOnly", "true")

    outcome = session_files.commit_session_files(app, session, "job-1")

    assert (outcome.sha, "who commits" in outcome.reason) == ("", True)
    assert git(repository, "log", "--format=%s") == "begin"


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('command = "a"\nfile = "b"', "exactly one of"),
        ("", "exactly one of"),
        ('file = "../b"', "in the project"),
        ('file = "/etc/passwd"', "in the project"),
        ('command = "a"\nid = "qaValidation"', "another one has"),
        ('command = "a"\nid = "two words"', "letters, digits"),
        ('command = "a"\nlevel = "HARD"', "HARD"),
        ('command = "a"\nurl = "b"', "url"),
    ],
)
def test_a_broken_requirement_is_named(
    app: App, repository: Path, session: SessionId, lines: str, fault: str
) -> None:
    fields = {"id": '"own"', "level": '"MUST"', "step": '"Do it"'}
    defaults = "\n".join(
        f"{name} = {value}" for name, value in fields.items() if f"{name} =" not in lines
    )
    (repository / ".interlock" / "config.toml").write_text(
        f"[[protocol.requirements]]\n{defaults}\n{lines}\n"
    )
    with pytest.raises(SettingsBroken, match=fault):
        ending.check_end(app, session)


def test_a_file_is_one_in_the_project(app: App, repository: Path, session: SessionId) -> None:
    (repository / ".interlock" / "config.toml").write_text(
        '[[protocol.requirements]]\nid = "own"\nlevel = "MUST"\nstep = "Write it"\nfile = "a"\n'
    )
    (repository / "a").symlink_to("/etc/passwd")
    assert report(app, session).requirements[-1].status == "open"
    (repository / "a").unlink()
    (repository / "a").write_text("x")
    assert report(app, session).requirements[-1].status == "done"


def test_the_light_profile_writes_nothing_of_it(app: App, home: Path, tmp_path: Path) -> None:
    opt_in(tmp_path, "light")
    trust_checkout(home, tmp_path, at_ms=app.clock.now_ms())
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session

    assert report(app, session).blockers == ()
    assert session_files.write_logbook(app, session) == LogbookFile(
        fault="the profile light has none"
    )
    assert session_files.write_summary_note(app, session) == Fact("skipped", "the profile has none")
