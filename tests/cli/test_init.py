"""`interlock init`: which directories become projects, and which repositories belong to none."""

import json
from pathlib import Path

import pytest

from interlock.workspace.projects import project
from tests.cli.conftest import Terminal


@pytest.mark.parametrize("where", ["root", "home", "repositories inside"])
def test_an_odd_directory_is_not_taken_without_a_word(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    expected = {
        "root": "the root of all files",
        "home": "your home directory",
        "repositories inside": "repositories inside (two, deep/one)",
    }
    if where == "root":
        monkeypatch.chdir("/")
    elif where == "home":
        monkeypatch.setenv("HOME", str(tmp_path))
    else:
        for name in ("two", "deep/one", ".hidden/three"):
            (tmp_path / name / ".git").mkdir(parents=True)

    refused = typed("init", "--json")

    assert refused.code == 1
    told = json.loads(refused.out)
    assert expected[where] in told["error"]
    assert "--yes" in told["hint"]
    assert not Path(project.CONFIG).exists()


def test_it_is_taken_if_the_user_says_so(typed: Terminal, tmp_path: Path) -> None:
    (tmp_path / "inner" / ".git").mkdir(parents=True)

    assert typed("init", "--yes").code == 0
    assert project.root_of(tmp_path) == tmp_path


def test_an_inner_repository_belongs_to_itself_and_a_worktree_to_what_is_around_it(
    typed: Terminal, tmp_path: Path
) -> None:
    typed("init")
    inner, worktree = tmp_path / "inner", tmp_path / "worktree"
    (inner / ".git").mkdir(parents=True)
    (inner / "deep").mkdir()
    worktree.mkdir()
    (worktree / ".git").write_text("gitdir: elsewhere\n")

    assert project.root_of(inner / "deep") is None
    assert project.root_of(worktree) == tmp_path
    assert project.root_of(tmp_path / "plain") == tmp_path
