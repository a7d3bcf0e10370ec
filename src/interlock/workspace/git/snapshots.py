"""Save the uncommitted work of a worktree as a commit that no branch has, and change nothing."""

import os
import tempfile
from pathlib import Path

from interlock.workspace.git.commits import run_bounded_git

REF_PREFIX = "refs/interlock/taken-over/"


class SnapshotFailure(Exception):
    """The work could not be saved; the message gives the reason."""


def save_snapshot(worktree: Path, name: str) -> str | None:
    """Save all that is not committed, new files too; return the ref, or None if there is nothing.

    Raises:
        SnapshotFailure: git fails. Nothing was changed.
    """
    status = run_bounded_git(worktree, "status", "--porcelain", "--untracked-files=normal")
    if status.code != 0:
        raise SnapshotFailure(status.error or "git does not answer")
    if not status.output.strip():
        return None
    ref = f"{REF_PREFIX}{name}"
    with tempfile.TemporaryDirectory() as folder:
        # An index of our own: what is staged in the worktree stays as it is.
        index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        head = run_bounded_git(worktree, "rev-parse", "--verify", "--quiet", "HEAD")
        parent = head.output.strip()
        if parent:
            _require(worktree, "read-tree", "HEAD", variables=index)
        _require(worktree, "add", "--all", variables=index)
        tree = _require(worktree, "write-tree", variables=index)
        parents = ("-p", parent) if parent else ()
        message = f"Uncommitted work of {name}, saved before it was taken over"
        author = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", "Interlock"), ("EMAIL", "interlock@localhost"))
        }
        commit = _require(worktree, "commit-tree", tree, *parents, "-m", message, variables=author)
        _require(worktree, "update-ref", ref, commit)
    return ref


def _require(worktree: Path, *arguments: str, variables: dict[str, str] | None = None) -> str:
    result = run_bounded_git(worktree, *arguments, variables=variables)
    if result.code != 0:
        raise SnapshotFailure(result.error or f"git {arguments[0]} failed")
    return result.output.strip()
