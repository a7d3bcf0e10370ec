"""Look through the workflows that can be started, at one of them, or at any file."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.app.context import App
from interlock.app.refusals import NoSuchWorkflow
from interlock.core.ids import WorkflowId
from interlock.core.workflow.problems import Invalid
from interlock.workspace.catalogue import Broken, Entry, Place

if TYPE_CHECKING:
    from interlock.core.workflow.compiler import Compiled

__all__ = ["Broken", "Entry", "Listing", "Place", "check_file", "find_workflow", "list_workflows"]


class Listing(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]
    broken: tuple[Broken, ...]
    tags: dict[str, int]
    """How many workflows carry each tag, before any filter."""


def list_workflows(
    app: App, workspace: Path, *, tags: tuple[str, ...] = (), query: str = ""
) -> Listing:
    entries, broken = app.catalogue.entries(workspace)
    counts: dict[str, int] = {}
    for tag in (tag for entry in entries for tag in entry.workflow.tags):
        counts[tag] = counts.get(tag, 0) + 1
    chosen = (entry for entry in entries if _fits(entry, tags, query))
    return Listing(tuple(chosen), tuple(broken), dict(sorted(counts.items())))


def find_workflow(app: App, workspace: Path, workflow: WorkflowId) -> Entry | NoSuchWorkflow:
    entries, broken = app.catalogue.entries(workspace, only=workflow)
    for entry in entries:
        if entry.workflow.id == workflow:
            return entry
    return NoSuchWorkflow(workflow, tuple(entry.workflow.id for entry in entries), tuple(broken))


def check_file(app: App, workspace: Path, path: Path) -> "Compiled | Invalid":
    """A file wherever it lies, as it would be if it lay in the project.

    Raises:
        OSError: the file cannot be read.
    """
    return app.catalogue.check(workspace, path)


def _fits(entry: Entry, tags: tuple[str, ...], query: str) -> bool:
    workflow = entry.workflow
    if tags and not set(tags) & set(workflow.tags):
        return False
    words = f"{workflow.id} {workflow.name} {workflow.description}".casefold()
    return all(word in words for word in query.casefold().split())
