"""Check commits against what others have reserved, and have git ask for that."""

import sys
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.coordination.participants import Participant
from interlock.app.coordination.project_desk import ProjectDesk, read_board
from interlock.core.coordination.path_patterns import covers
from interlock.core.coordination.records import Reservation
from interlock.core.coordination.refusals import IdentityLost, span_text
from interlock.core.coordination.registration import loss_of
from interlock.core.refusal import PlainRefusal
from interlock.workspace.git import commit_guard
from interlock.workspace.git.commit_guard import GuardRefused, staged_paths

_OWN_FOLDERS = (".interlock/", ".agents/", ".beads/")
"""Files of trackers and logbooks, which everybody changes."""


class GuardedPath(msgspec.Struct, frozen=True):
    path: str
    holder: str
    pattern: str
    left_ms: int

    def describe(self) -> str:
        return (
            f"{self.path}: {self.holder} has reserved `{self.pattern}`, for another"
            f" {span_text(self.left_ms)}"
        )


def install_guard(app: App, worktree: Path) -> Path | PlainRefusal:
    """Have git ask before each commit; the hook that was there is run as well."""
    try:
        return commit_guard.install_guard(worktree, sys.executable, app.home)
    except (GuardRefused, OSError) as failure:
        return _guard_unchanged(failure)


def remove_guard(worktree: Path) -> bool | PlainRefusal:
    """Put the hooks back as they were; False if the guard was not there."""
    try:
        return commit_guard.remove_guard(worktree)
    except (GuardRefused, OSError) as failure:
        return _guard_unchanged(failure)


def _guard_unchanged(failure: Exception) -> PlainRefusal:
    error = f"The guard was not changed: {failure}"
    return PlainRefusal("not_allowed", error, "Nothing was written.")


def check_commit(
    app: App, desk: ProjectDesk, who: Participant | None
) -> list[GuardedPath] | IdentityLost:
    """The staged paths that others hold exclusively in this worktree; `who` commits, if known."""
    board = read_board(app, desk)
    own = board.identity_of(who.key) if who else None
    if who and (lost := loss_of(board, who.key)):
        return lost
    held = [
        one
        for one in board.live_reservations()
        if one.is_exclusive
        and (own is None or one.holder != own.id)
        and one.worktree in ("", str(desk.root))
    ]
    if not held:
        return []
    return [
        GuardedPath(path, board.display(one.holder), one.pattern, one.until_ms - board.now_ms)
        for path in staged_paths(desk.root)
        if not path.startswith(_OWN_FOLDERS)
        for one in held
        if _is_held(one, path, folds_case=desk.path_rules.folds_case)
    ]


def _is_held(reservation: Reservation, path: str, *, folds_case: bool) -> bool:
    return covers(reservation.path_set, path, folds_case=folds_case)
