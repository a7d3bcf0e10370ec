"""The project that a directory belongs to, as all who share the store call it."""

from pathlib import Path

from interlock.app.context import App
from interlock.core.ids import ProjectId
from interlock.workspace.projects.project_identity import locate_project


def project_of(app: App, directory: Path) -> tuple[ProjectId, Path]:
    """The name of the project, and the top of its worktree.

    A name that is in use is kept, though a better one may have come since.
    """
    known = app.coordination.projects.get(str(directory))
    if known:
        return known
    place = locate_project(app.home, directory)
    first, *others = place.likely
    is_used = not others or app.reader.project_end(first)[0] > 0
    named = (first if is_used else others[0]), place.root
    app.coordination.projects[str(directory)] = named
    return named
