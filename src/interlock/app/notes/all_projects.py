"""The notes of all known projects: the newest of each, or those that a search finds there.

Scores of one project mean nothing beside those of another, so each has a list of its own. A page
waits for this: what takes too long is left for the next look, and said.

A URL could name any directory. Known are the projects in which a session has worked, the one in
which the server was started, and those whose notes somebody has used on this machine. Only the path
of the last kind is remembered: whether it still is a project with a usable notes folder is checked
every time.
"""

import os
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.gate.notes_location import NotesLocation, notes_location, project_root
from interlock.app.notes.browse import NoteListPage, browse_notes
from interlock.app.notes.project_notes import INDEX_DIRECTORY, OpenedNotes, open_notes
from interlock.app.notes.search import NoteQuery
from interlock.app.sessions.known_workspaces import OFFERED_MAX, known_workspace, known_workspaces
from interlock.core.explanation import Explanation
from interlock.store.notes.projects import is_remembered_project, remembered_projects

PROJECTS_MAX = 30  # fewer than may be open at once, so that no page closes what it opens again
SECONDS_MAX = 1.0


class ProjectListing(msgspec.Struct, frozen=True):
    project: str
    listing: NoteListPage


class NotesOverview(msgspec.Struct, frozen=True):
    listings: tuple[ProjectListing, ...]
    """Those with a note to show; for a search those that have all its words, if there are any."""
    unread: tuple[str, ...]
    """Projects whose notes could not be looked at, or not in time."""


def with_notes(app: App, projects: Sequence[str]) -> list[str]:
    """Return the projects that have a folder of notes, each folder once."""
    by_folder: dict[Path, str] = {}
    for project in projects:
        location = notes_location(app.home, Path(project))
        if isinstance(location, NotesLocation) and os.path.isdir(location.folder):
            by_folder.setdefault(location.folder, project)
    return list(by_folder.values())


def browse_all_notes(app: App, projects: Sequence[str], query: NoteQuery) -> NotesOverview:
    """Return what the query finds in each of these projects, the one with the best note first."""
    deadline = time.monotonic() + SECONDS_MAX
    listings: list[ProjectListing] = []
    unread: list[str] = list(projects[PROJECTS_MAX:])
    for project in projects[:PROJECTS_MAX]:
        seconds_left = deadline - time.monotonic()
        listing = _browse(app, project, query, seconds_left) if seconds_left > 0 else None
        if listing is None:
            unread.append(project)
        else:
            listings.append(ProjectListing(project, listing))
    with_rows = [one for one in listings if one.listing.rows]
    strict = [one for one in with_rows if not one.listing.is_loose] or with_rows
    strict.sort(key=_rank, reverse=True)
    return NotesOverview(tuple(strict), tuple(unread))


def _rank(one: ProjectListing) -> tuple[float, int]:
    """The score of its best note, and the time of its newest: without words there is no score."""
    hits = [row.hit for row in one.listing.rows]
    return max(hit.score for hit in hits), max(hit.note.modified_ms for hit in hits)


def _browse(app: App, project: str, query: NoteQuery, seconds_left: float) -> NoteListPage | None:
    try:
        notes = open_notes(app, Path(project))
        if not isinstance(notes, OpenedNotes):
            return None
        listing = browse_notes(app, notes, msgspec.structs.replace(query, seconds_max=seconds_left))
    except StoreFailure:
        return None
    return listing if isinstance(listing, NoteListPage) else None


REMEMBERED_PROJECTS_MAX = 200  # reads the settings of each


def known_projects(app: App) -> tuple[str, ...]:
    """Return workspaces of sessions, the last used first; then the others, each project once."""
    workspaces = known_workspaces(app)
    workspace_roots = {str(project_root(Path(workspace))) for workspace in workspaces}
    others = (root for root in _other_projects(app) if root not in workspace_roots)
    return (*workspaces, *islice(others, OFFERED_MAX - len(workspaces)))


def known_project(app: App, path: str) -> Path | Explanation:
    """Return the path if it is one of them.

    Other directories are not read, and the refusal does not reveal whether they exist.
    """
    workspace = known_workspace(app, path)
    if isinstance(workspace, Path):
        return workspace
    if path and (path == _own_project_root() or _is_used_project(app, path)):
        return Path(path)
    return Explanation(
        workspace.code,
        f"There is no known project at `{path}`",
        "Choose a listed project. Another one is listed after an agent has started work"
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
    """Whether a directory is the root of a project whose notes folder may be used."""
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
        return ""  # the directory was removed meanwhile
    return str(root) if root and _is_utf8_path(str(root)) else ""


def _is_utf8_path(root: str) -> bool:
    """Whether a URL can name it: a path may contain bytes that are not UTF-8."""
    return os.fsencode(root) == root.encode("utf-8", "replace")
