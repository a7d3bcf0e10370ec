"""The projects whose notes the console shows; a URL could name any directory.

These are the projects in which a session has worked, the one in which the server was started, and
those whose notes somebody has used on this machine. Only the path of the last kind is remembered:
whether it still is a project with a usable notes folder is checked every time.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from interlock.app.context import App
from interlock.app.gate.notes_location import NotesLocation, notes_location, project_root
from interlock.app.notes.project_notes import INDEX_DIRECTORY
from interlock.app.sessions.known_workspaces import OFFERED_MAX, known_workspace, known_workspaces
from interlock.core.explanation import Explanation
from interlock.store.notes.projects import is_remembered_project, remembered_projects

REMEMBERED_PROJECTS_MAX = 200  # of the remembered ones; for each the settings are read


def known_projects(app: App) -> tuple[str, ...]:
    """Return workspaces of sessions, the last used first; then the others, each project once."""
    workspaces = known_workspaces(app)
    workspace_roots = {str(project_root(Path(workspace))) for workspace in workspaces}
    others = (root for root in _other_projects(app) if root not in workspace_roots)
    return (*workspaces, *islice(others, OFFERED_MAX - len(workspaces)))


def known_project(app: App, path: str) -> Path | Explanation:
    """Return the path if it is one of them.

    Other directories are not read, and the refusal does not tell whether they exist.
    """
    workspace = known_workspace(app, path)
    if isinstance(workspace, Path):
        return workspace
    if path and (path == _own_project_root() or _is_used_project(app, path)):
        return Path(path)
    return Explanation(
        workspace.code,
        f"No project is known at `{path}`, or it is no longer there",
        "Choose one of the projects that are listed. Others become known when an agent starts work"
        " there, and when you use their notes: `interlock note check`, in the project.",
    )


def _other_projects(app: App) -> Iterator[str]:
    own_root = _own_project_root()
    if own_root:
        yield own_root
    for root in remembered_projects(app.home / INDEX_DIRECTORY, limit=REMEMBERED_PROJECTS_MAX):
        if root != own_root and _has_usable_notes(app, root):
            yield root


def _is_used_project(app: App, path: str) -> bool:
    return is_remembered_project(app.home / INDEX_DIRECTORY, path) and _has_usable_notes(app, path)


def _has_usable_notes(app: App, root: str) -> bool:
    """Whether it is the root of a project, not just below one, whose notes folder may be used."""
    location = notes_location(app.home, Path(root))
    return (
        isinstance(location, NotesLocation)
        and str(location.root) == root
        and os.path.isdir(location.folder)
        and _is_utf8_path(root)
    )


def _own_project_root() -> str:
    """Return the root of the project around the current directory; empty if there is none."""
    try:
        root = project_root(Path.cwd())
    except OSError:
        return ""  # the directory was removed under us
    return str(root) if root and _is_utf8_path(str(root)) else ""


def _is_utf8_path(root: str) -> bool:
    """Whether a URL can name it: a path may contain bytes that are not UTF-8."""
    return os.fsencode(root) == root.encode("utf-8", "replace")
