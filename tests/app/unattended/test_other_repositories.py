"""Which other repositories an order may name, and what is said of those it may not."""

from pathlib import Path

import pytest

from interlock.app.unattended.other_repositories import settle_repositories
from interlock.app.unattended.worktrees import make_other_worktrees
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.refusal import PlainRefusal
from interlock.core.unattended.order import OtherRepository, Runner, UnattendedOrder
from interlock.workspace.git.worktrees import GitFailed
from tests.unattended_scene import make_repository
from tests.workspace.git.test_state import run

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Repositories `first`, `web` and `lib`, a worktree of each of two, and what is none."""
    for name in ("first", "web", "lib"):
        make_repository(tmp_path / name)
    run(tmp_path / "web", "worktree", "add", "-q", "../web-2")
    run(tmp_path / "first", "worktree", "add", "-q", "../first-2")
    run(tmp_path, "init", "-q", "empty")
    (tmp_path / "plain").mkdir()
    return tmp_path


REFUSED: dict[str, tuple[list[tuple[str, str, str]], Runner, str, str]] = {
    "no directory": ([("web", "nowhere", "")], "model", "not in a git repository", "git init"),
    "no repository": ([("web", "plain", "")], "model", "not in a git repository", "git init"),
    "no commit": ([("web", "empty", "")], "model", "not in a git repository with a", "git commit"),
    "no such base": ([("web", "web", "v9")], "model", "`v9` is no commit of", "Name a branch"),
    "an option as base": ([("web", "web", "--all")], "model", "is no commit of", "Name a branch"),
    "the first": ([("web", "first", "")], "model", "same repository as `main`", "Leave it out"),
    "its worktree": ([("x", "first-2", "")], "model", "same repository as `main`", "Leave it out"),
    "one twice": (
        [("web", "web", ""), ("copy", "web-2", "")],
        *("model", "same repository as `web`", "Leave it out"),
    ),
    "a name twice": (
        [("web", "web", ""), ("web", "lib", "")],
        *("model", "used twice", "a name of its own"),
    ),
    "the name of the first": ([("main", "web", "")], "model", "in which you order", "another name"),
    "a name that leads up": ([("../x", "web", "")], "model", "by a short word", "as in `web`"),
    "a name in capitals": ([("Web", "web", "")], "model", "by a short word", "as in `web`"),
    "a long name": ([("a" * 32, "web", "")], "model", "by a short word", "as in `web`"),
    "no name": ([("", "web", "")], "model", "by a short word", "as in `web`"),
    "too many": ([(f"r{x}", "web", "") for x in range(9)], "model", "8 at most", "in two parts"),
    "Claude Code": ([("web", "web", "")], "claude-code", "one worktree only", "`--runner model`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_repository_that_cannot_be_part_of_the_work_is_refused_with_a_hint(
    place: Path, name: str
) -> None:
    named, runner, why, hint = REFUSED[name]
    wanted = tuple(OtherRepository(x, str(place / folder), base) for x, folder, base in named)

    refused = settle_repositories(place / "first", wanted, runner)

    assert isinstance(refused, PlainRefusal)
    explanation = refused.explain()
    assert (explanation.code, why in explanation.error) == ("invalid_arguments", True), explanation
    assert hint in explanation.hint


def test_others_are_settled_with_their_tops_and_their_commits(place: Path) -> None:
    (place / "web" / "sub").mkdir()
    run(place / "lib", "tag", "v1")
    tip = run(place / "lib", "rev-parse", "HEAD")
    run(place / "lib", "commit", "-q", "--allow-empty", "-m", "two")
    wanted = (
        OtherRepository("web", str(place / "web" / "sub")),
        OtherRepository("lib-2", str(place / "lib"), "v1"),
    )

    settled = settle_repositories(place / "first", wanted, "model")

    web = run(place / "web", "rev-parse", "HEAD")
    assert settled == (
        OtherRepository("web", str(place / "web"), web),
        OtherRepository("lib-2", str(place / "lib"), tip),
    )
    assert settle_repositories(place / "first", (), "claude-code") == ()


def test_a_worktree_that_git_refuses_is_named_by_its_repository(place: Path) -> None:
    web = OtherRepository("web", str(place / "web"))
    lib = OtherRepository("lib", str(place / "lib"), "v9")
    first = str(place / "first")
    order = UnattendedOrder(
        WorkflowId("line"), "Do it", first, "machine", "model", repositories=(web, lib)
    )

    with pytest.raises(GitFailed, match=r"^the repository `lib`: .*v9"):
        make_other_worktrees(place / "home", SessionId("ses_0123456789abcdef"), order)
