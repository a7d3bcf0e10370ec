"""What git's own files say, against git itself."""

import subprocess
from pathlib import Path

import pytest

from interlock.workspace.git import state
from interlock.workspace.git.commits import is_reachable
from interlock.workspace.git.state import GitState


def run(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@x")
    done = subprocess.run(
        ["git", "-C", str(directory), *identity, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run(tmp_path, "init", "-q", "-b", "main")
    run(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "branch"),
    [
        (("checkout", "-q", "-b", "feature/x"), "feature/x"),
        (("checkout", "-q", "--detach"), None),
        (("pack-refs", "--all"), "main"),
    ],
)
def test_branch_and_commit_are_those_that_git_reports(
    repository: Path, command: tuple[str, ...], branch: str | None
) -> None:
    (repository / "deep" / "down").mkdir(parents=True)
    run(repository, *command)

    seen = state.observe(repository / "deep" / "down")

    assert seen == GitState(branch, run(repository, "rev-parse", "HEAD"))


def test_a_commit_is_reachable_as_long_as_head_or_a_ref_has_it(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run(repository, "checkout", "-q", "--detach")
    run(repository, "commit", "-q", "--allow-empty", "-m", "two")
    made = run(repository, "rev-parse", "HEAD")

    assert is_reachable(repository, made) is True, "from HEAD alone"
    run(repository, "checkout", "-q", "main")
    assert is_reachable(repository, made) is False
    run(repository, "tag", "two", made)
    assert is_reachable(repository, made) is True
    assert is_reachable(tmp_path_factory.mktemp("plain"), made) is None


def test_a_linked_worktree_has_a_branch_of_its_own(repository: Path, tmp_path: Path) -> None:
    run(repository, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    run(tmp_path / "linked", "commit", "-q", "--allow-empty", "-m", "two")

    seen = state.observe(tmp_path / "linked")

    assert seen == GitState("other", run(tmp_path / "linked", "rev-parse", "HEAD"))
    assert state.observe(repository) == GitState("main", run(repository, "rev-parse", "HEAD"))


def test_a_new_repository_has_a_branch_and_no_commit(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "-b", "main")

    assert state.observe(tmp_path) == GitState("main", None)


def test_outside_of_git_there_is_nothing_to_see(tmp_path: Path) -> None:
    assert state.observe(tmp_path) is None
    assert state.changes_since(tmp_path, "c0ffee") == ()


def test_a_broken_repository_is_no_catastrophe(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /no/such/place")

    assert state.observe(tmp_path) is None


def test_a_commit_that_git_does_not_know_says_nothing(repository: Path) -> None:
    assert state.changes_since(repository, "0" * 40) == ()
