"""Our own commit of what a model has left: it does what no other git would be trusted with."""

import asyncio
import subprocess
from typing import Any

import msgspec
import pytest

from interlock.app.unattended.worktrees import filter_variables
from interlock.driver.tools.worktree_commit import (
    BranchEnd,
    CommitFailed,
    commit_changes,
    commit_named_files,
)
from tests.driver.tools.scene import BRANCH, LEVELS, Scene, needs_landlock


def rev(scene: Scene, name: str) -> str:
    words = ["git", "rev-parse", name]
    return subprocess.check_output(words, cwd=scene.repository, text=True).strip()


@pytest.mark.parametrize("level", LEVELS)
def test_all_that_was_changed_is_committed_once(scene: Scene, level: Any) -> None:
    place = scene.workplace(level)
    (scene.worktree / "new").write_text("x")
    (scene.worktree / "tracked").unlink()

    end = asyncio.run(commit_changes(place, "Say 'why'\n\nAnd $(more)."))

    assert end == BranchEnd(rev(scene, BRANCH), 0)
    words = ["git", "show", "--format=%B", "--name-status", BRANCH]
    shown = subprocess.check_output(words, cwd=scene.repository, text=True)
    assert shown == "Say 'why'\n\nAnd $(more).\n\n\nA\tnew\nD\ttracked\n"
    assert asyncio.run(commit_changes(place, "again")) == end


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["refs/heads/main", "refs/heads/interlock/other/work"])
def test_no_other_branch_is_moved_whatever_head_stands_for(
    scene: Scene, level: Any, name: str
) -> None:
    before = rev(scene, name)
    workplace = scene.workplace(level)
    command = f"git symbolic-ref HEAD {name}; echo x > new"
    done = scene.call("Bash", workplace=workplace, command=command)
    assert "HEAD` was put back" in done.text

    end = asyncio.run(commit_changes(workplace, "x"))

    assert rev(scene, BRANCH) == end.commit
    assert rev(scene, name) == before


def test_nothing_is_committed_to_no_branch(scene: Scene) -> None:
    scene.call("Bash", command="git checkout -q --detach; echo x > new")

    with pytest.raises(CommitFailed, match="HEAD is not the branch interlock/one/work"):
        asyncio.run(commit_changes(scene.workplace(), "x"))


@needs_landlock
def test_nothing_is_committed_in_a_worktree_whose_link_leads_elsewhere(scene: Scene) -> None:
    """As it does if what stands beside a command was killed before it could put the link back."""
    (scene.worktree / ".git").unlink()
    subprocess.run(["git", "init", "-q", str(scene.worktree)], check=True)

    with pytest.raises(PermissionError, match="no longer leads to git's directory"):
        asyncio.run(commit_changes(scene.workplace(), "x"))


@needs_landlock
def test_a_branch_that_stands_for_another_and_a_repository_inside_get_nobody_out(
    scene: Scene,
) -> None:
    before = rev(scene, "main")
    escaped = scene.base / "outside/escaped"
    text = (
        "git init -q sub && cd sub && echo 1 > f && git add f && git commit -q -m x"
        f" && printf '#!/bin/sh\\ntouch {escaped} $PWD/ran; cat\\n' > ../evil && chmod +x ../evil"
        " && echo 'f filter=x' > .gitattributes && git config filter.x.clean $PWD/../evil && cd .."
        " && git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub"
        " && echo 2 > sub/f"
    )
    assert scene.call("Bash", command=text).exit_code == 0

    asyncio.run(commit_changes(scene.workplace(), "x"))

    assert (scene.worktree / "sub/ran").exists(), "git did run it, inside"
    assert not escaped.exists()
    scene.call("Bash", command=f"git symbolic-ref refs/heads/{BRANCH} refs/heads/main; echo x > y")
    with pytest.raises(CommitFailed):
        asyncio.run(commit_changes(scene.workplace(), "x"))
    assert rev(scene, "main") == before


@pytest.mark.parametrize("level", LEVELS)
def test_only_named_files_are_in_the_commit(scene: Scene, level: Any) -> None:
    base, place = rev(scene, BRANCH), scene.workplace(level)
    (scene.worktree / ".gitignore").write_text("*.key\n")
    for name in ("named", "-q", "a*b", "axb", "secret.key", "unnamed", "folder/inside"):
        (scene.worktree / name).parent.mkdir(exist_ok=True)
        (scene.worktree / name).write_text("x")
    (scene.worktree / "link").symlink_to("folder")
    (scene.worktree / "tracked").unlink()
    scene.call("Bash", command="git add unnamed && git add axb && git commit -q -m mine")
    files = ("named", "-q", "a*b", "link", "tracked", "folder", "secret.key", "never was")

    end = asyncio.run(commit_named_files(place, "x", base, files))

    assert end.commit == rev(scene, BRANCH)
    assert rev(scene, f"{BRANCH}~1") == base, "what the model has committed is not in it"
    words = ["git", "show", "--format=", "--name-status", BRANCH]
    shown = subprocess.check_output(words, cwd=scene.repository, text=True)
    assert shown.splitlines() == ["A\t-q", "A\ta*b", "A\tlink", "A\tnamed", "D\ttracked"]
    assert end.files_left == 4, "unnamed, axb, folder/inside and .gitignore"
    assert (scene.worktree / "unnamed").read_text() == "x"
    again = asyncio.run(commit_named_files(place, "x", base, files))
    assert (again.files_left, rev(scene, f"{BRANCH}~1")) == (4, base)


def test_where_no_named_file_has_changed_there_is_no_commit(scene: Scene) -> None:
    base = rev(scene, BRANCH)
    (scene.worktree / "unnamed").write_text("x")

    end = asyncio.run(commit_named_files(scene.workplace(), "x", base, ["tracked"]))

    assert end == BranchEnd(base, 1)


@pytest.mark.parametrize("level", LEVELS)
def test_no_filter_runs_and_no_file_that_needs_one_is_committed(scene: Scene, level: Any) -> None:
    ran = scene.worktree / "ran"
    words = ["git", "config", "filter.crypt.clean", f"touch {ran}; cat"]
    subprocess.check_call(words, cwd=scene.repository)
    variables = filter_variables([scene.worktree])
    place = msgspec.structs.replace(scene.workplace(level), variables=variables)
    base = rev(scene, BRANCH)
    (scene.worktree / ".gitattributes").write_text("*.key filter=crypt\n")
    for name in ("plain", "a.key", "b c.key"):
        (scene.worktree / name).write_text("password")

    with pytest.raises(CommitFailed, match="key needs a git filter"):
        asyncio.run(commit_named_files(place, "x", base, ["plain", "a.key"]))
    end = asyncio.run(commit_changes(place, "x"))

    words = ["git", "show", "--format=", "--name-only", BRANCH]
    shown = subprocess.check_output(words, cwd=scene.repository, text=True)
    assert shown.split() == [".gitattributes", "plain"]
    assert (end.files_left, end.files_filtered) == (2, 2)
    assert not ran.exists()
