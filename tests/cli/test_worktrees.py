"""Worktrees on the command line: listed with why they stay, and removed where nothing is lost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.unattended.orders import OrderedWork, OrderRequest, order_work, state_of
from interlock.app.unattended.worktrees import changes_of, make_other_worktrees, make_worktree
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.order import OtherRepository, Spent
from interlock.core.views.changed_files import changed_files
from tests.cli.conftest import Terminal
from tests.unattended_scene import MODEL, make_repository, order, report
from tests.workspace.git.test_state import run

HOSTILE = "Make it 'better'; $(touch x)\n\x1b[2J…/../../../etc \u202e"


@pytest.fixture
def repository(app: App, tmp_path: Path) -> Path:
    assert app.home
    return make_repository(tmp_path / "shed")


def begin(app: App, repository: Path, goal: str = "Build a shed") -> tuple[SessionId, Path]:
    session = order(app, repository, goal)
    state = state_of(app, session)
    assert state is not None
    path, branch = make_worktree(app.home, session, state.order)
    moved = UnattendedMoved("working", Spent(), worktree=str(path), branch=branch)
    report(app, session, moved)
    return session, path


def end(app: App, session: SessionId) -> None:
    report(app, session, UnattendedMoved("done", Spent(), outcome="success"))


def commit(path: Path) -> None:
    (path / "a.txt").write_text("changed\n")
    run(path, "commit", "-q", "-a", "-m", "Change it")


def change(path: Path) -> None:
    (path / "new.txt").write_text("new\n")


def lose_link(path: Path) -> None:
    (path / ".git").write_text(f"gitdir: {path / 'fake' / 'worktrees' / path.name}\n")


def nest(path: Path) -> None:
    make_repository(path / "inner")
    run(path, "add", "inner")
    run(path, "commit", "-q", "-m", "With a repository")


KEPT: dict[str, tuple[Callable[[Path], object], str, bool]] = {
    "nothing": (bool, "", True),
    "commits that no other branch has": (commit, "", True),
    "a new file": (change, "1 file in it is not committed", True),
    "a repository within it": (nest, "a repository in it would be lost", True),
    "a link to elsewhere": (lose_link, "git does not know it as a worktree any more", False),
}
"""By what is in it: why it stays, and whether that can be overruled."""


@pytest.mark.parametrize("name", KEPT)
def test_a_worktree_goes_if_nothing_is_lost_with_it_and_its_branch_stays(
    app: App, typed: Terminal, repository: Path, name: str
) -> None:
    prepare, why, yields_to_force = KEPT[name]
    session, path = begin(app, repository, HOSTILE)
    prepare(path)
    end(app, session)
    branches = run(repository, "branch", "--list", "interlock/*", "--format=%(objectname)")
    (listed,) = json.loads(typed("worktrees", "list", "--json").out)
    shown = typed("worktrees", "list").out

    every = typed("worktrees", "clean")
    named = typed("worktrees", "clean", session[:12]) if path.exists() else None
    was_kept = path.exists()
    forced = typed("worktrees", "clean", session[:12], "--force") if was_kept else None

    assert (listed["session"], listed["path"], listed["keptBecause"]) == (session, str(path), why)
    assert (f"stays: {why}" in shown, "can go" in shown) == (bool(why), not why)
    assert "\x1b" not in shown
    assert every.code == 0
    if named:
        assert f"`{path}` is kept: {why}" in every.err
        assert (named.code, f"is kept: {why}" in named.err) == (1, True)
    assert was_kept == bool(why)
    assert path.exists() == (not yields_to_force)
    assert forced is None or forced.code == (0 if yields_to_force else 1)
    assert branches
    kept = run(repository, "branch", "--list", "interlock/*", "--format=%(objectname)")
    assert kept == branches, "whatever it had committed is there"


@pytest.fixture
def two(app: App, repository: Path) -> tuple[SessionId, Path, Path]:
    """A session over two repositories, and its worktrees."""
    web = OtherRepository("web", str(make_repository(repository.with_name("web"))))
    request = OrderRequest(
        WorkflowId("hello"), "Build both", repository, MODEL, repositories=(web,)
    )
    ordered = order_work(app, request, place="in a test")
    assert isinstance(ordered, OrderedWork), ordered
    session, state = ordered.session, state_of(app, ordered.session)
    assert state is not None
    path, branch = make_worktree(app.home, session, state.order)
    others = make_other_worktrees(app.home, session, state.order)
    assert others == make_other_worktrees(app.home, session, state.order), "found again"
    moved = UnattendedMoved("working", Spent(), worktree=str(path), branch=branch, others=others)
    report(app, session, moved)
    return session, path, Path(others[0].worktree)


def test_all_worktrees_of_a_session_are_listed_and_cleaned(
    app: App, typed: Terminal, two: tuple[SessionId, Path, Path]
) -> None:
    session, path, web = two
    change(web)
    busy = typed("worktrees", "clean", session, "--force")
    end(app, session)

    listed = json.loads(typed("worktrees", "list", "--json").out)
    one_stays = typed("worktrees", "clean", session[:12])
    was_kept = web.exists()
    forced = typed("worktrees", "clean", session[:12], "--force")

    assert busy.err.count("the work in it is not over") == 2
    assert [(one["session"], one["path"], one["keptBecause"]) for one in listed] == [
        (session, str(path), ""),
        (session, str(web), "1 file in it is not committed"),
    ]
    assert Path(listed[1]["repository"]).name == "web"
    assert (one_stays.code, f"`{web}` is kept" in one_stays.err) == (1, True)
    assert (was_kept, forced.code, path.exists(), web.exists()) == (True, 0, False, False)


def test_a_forged_worktree_among_several_is_neither_shown_nor_removed(
    app: App, typed: Terminal, two: tuple[SessionId, Path, Path]
) -> None:
    session, path, web = two
    (web / ".git").write_text((path / ".git").read_text())
    change(path)
    end(app, session)
    state = state_of(app, session)

    typed("worktrees", "clean", session, "--force")

    assert state is not None
    assert "web" not in changes_of(state)
    assert (path.exists(), web.exists()) == (False, True)


def test_the_diff_has_the_files_of_each_repository_beneath_its_name(
    app: App, two: tuple[SessionId, Path, Path]
) -> None:
    session, path, web = two
    commit(path)
    commit(web)
    change(web)
    state = state_of(app, session)

    assert state is not None
    files = changed_files(changes_of(state))
    assert [(file.name, file.how) for file in files] == [
        ("a.txt", "changed"),
        ("web/a.txt", "changed"),
        ("web/new.txt", "new"),
    ]


def test_only_what_interlock_made_is_removed(
    app: App, typed: Terminal, repository: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "mine"
    run(repository, "worktree", "add", "-q", "-b", "mine", str(elsewhere))
    first, path = begin(app, repository)
    _, other = begin(app, repository, "Paint it")
    end(app, first)
    folder = app.home / "worktrees"
    (folder / "linked").symlink_to(elsewhere)
    (folder / "ses_strange").mkdir()
    (folder / "ses_strange" / "precious.txt").touch()

    unknown = typed("worktrees", "clean", "../../mine", "--json")
    several = typed("worktrees", "clean", "ses_")
    said: dict[str, Any] = json.loads(typed("worktrees", "clean", "--json").out)

    assert json.loads(unknown.out)["code"] == "unknown_session"
    assert "Several worktrees begin with `ses_`" in several.err
    assert [one["session"] for one in said["removed"]] == [first]
    assert {one["path"] for one in said["kept"]} == {str(other), str(folder / "ses_strange")}
    assert not path.exists()
    assert (elsewhere / "a.txt").exists()
    assert (folder / "ses_strange" / "precious.txt").exists()
    assert run(repository, "worktree", "list").count("\n") == 2
    assert typed("worktrees", "clean", str(first)).code == 1, "it is gone"


def test_a_worktree_whose_session_was_deleted_can_be_cleaned_up(
    app: App, typed: Terminal, repository: Path
) -> None:
    session, path = begin(app, repository)
    orphan = path.with_name("ses_0000000000000000")
    run(repository, "worktree", "move", str(path), str(orphan))

    (listed,) = json.loads(typed("worktrees", "list", "--json").out)
    cleaned = typed("worktrees", "clean", orphan.name)

    assert (listed["session"], listed["isOver"], listed["keptBecause"]) == (None, True, "")
    assert f"Removed {orphan}; its branch interlock/build-a-shed-{session[4:12]}/work stays" in (
        cleaned.out
    )
    assert "There are no worktrees" in typed("worktrees", "list").out
    assert typed("worktrees", "clean").out == "There is nothing to clean up.\n"


def test_changes_are_shown_from_where_the_work_began_even_when_they_were_merged(
    app: App, repository: Path
) -> None:
    session, path = begin(app, repository)
    commit(path)
    state = state_of(app, session)
    assert state is not None
    before = changes_of(state)

    run(repository, "merge", "-q", "--no-edit", state.branch)
    run(repository, "commit", "-q", "--allow-empty", "-m", "later")

    assert "+changed" in before
    assert changes_of(state) == before
    lose_link(path)
    assert changes_of(state) == "", "git is not let follow what an agent may have written"
