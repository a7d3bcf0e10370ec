"""The directories that sessions have worked in. A page may look into these and no others."""

import os
from pathlib import Path

from interlock.app.context import App
from interlock.core.explanation import Explanation

OFFERED_MAX = 50
_ALL = 1_000_000


def known_workspaces(app: App) -> tuple[str, ...]:
    """The directories of sessions that still exist, the most recently used first."""
    workspaces = app.reader.workspaces(limit=OFFERED_MAX)
    # Not `Path.is_dir`: a shared store has directories of other users, for which it raises.
    return tuple(workspace for workspace in workspaces if os.path.isdir(workspace))


def known_workspace(app: App, directory: str) -> Path | Explanation:
    """Return `directory` if it is one of them. Whether another exists is not disclosed."""
    if directory in app.reader.workspaces(limit=_ALL) and os.path.isdir(directory):
        return Path(directory)
    return Explanation(
        "unknown_session",
        f"No session has worked in `{directory}`, or it is no longer there",
        "Choose one of the projects that are listed. Others become known when an agent starts"
        " work there.",
    )
