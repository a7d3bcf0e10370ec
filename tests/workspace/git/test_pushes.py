"""Pushing one commit to a remote, with the real git and a bare repository."""

from pathlib import Path

import pytest

from interlock.workspace.git import pushes
from interlock.workspace.git.pushes import (
    PushFailed,
    committed_changes,
    push_commit,
    remote_commit,
    remote_names,
)
from tests.workspace.git.test_state import run

BRANCH = "interlock/try-it-0123abcd/work"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    run(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def repository(tmp_path: Path, remote: Path) -> Path:
    run(tmp_path, "init", "-q", "-b", "main", "ours")
    ours = tmp_path / "ours"
    (ours / "a.txt").write_text("one\n")
    (ours / "gone.txt").write_text("gone\n")
    run(ours, "add", "-A")
    run(ours, "commit", "-q", "-m", "one")
    run(ours, "remote", "add", "origin", str(remote))
    run(ours, "push", "-q", "origin", "main")
    return ours


def commit(repository: Path, name: str = "b.txt", text: str = "two\n") -> str:
    (repository / name).write_text(text)
    run(repository, "add", "-A")
    run(repository, "commit", "-q", "-m", f"write {name}")
    return run(repository, "rev-parse", "HEAD")


def test_a_commit_becomes_a_branch_and_nothing_else_is_pushed(
    repository: Path, remote: Path
) -> None:
    made = commit(repository)
    run(repository, "tag", "-a", "v1", "-m", "v1")
    run(repository, "config", "push.followTags", "true")
    other = commit(repository, "c.txt")

    assert remote_commit(repository, "origin", BRANCH) == ""
    assert push_commit(repository, "origin", made, BRANCH) == ""

    assert remote_commit(repository, "origin", BRANCH) == made != other
    refs = run(remote, "for-each-ref", "--format=%(refname)").splitlines()
    assert refs == [f"refs/heads/{BRANCH}", "refs/heads/main"]
    assert remote_names(repository) == ["origin"]


def test_a_branch_that_is_elsewhere_stays_there(repository: Path) -> None:
    first = commit(repository)
    assert push_commit(repository, "origin", first, BRANCH) == ""
    run(repository, "reset", "-q", "--hard", "HEAD~1")
    second = commit(repository, "c.txt")

    reason = push_commit(repository, "origin", second, BRANCH)

    assert "rejected" in reason
    assert remote_commit(repository, "origin", BRANCH) == first


def test_a_remote_that_says_no_is_quoted_and_one_that_is_away_is_a_failure(
    repository: Path, remote: Path
) -> None:
    made = commit(repository)
    hook = remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    assert "pre-receive hook declined" in push_commit(repository, "origin", made, BRANCH)

    run(repository, "remote", "set-url", "origin", "http://ana:hunter2@127.0.0.1:1/r.git")
    for ask in (
        lambda: remote_commit(repository, "origin", BRANCH),
        lambda: push_commit(repository, "origin", made, BRANCH),
    ):
        with pytest.raises(PushFailed) as failed:
            ask()
        assert "127.0.0.1" in str(failed.value)
        assert "hunter2" not in str(failed.value)


def test_the_changes_of_a_commit_are_told_whatever_attributes_and_settings_say(
    repository: Path,
) -> None:
    base = run(repository, "rev-parse", "HEAD")
    (repository / ".gitattributes").write_text("*.txt -diff\n")
    run(repository, "config", "diff.external", "false")
    run(repository, "config", "diff.noprefix", "true")
    (repository / "gone.txt").unlink()
    made = commit(repository, "käse b.txt", "added\n")

    changes = committed_changes(repository, base, made)

    assert changes.parents == (base,)
    assert changes.message.strip() == "write käse b.txt"
    assert set(changes.files) == {".gitattributes", "gone.txt", "käse b.txt"}
    assert "+++ b/käse b.txt" in changes.patch
    assert "\n+added\n" in changes.patch
    assert changes.is_whole


def test_git_is_led_to_no_other_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commit(repository)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    assert push_commit(repository, "origin", made, BRANCH) == ""


def test_a_patch_that_is_cut_off_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = run(repository, "rev-parse", "HEAD")
    made = commit(repository, "long.txt", "ä\n" * 200)
    monkeypatch.setattr(pushes, "PATCH_BYTES_MAX", 300)

    assert not committed_changes(repository, base, made).is_whole
