"""The worktrees of unattended work: make them, look at all, show what was changed, clean up.

The first repository of a session is worked on in `worktrees/SESSION`, each other one beside it, in
`worktrees/SESSION.NAME`. So every worktree is a folder of that one directory and of nothing else:
none is a repository within another one, its name says whose it is, and what holds for one (how it
is hidden, listed, cleaned and told from a forged one) holds for all without a case of its own.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.unattended.orders import head_of
from interlock.core.explanation import Explanation
from interlock.core.git_names import branch_ref, is_branch_ref
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal
from interlock.core.unattended.order import (
    FIRST_REPOSITORY,
    RepositoryPlace,
    UnattendedOrder,
    UnattendedState,
)
from interlock.sandbox.worktree import own_git_directory
from interlock.workspace.git import worktrees
from interlock.workspace.git.runner import setting_variables
from interlock.workspace.git.shadow import GitFailed
from interlock.workspace.git.worktrees import BRANCH_PREFIX, WorktreeStatus

__all__ = ["GitFailed"]

FOLDER = "worktrees"
_MARK = "."  # neither an id nor a name has one
_NAME_CHARS = 24
_NOT_REGISTERED = "git does not know it as a worktree any more"
_NOT_OVER = "the work in it is not over"


class OwnWorktree(msgspec.Struct, frozen=True, rename="camel"):
    """A worktree of ours, and whose it is."""

    path: str
    session: SessionId | None
    """None: its session was deleted."""
    goal: str
    repository: str
    is_over: bool
    git: WorktreeStatus | None
    """None: git cannot tell how it stands."""

    @property
    def kept_because(self) -> str:
        """Why it cannot go; empty if it can: its work is over, and all of it is on a branch."""
        if not self.is_over:
            return _NOT_OVER
        return self.git.unsaved_work if self.git else _NOT_REGISTERED


class WorktreeKept(Refusal, frozen=True):
    path: str
    why: str

    def explain(self) -> Explanation:
        hints = {
            _NOT_OVER: "`interlock driver cancel SESSION` ends it.",
            _NOT_REGISTERED: "Look at it, and delete the directory yourself.",
        }
        by_force = (
            "Look at it first. `interlock worktrees clean SESSION --force` removes it all the same."
        )
        error, hint = f"`{self.path}` is kept: {self.why}", hints.get(self.why, by_force)
        return Explanation("not_possible_now", error, hint)


class NoSuchWorktree(Refusal, frozen=True):
    name: str
    candidates: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        count = (
            "Several worktrees begin" if self.candidates else "No worktree of Interlock's begins"
        )
        names = f": {', '.join(self.candidates)}" if self.candidates else ""
        return Explanation(
            "unknown_session",
            f"{count} with `{self.name}`{names}",
            "`interlock worktrees list` lists them.",
        )


def worktree_path(home: Path, session: SessionId, name: str = FIRST_REPOSITORY) -> Path:
    """The place for the worktree of a repository of the session's order."""
    suffix = "" if name == FIRST_REPOSITORY else f"{_MARK}{name}"
    return home / FOLDER / f"{session}{suffix}"


def branch_name(order: UnattendedOrder, session: SessionId) -> str:
    """A branch that people recognise: the beginning of the goal, and of the session's id.

    It is alone in its directory: what works in the worktree can move branches there, and no others.
    """
    words = "".join(c if c.isascii() and c.isalnum() else "-" for c in order.goal.lower())
    slug = "-".join(filter(None, words.split("-")))[:_NAME_CHARS].strip("-")
    return f"{BRANCH_PREFIX}{slug or 'goal'}-{session.removeprefix('ses_')[:8]}/work"


def fetch_commits(order: UnattendedOrder) -> UnattendedOrder:
    """Get the commits that work starts from and is compared with; return the order with them.

    Raises:
        GitFailed: git refuses, or a commit or branch is not there any more.
    """
    repository, bases = Path(order.repository), dict[str, str]()
    merge_base = order.merge_base
    if order.fetch and order.base:
        worktrees.fetch_commit(repository, order.fetch, order.base)
        if order.target and not merge_base and not is_branch_ref(order.fetch):
            target = worktrees.fetch_tip(repository, branch_ref(order.target))
            merge_base = worktrees.merge_base(repository, target, order.base)
    elif order.fetch:
        bases[FIRST_REPOSITORY] = worktrees.fetch_tip(repository, order.fetch)
    for other in order.repositories:
        if other.fetch and not other.base:
            bases[other.name] = worktrees.fetch_tip(Path(other.path), other.fetch)
    return order.with_commits(bases, merge_base)


def starting_commits(
    order: UnattendedOrder, worktree: Path, others: Iterable[RepositoryPlace]
) -> dict[str, str]:
    """Return the commits at which work starts that its order only has as branches.

    Until they are recorded, nobody works in the worktrees. One that a killed driver made stays at
    its commit, although the branch may have moved since.
    """
    places = {FIRST_REPOSITORY: worktree, **{one.name: Path(one.worktree) for one in others}}
    wanted = (order.find_repository(name) for name in places)
    return {
        one.name: worktrees.head_commit(places[one.name], "HEAD")
        for one in wanted
        if one and one.fetch and not one.base
    }


def make_worktree(home: Path, session: SessionId, order: UnattendedOrder) -> tuple[Path, str]:
    """Make the worktree of a session, or find it; its path and its branch.

    Raises:
        GitFailed: git refuses.
    """
    path, branch = worktree_path(home, session), branch_name(order, session)
    worktrees.add_worktree(Path(order.repository), path, branch, order.base)
    return path, branch


def make_other_worktrees(
    home: Path, session: SessionId, order: UnattendedOrder
) -> tuple[RepositoryPlace, ...]:
    """Make the worktrees of the other repositories, or find them. Each has the same branch.

    Raises:
        GitFailed: git refuses one.
    """
    branch, places = branch_name(order, session), list[RepositoryPlace]()
    for other in order.repositories:
        path = worktree_path(home, session, other.name)
        try:
            worktrees.add_worktree(Path(other.path), path, branch, other.base)
        except GitFailed as failed:
            raise GitFailed(f"the repository `{other.name}`: {failed}") from failed
        places.append(RepositoryPlace(other.name, str(path), branch))
    return tuple(places)


def filter_variables(paths: Iterable[Path]) -> dict[str, str]:
    """Return the environment in which git runs no filter of the repositories of these worktrees."""
    overrides: dict[str, str] = {}
    for path in paths:
        overrides |= worktrees.filter_overrides(path)
    return setting_variables(overrides)


def list_own_worktrees(app: App) -> list[OwnWorktree]:
    """Every directory for a worktree in the data home, whether its session is there or not."""
    folder = app.home.resolve() / FOLDER
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return [_own_worktree(app, path) for path in paths if path.is_dir() and not path.is_symlink()]


def _own_worktree(app: App, path: Path) -> OwnWorktree:
    name, _, repository_name = path.name.partition(_MARK)
    session = SessionId(name)
    head = head_of(app, session)
    state = head.unattended if head else None
    made_for = state.order.find_repository(repository_name or FIRST_REPOSITORY) if state else None
    repository = made_for.path if made_for else ""
    status = worktrees.worktree_status(path) if is_genuine(path, repository) else None
    return OwnWorktree(
        str(path),
        session if head else None,
        state.order.goal if state else "",
        repository,
        state.is_over if state else True,
        status,
    )


def is_genuine(path: Path, repository: str) -> bool:
    """Whether it leads to the repository that it was made for.

    Git does what the settings of a repository say, and what is in the worktree, the link included,
    may have been written by an agent.
    """
    own = own_git_directory(path.resolve())
    common = worktrees.common_directory(Path(repository)) if repository else None
    return own is not None and common in (None, own.parent.parent)


def find_own_worktrees(app: App, name: str) -> list[OwnWorktree] | NoSuchWorktree:
    """All worktrees of a session, by the beginning of its id; or one of them, by its folder."""
    found = [one for one in list_own_worktrees(app) if Path(one.path).name.startswith(name)]
    sessions = {Path(one.path).name.partition(_MARK)[0] for one in found}
    if len(sessions) == 1 and name:
        return found
    return NoSuchWorktree(name, tuple(sorted(sessions)) if name else ())


def clean_worktree(own: OwnWorktree, *, is_forced: bool) -> WorktreeKept | None:
    """Remove a worktree of ours; its branch stays. One with work that is nowhere else is kept.

    Forced, such work is lost, but what is not over, or not known to git, is kept all the same.
    """
    why = own.kept_because
    if why and (not is_forced or why in (_NOT_OVER, _NOT_REGISTERED)):
        return WorktreeKept(own.path, why)
    try:
        worktrees.remove_worktree(Path(own.path), is_forced=is_forced)
    except GitFailed as failed:
        return WorktreeKept(own.path, str(failed))
    return None


def changes_of(state: UnattendedState) -> str:
    """The diff of all that a session has changed; empty if its worktrees are gone.

    Files of other repositories than the first are beneath the name of theirs.
    """
    order = state.order
    parts = [_changes_in(state.worktree, order.repository, order.base)]
    for place in state.others:
        if other := order.find_repository(place.name):
            folder = f"{place.name}/"
            parts.append(_changes_in(place.worktree, other.path, other.base, folder))
    return "".join(parts)


def _changes_in(worktree: str, repository: str, base: str, folder: str = "") -> str:
    path = Path(worktree)
    if not worktree or not path.is_dir() or not is_genuine(path, repository):
        return ""
    main = worktrees.head_commit(Path(repository), base or "HEAD")
    try:
        start = worktrees.merge_base(path, main) if main else ""
        return worktrees.diff_since(path, start, folder) if start else ""
    except GitFailed as failed:
        return f"Git cannot show it: {failed}\n"
