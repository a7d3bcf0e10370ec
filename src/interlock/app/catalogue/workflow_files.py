"""List the workflows that can be started, find one of them, and check any workflow file."""

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.app.context import App
from interlock.app.refusals import NoSuchWorkflow
from interlock.core.canonical import CanonicalBytes
from interlock.core.ids import BlobRef, WorkflowHash, WorkflowId
from interlock.core.workflow.compiled_workflow import PinnedWorkflow, decode_workflow
from interlock.core.workflow.problems import InvalidWorkflow, Problem
from interlock.store.records import WorkflowUsage
from interlock.workspace.projects.catalogue import (
    BrokenEntry,
    CatalogueEntry,
    CatalogueLocation,
    is_routine,
    read_workflow_content,
)

if TYPE_CHECKING:
    from interlock.core.workflow.compiler import Compilation

__all__ = [
    "BrokenEntry",
    "CatalogueEntry",
    "CatalogueLocation",
    "WorkflowFile",
    "WorkflowListing",
    "WorkflowUsage",
    "check_content",
    "check_file",
    "find_workflow",
    "find_workflow_file",
    "is_routine",
    "list_workflows",
    "pinned_workflow",
    "read_workflow_content",
    "usage_by_workflow",
    "workflow_handle",
]

_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class WorkflowListing(msgspec.Struct, frozen=True):
    entries: tuple[CatalogueEntry, ...]
    broken: tuple[BrokenEntry, ...]
    tags: dict[str, int]
    """The number of workflows with each tag, before any filter."""


class WorkflowFile(msgspec.Struct, frozen=True):
    """A workflow file for display: valid or not, in use or hidden by another."""

    place: CatalogueLocation
    workflow: WorkflowId | None
    """Its id, if the file can be parsed so far."""
    problems: tuple[Problem, ...]
    """Warnings, or the problems that keep it from being a workflow."""
    compiled: "Compilation | None" = None
    hidden_by: CatalogueLocation | None = None
    """The file with the same id that takes precedence."""
    shadows: tuple[CatalogueLocation, ...] = ()
    broken: tuple[CatalogueLocation, ...] = ()
    """Invalid files that seem to be meant for this id."""

    @property
    def can_start(self) -> bool:
        return self.compiled is not None and self.hidden_by is None


def list_workflows(
    app: App, workspace: Path | None, *, tags: tuple[str, ...] = (), query: str = ""
) -> WorkflowListing:
    entries, broken = app.catalogue.entries(workspace)
    counts: dict[str, int] = {}
    for tag in (tag for entry in entries for tag in entry.workflow.tags):
        counts[tag] = counts.get(tag, 0) + 1
    matches = (entry for entry in entries if _matches_filter(entry, tags, query))
    return WorkflowListing(tuple(matches), tuple(broken), dict(sorted(counts.items())))


def find_workflow(
    app: App, workspace: Path, workflow: WorkflowId
) -> CatalogueEntry | NoSuchWorkflow:
    entries, broken = app.catalogue.entries(workspace, only=workflow)
    for entry in entries:
        if entry.workflow.id == workflow:
            return entry
    return NoSuchWorkflow(workflow, tuple(entry.workflow.id for entry in entries), tuple(broken))


def find_workflow_file(
    app: App, workspace: Path | None, id_or_handle: str
) -> WorkflowFile | NoSuchWorkflow:
    """The file behind an id or a `handle`, whether it can be started or not."""
    if id_or_handle.startswith("~"):
        return _find_by_handle(app, workspace, id_or_handle)
    entries, broken = app.catalogue.entries(workspace, only=WorkflowId(id_or_handle))
    broken_matches = [
        file for file in broken if id_or_handle in (file.workflow, file.place.path.stem)
    ]
    for entry in entries:
        if entry.workflow.id == id_or_handle:
            return _valid_file(entry, tuple(file.place for file in broken_matches))
    if broken_matches:
        return _invalid_file(broken_matches[-1])
    available = tuple(entry.workflow.id for entry in entries)
    return NoSuchWorkflow(WorkflowId(id_or_handle), available, tuple(broken))


def workflow_handle(location: CatalogueLocation) -> str:
    """A name for a file in a URL that does not disclose its path; no id begins with `~`."""
    identity = location.origin.encode() + b"\0" + os.fsencode(location.path)
    return f"~{hashlib.sha256(identity).hexdigest()[:16]}"


def usage_by_workflow(app: App) -> dict[str, WorkflowUsage]:
    """The usage of each workflow, whether its file still exists or not."""
    return {usage.workflow: usage for usage in app.reader.usage()}


def pinned_workflow(app: App, workflow: str, workflow_hash: str) -> PinnedWorkflow | None:
    """Return what runs of `workflow` are pinned to under this hash, as it is stored.

    Raises:
        StoreFailure: nothing is stored under this hash, or something else than it says.
    """
    if not _HASH.fullmatch(workflow_hash):
        return None
    content = app.reader.blob(BlobRef(workflow_hash))
    try:
        compiled = decode_workflow(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # the hash is that of a prompt or an answer
    if compiled.id != workflow:
        return None
    return PinnedWorkflow(compiled, CanonicalBytes(content), WorkflowHash(workflow_hash))


def check_file(app: App, workspace: Path, path: Path) -> "Compilation | InvalidWorkflow":
    """Compile a file from anywhere as if it were in the project.

    Raises:
        OSError: the file cannot be read.
    """
    return app.catalogue.check_file(workspace, path)


def _find_by_handle(
    app: App, workspace: Path | None, requested_handle: str
) -> WorkflowFile | NoSuchWorkflow:
    entries, broken = app.catalogue.entries(workspace)
    for file in broken:
        if workflow_handle(file.place) == requested_handle:
            return _invalid_file(file)
    for entry in entries:
        if workflow_handle(entry.place) == requested_handle:
            return _valid_file(entry, ())
        for hidden in entry.shadows:
            if workflow_handle(hidden) == requested_handle:
                return _hidden_file(app, workspace, hidden, entry)
    available = tuple(entry.workflow.id for entry in entries)
    return NoSuchWorkflow(WorkflowId(requested_handle), available, tuple(broken))


def _valid_file(entry: CatalogueEntry, broken: tuple[CatalogueLocation, ...]) -> WorkflowFile:
    from interlock.core.workflow.compiler import Compilation  # noqa: PLC0415 (20 ms)

    compiled = Compilation(entry.workflow, entry.pinned, entry.warnings)
    return WorkflowFile(
        entry.place,
        entry.workflow.id,
        entry.warnings,
        compiled,
        shadows=entry.shadows,
        broken=broken,
    )


def _invalid_file(file: BrokenEntry) -> WorkflowFile:
    return WorkflowFile(file.place, file.workflow, file.problems)


def _hidden_file(
    app: App, workspace: Path | None, location: CatalogueLocation, hiding_entry: CatalogueEntry
) -> WorkflowFile:
    try:
        outcome = app.catalogue.check_file(workspace, location.path)
    except OSError as error:
        outcome = InvalidWorkflow((Problem("json", "", f"it cannot be read: {error.strerror}"),))
    name, hidden_by = hiding_entry.workflow.id, hiding_entry.place
    if isinstance(outcome, InvalidWorkflow):
        return WorkflowFile(location, name, outcome.problems, hidden_by=hidden_by)
    return WorkflowFile(location, name, outcome.warnings, outcome, hidden_by=hidden_by)


def check_content(app: App, workspace: Path, content: bytes) -> "Compilation | InvalidWorkflow":
    """Compile the content of a file that does not exist yet as if it were in the project."""
    return app.catalogue.check_content(workspace, content)


def _matches_filter(entry: CatalogueEntry, tags: tuple[str, ...], query: str) -> bool:
    workflow = entry.workflow
    if tags and not set(tags) & set(workflow.tags):
        return False
    text = f"{workflow.id} {workflow.name} {workflow.description}".casefold()
    return all(word in text for word in query.casefold().split())
