"""Worktrees for unattended work, with the real git: made, killed, changed, shown and removed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.workspace.git import worktrees
from interlock.workspace.git.shadow import GitFailed
from interlock.workspace.git.worktrees import (
    add_worktree,
    diff_since,
    list_worktrees,
    remove_worktree,
    worktree_status,
)
from tests.workspace.git.test_state import run

pytestmark = pytest.mark.slow

BRANCH = "interlock/try-it-0123abcd/work"
SECONDS_MAX = 60


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With two files, and a remote whose branch has one commit more."""
    for name in ("theirs", "ours"):
        run(tmp_path, "init", "-q", "-b", "main", name)
    for name, text in (("a.txt", "one\n"), ("b.txt", "two\n")):
        (tmp_path / "theirs" / name).write_text(text)
    run(tmp_path / "theirs", "add", "-A")
    run(tmp_path / "theirs", "commit", "-q", "-m", "one")
    ours = tmp_path / "ours"
    run(ours, "remote", "add", "origin", str(tmp_path / "theirs"))
    run(ours, "pull", "-q", "origin", "main")
    run(tmp_path / "theirs", "commit", "-q", "--allow-empty", "-m", "two")
    run(ours, "fetch", "-q")
    return ours


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "worktrees" / "ses_0123abcd"


def made(repository: Path, path: Path, base: str = "") -> Path:
    add_worktree(repository, path, BRANCH, base)
    return path


def detach(repository: Path) -> None:
    run(repository, "checkout", "-q", "--detach")


def lead_elsewhere(repository: Path) -> None:
    run(repository, "commit", "-q", "--allow-empty", "-m", "three")


def pack(repository: Path) -> None:
    run(repository, "pack-refs", "--all")


BASES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "where the checkout stands": ("", "main", bool),
    "a detached HEAD": ("", "HEAD", detach),
    "a commit": ("HEAD~1", "main~1", lead_elsewhere),
    "a branch of the remote": ("origin/main", "origin/main", pack),
}


@pytest.mark.parametrize("name", BASES)
def test_a_worktree_begins_at_its_base_on_a_branch_that_follows_no_other(
    repository: Path, path: Path, name: str
) -> None:
    base, expected, prepare = BASES[name]
    prepare(repository)
    before = run(repository, "status", "--porcelain", "--branch")

    made(repository, path, base)
    (path / "a.txt").write_text("changed")
    made(repository, path, base)

    status = worktree_status(path)
    assert status is not None
    assert (status.branch, status.head) == (BRANCH, run(repository, "rev-parse", expected))
    assert (status.changed_files, status.unmerged_commits) == (1, 0), "asked again, it is kept"
    assert "interlock" not in (repository / ".git" / "config").read_text()
    assert run(repository, "status", "--porcelain", "--branch") == before
    assert list(list_worktrees(repository)) == [str(repository), str(path)]


@pytest.mark.parametrize("base", ["nowhere", "--detach", "HEAD:a.txt"])
def test_a_base_that_is_no_commit_makes_nothing(repository: Path, path: Path, base: str) -> None:
    with pytest.raises(GitFailed, match="is no commit of"):
        made(repository, path, base)

    assert not path.exists()
    assert run(repository, "branch", "--list", "interlock/*") == ""


def test_a_repository_without_a_commit_is_refused(tmp_path: Path, path: Path) -> None:
    run(tmp_path, "init", "-q", "unborn")

    with pytest.raises(GitFailed, match="`HEAD` is no commit of"):
        made(tmp_path / "unborn", path)


def test_a_checkout_that_is_a_linked_worktree_itself_will_do(
    repository: Path, tmp_path: Path, path: Path
) -> None:
    linked = tmp_path / "linked"
    run(repository, "worktree", "add", "-q", "-b", "topic", str(linked))
    run(linked, "commit", "-q", "--allow-empty", "-m", "on the topic")

    made(linked, path)
    run(repository, "worktree", "remove", str(linked))

    assert run(path, "log", "-1", "--format=%s") == "on the topic"
    assert path in map(Path, list_worktrees(repository))


def test_what_else_is_at_its_path_is_left_alone(repository: Path, path: Path) -> None:
    path.mkdir(parents=True)
    (path / "theirs.txt").write_text("mine")

    with pytest.raises(GitFailed, match="already exists"):
        made(repository, path)

    assert [one.name for one in path.iterdir()] == ["theirs.txt"]


def test_after_a_kill_between_the_branch_and_the_worktree_it_goes_on_with_that_branch(
    repository: Path, path: Path
) -> None:
    run(repository, "branch", BRANCH, "origin/main")

    made(repository, path)

    assert run(path, "log", "-1", "--format=%s") == "two"


def test_a_worktree_whose_directory_was_lost_is_made_anew_with_all_its_commits(
    repository: Path, path: Path
) -> None:
    made(repository, path)
    (path / "a.txt").write_text("changed")
    run(path, "commit", "-q", "-a", "-m", "Change it")
    commit = run(path, "rev-parse", "HEAD")
    subprocess.run(["rm", "-r", str(path)], check=True)

    made(repository, path)

    assert (run(path, "rev-parse", "HEAD"), run(path, "status", "--porcelain")) == (commit, "")


ADD = """
import sys
from pathlib import Path
from interlock.workspace.git.worktrees import add_worktree
add_worktree(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], "")
"""


def test_a_checkout_that_was_killed_is_not_taken_for_one_whose_files_are_deleted(
    repository: Path, path: Path, tmp_path: Path
) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    gate.touch()
    slow_git = tmp_path / "bin" / "git"
    slow_git.parent.mkdir()
    wait = f"echo $$ > {begun}; while test -e {gate}; do sleep 0.05; done"
    slow_git.write_text(
        f'#!/bin/sh\ncase "$*" in *read-tree*) {wait};; esac\nexec {shutil.which("git")} "$@"\n'
    )
    slow_git.chmod(0o755)
    adding = subprocess.Popen(
        [sys.executable, "-c", ADD, str(repository), str(path), BRANCH],
        env={**os.environ, "PATH": f"{slow_git.parent}:{os.environ['PATH']}"},
    )
    deadline = time.monotonic() + SECONDS_MAX
    while not (begun.exists() and begun.read_text()):
        assert time.monotonic() < deadline, "it was not begun"
        time.sleep(0.02)
    adding.kill()
    os.killpg(os.getpgid(int(begun.read_text())), signal.SIGKILL)
    adding.wait()
    gate.unlink()
    assert list_worktrees(repository)[str(path)] == "initializing", "it was killed half-way"
    assert not (path / "b.txt").exists()

    made(repository, path)

    assert (path / "b.txt").read_text() == "two\n"
    assert run(path, "status", "--porcelain") == ""
    assert list_worktrees(repository)[str(path)] == ""
    assert worktree_status(path)


def test_a_diff_has_all_that_was_changed_and_stages_nothing(repository: Path, path: Path) -> None:
    made(repository, path)
    base = run(path, "rev-parse", "HEAD")
    (path / "a.txt").write_text("one\ncommitted\n")
    run(path, "commit", "-q", "-a", "-m", "Half of it")
    (path / "b.txt").unlink()
    (path / "new é.txt").write_text("new\n")
    (path / "picture").write_bytes(bytes(range(256)))
    (path / "huge.txt").write_text("x\n" * 2_000_000)
    (path / "link").symlink_to("/etc/passwd")
    before = run(path, "status", "--porcelain", "-uall")

    shown = diff_since(path, base)

    for line in ("+committed", "-two", "+new", "+/etc/passwd"):
        assert f"\n{line}\n" in shown, line
    for name in ("picture", "huge.txt"):
        assert f"Binary files /dev/null and b/{name} differ\n" in shown
    assert len(shown) < 5_000
    assert run(path, "status", "--porcelain", "-uall") == before
    assert "root:" not in shown


def test_a_long_diff_is_cut_and_says_so(repository: Path, path: Path) -> None:
    made(repository, path)
    for number in range(3):
        (path / f"{number}.txt").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 2_000)

    shown = diff_since(path, "HEAD")

    *_, last = shown.splitlines()
    assert last.startswith("(The rest is left out:")
    assert len(shown) < worktrees.DIFF_CHARS_MAX + 200


def test_a_repository_within_the_worktree_has_none_of_its_programs_run(
    repository: Path, path: Path, tmp_path: Path
) -> None:
    """The agent that made it names them: they would run outside of its sandbox."""
    made(repository, path)
    marker = tmp_path / "escaped"
    for name in ("staged", "loose"):
        inner = path / name
        run(path, "init", "-q", name)
        (inner / ".gitattributes").write_text("* filter=evil\n")
        (inner / "z.txt").write_text("z")
        run(inner, "add", "-A")
        run(inner, "commit", "-q", "-m", "inner")
        run(inner, "config", "filter.evil.clean", f"touch '{marker}'; cat")
        run(inner, "config", "core.fsmonitor", f"touch '{marker}'; false")
        (inner / "z.txt").write_text("changed")
    run(path, "init", "-q", "unborn")
    run(path, "add", "staged")
    (path / ".gitmodules").write_text(
        '[submodule "staged"]\n\tpath = staged\n\turl = ./staged\n\tignore = none\n'
    )
    assert not marker.exists()

    status = worktree_status(path)
    shown = diff_since(path, "HEAD")
    with pytest.raises(GitFailed):
        remove_worktree(path, is_forced=False)

    assert not marker.exists()
    assert status is not None
    assert "submodule" in shown
    assert status.changed_files == 4, "the staged submodule, its settings, and two repositories"
    run(path / "staged", "status")
    assert marker.exists(), "as it is where git looks into it"


def change(path: Path) -> None:
    (path / "a.txt").write_text("changed")


def leave_branch(path: Path) -> None:
    run(path, "checkout", "-q", "--detach")
    run(path, "commit", "-q", "--allow-empty", "-m", "On no branch")


def commit_change(path: Path) -> None:
    change(path)
    run(path, "commit", "-q", "-a", "-m", "Change it")


UNSAVED: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (bool, ""),
    "a commit on its branch": (commit_change, ""),
    "a changed file": (change, "1 file in it is not committed"),
    "a new file": (lambda path: (path / "n").touch(), "1 file in it is not committed"),
    "a commit on no branch": (leave_branch, "1 commit of it would be on no branch"),
}


@pytest.mark.parametrize("name", UNSAVED)
def test_what_would_be_lost_is_said_and_removing_keeps_the_branch(
    repository: Path, path: Path, name: str
) -> None:
    prepare, expected = UNSAVED[name]
    made(repository, path)
    prepare(path)
    tip = run(path, "rev-parse", BRANCH)

    status = worktree_status(path)
    assert status is not None
    assert status.unsaved_work == expected
    if expected:
        with pytest.raises(GitFailed, match=expected):
            remove_worktree(path, is_forced=False)
        assert path.exists()
    remove_worktree(path, is_forced=True)

    assert not path.exists()
    assert list(list_worktrees(repository)) == [str(repository)]
    assert run(repository, "rev-parse", BRANCH) == tip


def test_a_worktree_that_git_cannot_read_is_never_a_clean_one(repository: Path, path: Path) -> None:
    made(repository, path)
    change(path)
    (repository / ".git" / "worktrees" / path.name / "index").write_bytes(b"no index")

    assert worktree_status(path) is None
    with pytest.raises(GitFailed):
        diff_since(path, "HEAD")
