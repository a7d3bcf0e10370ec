"""Look through the workflows that can be started, at one of them, or at any file."""

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
from interlock.core.workflow.compiled import PinnedWorkflow, decode_workflow
from interlock.core.workflow.problems import InvalidWorkflow, Problem
from interlock.store.log import WorkflowUsage
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
    """How many workflows carry each tag, before any filter."""


class WorkflowFile(msgspec.Struct, frozen=True):
    """A file as it can be looked at: valid or not, in use or hidden by another."""

    place: CatalogueLocation
    workflow: WorkflowId | None
    """Its id, where the file can be read so far."""
    problems: tuple[Problem, ...]
    """Warnings, or what keeps it from being a workflow."""
    compiled: "Compilation | None" = None
    hidden_by: CatalogueLocation | None = None
    """The file with the same id that counts instead."""
    shadows: tuple[CatalogueLocation, ...] = ()
    broken: tuple[CatalogueLocation, ...] = ()
    """Files that seem to be meant for this id and are not valid."""

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
    chosen = (entry for entry in entries if _matches_filter(entry, tags, query))
    return WorkflowListing(tuple(chosen), tuple(broken), dict(sorted(counts.items())))


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
    meant = [file for file in broken if id_or_handle in (file.workflow, file.place.path.stem)]
    for entry in entries:
        if entry.workflow.id == id_or_handle:
            return _valid_file(entry, tuple(file.place for file in meant))
    if meant:
        return _invalid_file(meant[-1])
    known = tuple(entry.workflow.id for entry in entries)
    return NoSuchWorkflow(WorkflowId(id_or_handle), known, tuple(broken))


def workflow_handle(place: CatalogueLocation) -> str:
    """Names a file in an address without saying where it lies; no id begins so."""
    named = place.origin.encode() + b"\0" + os.fsencode(place.path)
    return f"~{hashlib.sha256(named).hexdigest()[:16]}"


def usage_by_workflow(app: App) -> dict[str, WorkflowUsage]:
    """How much each workflow was used, whether its file is still there or not."""
    return {found.workflow: found for found in app.reader.usage()}


def pinned_workflow(app: App, workflow: str, workflow_hash: str) -> PinnedWorkflow | None:
    """What runs of `workflow` are pinned to under this hash, as it is stored.

    Raises:
        StoreFailure: nothing is stored under this hash, or something else than it says.
    """
    if not _HASH.fullmatch(workflow_hash):
        return None
    content = app.reader.blob(BlobRef(workflow_hash))
    try:
        compiled = decode_workflow(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # a prompt or an answer
    if compiled.id != workflow:
        return None
    return PinnedWorkflow(compiled, CanonicalBytes(content), WorkflowHash(workflow_hash))


def check_file(app: App, workspace: Path, path: Path) -> "Compilation | InvalidWorkflow":
    """A file wherever it lies, as it would be if it lay in the project.

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
    known = tuple(entry.workflow.id for entry in entries)
    return NoSuchWorkflow(WorkflowId(requested_handle), known, tuple(broken))


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
    app: App, workspace: Path | None, place: CatalogueLocation, hiding_entry: CatalogueEntry
) -> WorkflowFile:
    try:
        found = app.catalogue.check_file(workspace, place.path)
    except OSError as error:
        found = InvalidWorkflow((Problem("json", "", f"it cannot be read: {error.strerror}"),))
    name, hidden_by = hiding_entry.workflow.id, hiding_entry.place
    if isinstance(found, InvalidWorkflow):
        return WorkflowFile(place, name, found.problems, hidden_by=hidden_by)
    return WorkflowFile(place, name, found.warnings, found, hidden_by=hidden_by)


def check_content(app: App, workspace: Path, content: bytes) -> "Compilation | InvalidWorkflow":
    """The content of a file that is not there yet, as it would be if it lay in the project."""
    return app.catalogue.check_content(workspace, content)


def _matches_filter(entry: CatalogueEntry, tags: tuple[str, ...], query: str) -> bool:
    workflow = entry.workflow
    if tags and not set(tags) & set(workflow.tags):
        return False
    words = f"{workflow.id} {workflow.name} {workflow.description}".casefold()
    return all(word in words for word in query.casefold().split())
