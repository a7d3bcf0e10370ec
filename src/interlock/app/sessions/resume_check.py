"""Observe what has changed since a session was last worked in."""

import os
from pathlib import Path

from interlock.app.sessions.workspace_snapshot import observe_workspace
from interlock.core.protocol.resume_check import (
    GitPosition,
    ResumeObservation,
    awaited_files,
    differences,
)
from interlock.core.session.head import Head
from interlock.core.session.orchestration import NO_WORK, Orchestration
from interlock.workspace.git import state

FILES_MAX = 50


def git_changes(head: Head) -> tuple[str, ...]:
    """The differences in git that can be seen at once, without asking it."""
    recorded, position = _positions(head)
    return differences(recorded, NO_WORK, ResumeObservation(position))


def changes_to_verify(head: Head, work: Orchestration) -> tuple[str, ...]:
    """The differences that an agent should check before it goes on after a break."""
    workspace = Path(head.workspace)
    recorded, position = _positions(head)
    has_moved = position and position.commit != recorded.commit and recorded.commit
    commits = state.changes_since(workspace, recorded.commit or "") if has_moved else ()
    missing = frozenset(
        name for name in awaited_files(work)[:FILES_MAX] if not _is_there(workspace, name)
    )
    return differences(recorded, work, ResumeObservation(position, commits, missing))


def _positions(head: Head) -> tuple[GitPosition, GitPosition | None]:
    """The position in git as it was recorded, and as it is."""
    git = observe_workspace(Path(head.workspace))
    now = GitPosition(git.git_branch, git.git_head) if git else None
    return GitPosition(head.git_branch, head.git_head), now


def _is_there(workspace: Path, name: str) -> bool:
    """Whether a file is there, as far as anybody can tell; a name may be anything."""
    try:
        return os.path.lexists(workspace / name)
    except ValueError:
        return True
