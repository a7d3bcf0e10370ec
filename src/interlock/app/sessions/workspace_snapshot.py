"""The git state of a workspace, as Interlock itself observes it, and changes to it."""

from pathlib import Path

from interlock.core.session.events import ObservationRecorded
from interlock.core.session.head import Head
from interlock.workspace.git import state


def observe_workspace(workspace: Path) -> ObservationRecorded | None:
    git_state = state.observe(workspace)
    return ObservationRecorded(git_state.branch, git_state.head) if git_state else None


def observe_change(head: Head, workspace: Path) -> ObservationRecorded | None:
    """The present observation, if it differs from the last one that was recorded."""
    observation = observe_workspace(workspace)
    if observation is None:
        return None
    last = (head.git_branch, head.git_head)
    return None if (observation.git_branch, observation.git_head) == last else observation


def changes_to_verify(head: Head, workspace: Path) -> tuple[str, ...]:
    """The changes in git that an agent should check before it goes on after a break."""
    observation = observe_workspace(workspace)
    if observation is None or (head.git_branch is None and head.git_head is None):
        return ()
    lines: list[str] = []
    if observation.git_branch != head.git_branch:
        lines.append(f"The branch was {head.git_branch}; now it is {observation.git_branch}.")
    if observation.git_head != head.git_head:
        old, new = (head.git_head or "none")[:12], (observation.git_head or "none")[:12]
        lines.append(f"The commit was {old}; now it is {new}.")
    return tuple(lines)
