"""The addresses of the pages about notes, and of their streams of changes."""

from pathlib import Path
from urllib.parse import urlencode

from interlock.app.failures import StoreFailure
from interlock.app.notes.all_projects import PROJECTS_MAX
from interlock.app.notes.polling import combine_states, notes_state
from interlock.server.console import PageRequest


def note_address(project: str, path: str, **more: str) -> str:
    return f"/notes/note?{urlencode({'in': project, 'path': path, **more}, errors='replace')}"


def notes_address(project: str, **more: str) -> str:
    return f"/notes?{urlencode({'in': project, **more}, errors='replace')}"


def briefing_address(project: str, **more: str) -> str:
    return f"/notes/briefing?{urlencode({'in': project, **more}, errors='replace')}"


def notes_stream(request: PageRequest, *projects: Path) -> str:
    """The address of the stream of changes of these projects, which are known ones.

    To be made before anything is read: what changes while the page is made is told to it.
    """
    watched = projects[:PROJECTS_MAX]
    states = [_state(request, project) for project in watched]
    query = [*(("in", str(project)) for project in watched), ("since", combine_states(states))]
    return f"/live/notes?{urlencode(query, errors='replace')}"


def _state(request: PageRequest, project: Path) -> str:
    try:
        return notes_state(request.app, project)
    except (StoreFailure, OSError):
        return ""  # the page says so, and is told once it can be read
