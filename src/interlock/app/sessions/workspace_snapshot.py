"""The git state of a workspace, as Interlock itself observes it, and changes to it."""

from pathlib import Path

from interlock.core.session.events import ObservationRecorded
from interlock.core.session.head import Head
from interlock.core.session.start_evidence import branch_facts, renew_evidence
from interlock.core.session.state import SessionState
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


def present_evidence(state: SessionState) -> dict[str, str]:
    """Return the recorded evidence of the start, with the current branch if git is used."""
    recorded, now = state.protocol_start_evidence, observe_workspace(Path(state.worktree))
    return renew_evidence(recorded, branch_facts(now.git_branch or "detached") if now else {})
