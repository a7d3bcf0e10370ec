"""Our own commit of what a model has left: it does what no other git would be trusted with."""

import asyncio
import subprocess
from typing import Any

import pytest

from interlock.driver.tools.worktree_commit import CommitFailed, commit_changes
from tests.driver.tools.scene import BRANCH, LEVELS, Scene, needs_landlock


def rev(scene: Scene, name: str) -> str:
    words = ["git", "rev-parse", name]
    return subprocess.check_output(words, cwd=scene.repository, text=True).strip()


@pytest.mark.parametrize("level", LEVELS)
def test_all_that_was_changed_is_committed_once(scene: Scene, level: Any) -> None:
    place = scene.workplace(level)
    (scene.worktree / "new").write_text("x")
    (scene.worktree / "tracked").unlink()

    commit = asyncio.run(commit_changes(place, "Say 'why'\n\nAnd $(more)."))

    assert commit == rev(scene, BRANCH)
    words = ["git", "show", "--format=%B", "--name-status", BRANCH]
    shown = subprocess.check_output(words, cwd=scene.repository, text=True)
    assert shown == "Say 'why'\n\nAnd $(more).\n\n\nA\tnew\nD\ttracked\n"
    assert asyncio.run(commit_changes(place, "again")) == ""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["refs/heads/main", "refs/heads/interlock/other/work"])
def test_no_other_branch_is_moved_whatever_head_stands_for(
    scene: Scene, level: Any, name: str
) -> None:
    before = rev(scene, name)
    scene.call("Bash", command=f"git symbolic-ref HEAD {name}; echo x > new")

    with pytest.raises(CommitFailed, match="HEAD is not the branch interlock/one/work"):
        asyncio.run(commit_changes(scene.workplace(level), "x"))

    assert rev(scene, name) == before


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
