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
