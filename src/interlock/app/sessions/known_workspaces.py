"""Which directories sessions have worked in: what a page may look into, and nothing else."""

import os
from pathlib import Path

from interlock.app.context import App
from interlock.core.explanation import Explanation

OFFERED_MAX = 50
_ALL = 1_000_000


def known_workspaces(app: App) -> tuple[str, ...]:
    """The directories of sessions, as far as they are still there, the last used first."""
    found = app.reader.workspaces(limit=OFFERED_MAX)
    # Not `Path.is_dir`: in a shared store are directories of others, and it raises there.
    return tuple(workspace for workspace in found if os.path.isdir(workspace))


def known_workspace(app: App, directory: str) -> Path | Explanation:
    """One of them. Others are not looked into, and nobody is told whether they exist."""
    if directory in app.reader.workspaces(limit=_ALL) and os.path.isdir(directory):
        return Path(directory)
    return Explanation(
        "unknown_session",
        f"No session has worked in `{directory}`, or it is no longer there",
        "Choose one of the projects that are listed. Others become known when an agent starts"
        " work there.",
    )
