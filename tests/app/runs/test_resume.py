"""Coming back: found by id, by words, by git; with a token that works."""

import subprocess
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.runs import resume
from interlock.app.runs.resume import POOL_MAX, ResumableRun, ResumeQuery
from interlock.app.runs.user_actions import set_archived
from interlock.core.session.answer import RenderedAnswer
from tests.scenes import handed_in, opening, random_session, shown, started


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A real git repository with one commit."""
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "one"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    return tmp_path


def commit(project: Path, message: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@x"]
    command = ["git", "-C", str(project), *identity, "commit", "-q", "--allow-empty", "-m", message]
    subprocess.run(command, check=True)


def find(app: App, workspace: Path, query: str = "", **more: object) -> list[ResumableRun]:
    wanted = ResumeQuery(workspace, query, **more)  # pyright: ignore[reportArgumentType]
    return resume.find_resumable_runs(app.reader, app.keyring, wanted)


def test_a_session_is_found_by_what_people_call_it(app: App, tmp_path: Path) -> None:
    parser = started(app, tmp_path, "Mend the parser")
    handed_in(app, started(app, tmp_path, "Write the docs"), "Began with the glossary")

    assert find(app, tmp_path, "parser")[0].row.session == parser.session
    assert find(app, tmp_path, "GLOSSARY")[0].row.title == "Write the docs"
    assert find(app, tmp_path, parser.session[:9])[0].row.title == "Mend the parser"
    assert find(app, tmp_path, run=parser.run)[0].row.title == "Mend the parser"


def test_its_token_shows_where_the_run_stands(app: App, tmp_path: Path) -> None:
    second = handed_in(app, started(app, tmp_path, "Mend the parser"), "Found the loop")

    candidate = find(app, tmp_path, "parser")[0]
    again = shown(app, candidate.token)

    assert again.answer.pending == second.answer.pending
    assert "Found the loop" in again.answer.recap
    assert handed_in(app, again).answer.branches == ()


def test_the_branch_and_the_commit_count_when_nothing_is_typed(app: App, project: Path) -> None:
    old = started(app, project, "On main")
    subprocess.run(["git", "-C", str(project), "checkout", "-q", "-b", "feature"], check=True)
    commit(project, "two")
    new = started(app, project, "On feature")

    assert find(app, project)[0].row.session == new.session
    subprocess.run(["git", "-C", str(project), "checkout", "-q", "main"], check=True)
    assert find(app, project)[0].row.session == old.session


def test_what_changed_since_is_said(app: App, project: Path) -> None:
    first = started(app, project, "Mend the parser")
    commit(project, "two")
    (project / "file").write_text("x")
    subprocess.run(["git", "-C", str(project), "add", "file"], check=True)

    changes = find(app, project)[0].changes
    again = shown(app, first.answer.continue_token)

    assert changes[0].startswith("The commit was ")
    assert changes[1:] == ("1 newer commit on this branch.", "Changed and not committed: file.")
    assert again.text.startswith("Check before you continue:\n- The commit was ")


def test_an_advance_records_that_the_commit_has_changed(app: App, project: Path) -> None:
    first = started(app, project, "Mend the parser")
    commit(project, "two")
    handed_in(app, first)

    assert find(app, project)[0].changes == ()


def test_an_archived_session_is_found_by_its_id_only(app: App, project: Path) -> None:
    session = started(app, project, "The zebra").session
    set_archived(app, session, is_archived=True)

    assert find(app, project) == find(app, project, "zebra") == []
    assert find(app, project, session=session)[0].row.session == session


@pytest.mark.both_stores
def test_an_old_session_among_many_is_found(app: App, tmp_path: Path) -> None:
    oldest = started(app, tmp_path, "The needle")
    for _ in range(POOL_MAX + 1):
        app.log.append(opening(random_session()))

    assert find(app, tmp_path, "needle")[0].row.session == oldest.session


def test_the_recap_is_newest_first_and_says_what_lies_below(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path, "Three steps")
    second = handed_in(app, first, "notes one")
    third = handed_in(app, second, "notes two")

    def recap_at(answered: RenderedAnswer) -> str:
        return shown(app, answered.answer.continue_token).answer.recap

    assert recap_at(third).index("notes two") < recap_at(third).index("notes one")
    assert "Done after this point already" in recap_at(first)
    assert "- Step 2: notes two" in recap_at(first)
    assert "Done after" not in recap_at(third)


def test_what_is_ones_own_comes_first_and_what_somebody_works_in_last(
    app: App, tmp_path: Path
) -> None:
    mine, free, theirs = (started(app, tmp_path, f"Work {number}") for number in range(3))
    holders = {theirs.session: "Claude Code, conversation 12345678"}

    found = find(app, tmp_path, own_session=mine.session, holders=holders)

    assert [each.row.run for each in found] == [each.run for each in (mine, free, theirs)], (
        "though theirs is the newest"
    )
    assert [each.match.candidate.is_own for each in found] == [True, False, False]
    assert found[2].match.candidate.holder == holders[theirs.session]
    named = find(app, tmp_path, "Work 2", own_session=mine.session, holders=holders)
    assert named[0].row.run == theirs.run, "what people type counts for more"
