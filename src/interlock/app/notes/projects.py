"""Whose notes the console shows, and of no other directory: an address could name any.

Those are the projects in which a session has worked, the one in which the server was started, and
those whose notes somebody has used on this machine. What is remembered of these last ones is a
name: whether it still is a project with a notes folder that counts is asked every time.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from interlock.app.context import App
from interlock.app.explanation import Explanation
from interlock.app.notes.project_notes import (
    INDEX_DIRECTORY,
    NotesLocation,
    notes_location,
    project_root,
)
from interlock.app.sessions.known_workspaces import OFFERED_MAX, known_workspace, known_workspaces
from interlock.store.notes.projects import is_remembered_project, remembered_projects

REMEMBERED_PROJECTS_MAX = 200  # of those that are remembered; each costs a look at its settings


def known_projects(app: App) -> tuple[str, ...]:
    """Directories of sessions first, the last used first; then the others, each project once."""
    worked_in = known_workspaces(app)
    seen = {str(project_root(Path(workspace))) for workspace in worked_in}
    others = (root for root in _other_projects(app) if root not in seen)
    return (*worked_in, *islice(others, OFFERED_MAX - len(worked_in)))


def known_project(app: App, path: str) -> Path | Explanation:
    """One of them. Others are not looked into, and nobody is told whether they exist."""
    worked_in = known_workspace(app, path)
    if isinstance(worked_in, Path):
        return worked_in
    if path and (path == _own_project_root() or _is_used_project(app, path)):
        return Path(path)
    return Explanation(
        worked_in.code,
        f"No project is known at `{path}`, or it is no longer there",
        "Choose one of the projects that are listed. Others become known when an agent starts work"
        " there, and when you use their notes: `interlock note check`, in the project.",
    )


def newest_project(app: App, projects: Sequence[str]) -> str:
    """The first of the known ones that has notes; else the first that could; else the first."""
    possible = ""
    for one in projects:
        place = notes_location(app.home, Path(one))
        if isinstance(place, NotesLocation):
            if os.path.isdir(place.folder):
                return one
            possible = possible or one
    return possible or next(iter(projects), "")


def _other_projects(app: App) -> Iterator[str]:
    here = _own_project_root()
    if here:
        yield here
    for root in remembered_projects(app.home / INDEX_DIRECTORY, limit=REMEMBERED_PROJECTS_MAX):
        if root != here and _has_usable_notes(app, root):
            yield root


def _is_used_project(app: App, path: str) -> bool:
    return is_remembered_project(app.home / INDEX_DIRECTORY, path) and _has_usable_notes(app, path)


def _has_usable_notes(app: App, root: str) -> bool:
    """Whether it is a project, and not only below one, with a folder that may be looked into."""
    place = notes_location(app.home, Path(root))
    return (
        isinstance(place, NotesLocation)
        and str(place.root) == root
        and os.path.isdir(place.folder)
        and _is_utf8_path(root)
    )


def _own_project_root() -> str:
    """The project around the directory of this process; empty where there is none."""
    try:
        root = project_root(Path.cwd())
    except OSError:
        return ""  # the directory was removed under us
    return str(root) if root and _is_utf8_path(str(root)) else ""


def _is_utf8_path(root: str) -> bool:
    """Whether an address can name it: a path may be no text."""
    return os.fsencode(root) == root.encode("utf-8", "replace")
