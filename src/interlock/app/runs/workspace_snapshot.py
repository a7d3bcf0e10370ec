"""What Interlock sees of a workspace by itself."""

from pathlib import Path

from interlock.core.session.events import ObservationRecorded
from interlock.core.session.head import Head
from interlock.workspace.git import state


def observe_workspace(workspace: Path) -> ObservationRecorded | None:
    seen = state.observe(workspace)
    return ObservationRecorded(seen.branch, seen.head) if seen else None


def observe_change(head: Head, workspace: Path) -> ObservationRecorded | None:
    """What is seen now, if it is not what was seen last."""
    seen = observe_workspace(workspace)
    if seen is None or (seen.git_branch, seen.git_head) == (head.git_branch, head.git_head):
        return None
    return seen


def changes_to_verify(head: Head, workspace: Path) -> tuple[str, ...]:
    """What to check before going on after a break."""
    seen = observe_workspace(workspace)
    if seen is None or (head.git_branch is None and head.git_head is None):
        return ()
    lines: list[str] = []
    if seen.git_branch != head.git_branch:
        lines.append(f"The branch was {head.git_branch}; now it is {seen.git_branch}.")
    if seen.git_head != head.git_head:
        was, now = (head.git_head or "none")[:12], (seen.git_head or "none")[:12]
        lines.append(f"The commit was {was}; now it is {now}.")
    return tuple(lines)
