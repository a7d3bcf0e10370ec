"""Operations on workflows: list them, show one, check a source."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from interlock.app.catalogue.workflow_files import (
    CatalogueEntry,
    CatalogueLocation,
    check_content,
    find_workflow,
    list_workflows,
)
from interlock.app.context import App
from interlock.app.refusals import NoSuchWorkflow
from interlock.app.sessions.lookup import is_workspace
from interlock.core.explanation import Explanation
from interlock.core.ids import WorkflowHash, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.workflow import outline
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.outline import Preview
from interlock.core.workflow.problems import InvalidWorkflow, Problem
from interlock.server.api.operation import Body, NoParameters, Parameters, rest_operation
from interlock.server.api.runs import Workspace

Project = Annotated[
    Workspace | UnsetType,
    Meta(
        description="A directory in which a session was recorded: its workflows and settings"
        " count too. Left out: only what counts everywhere."
    ),
]


class WorkflowListParameters(Parameters, frozen=True):
    workspace: Project = UNSET
    q: Annotated[str, Meta(description="Words in the id, name and description.")] = ""
    tag: Annotated[str, Meta(description="Only workflows with this tag.")] = ""


class WorkflowParameters(Parameters, frozen=True):
    workflow: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)?$(?!\n)",
            max_length=64,
            description="The id of a workflow.",
        ),
    ]
    workspace: Project = UNSET


class WorkflowLocation(msgspec.Struct, frozen=True):
    origin: str
    """`bundled`, `user`, `project`, or `source NAME`."""
    path: str


class ListedWorkflow(msgspec.Struct, frozen=True, rename="camel"):
    id: WorkflowId
    name: str
    description: str
    version: str
    kind: Literal["workflow", "routine"]
    hash: WorkflowHash
    place: WorkflowLocation
    step_count: int
    tags: tuple[str, ...]
    warnings: tuple[Problem, ...]
    shadows: tuple[WorkflowLocation, ...]
    """Files with the same id that count less."""


class BrokenWorkflow(msgspec.Struct, frozen=True):
    place: WorkflowLocation
    problems: tuple[Problem, ...]


class Workflows(msgspec.Struct, frozen=True):
    workflows: tuple[ListedWorkflow, ...]
    broken: tuple[BrokenWorkflow, ...]
    tags: dict[str, int]
    """The number of workflows with each tag, before any filter."""


class WorkflowDetail(msgspec.Struct, frozen=True):
    workflow: ListedWorkflow
    steps: tuple[Preview, ...]
    """As an agent would see them on its first pass."""
    compiled: CompiledWorkflow


class SourceCheckRequest(Body, frozen=True):
    source: Annotated[str, Meta(description="A workflow file, as text.")]
    workspace: Project = UNSET


class WorkflowCheck(msgspec.Struct, frozen=True, rename="camel"):
    is_valid: bool
    hash: WorkflowHash | None
    """The hash that a run of it would be pinned to."""
    problems: tuple[Problem, ...]
    """Warnings too, which do not keep it from running."""


@rest_operation(
    "GET",
    "/workflows",
    "List the workflows and the invalid workflow files",
    codes=("settings_broken",),
)
def _list_workflows(app: App, at: WorkflowListParameters) -> Workflows | Explanation:
    workspace = _known_project(app, at.workspace)
    if isinstance(workspace, Explanation):
        return workspace
    tags = (at.tag,) if at.tag else ()
    listing = list_workflows(app, workspace, tags=tags, query=at.q)
    return Workflows(
        tuple(_listed_workflow(entry) for entry in listing.entries),
        tuple(
            BrokenWorkflow(_workflow_location(file.place), file.problems) for file in listing.broken
        ),
        listing.tags,
    )


@rest_operation(
    "GET",
    "/workflows/{workflow}",
    "Show a workflow step by step, and its compiled form",
    codes=("unknown_workflow", "settings_broken"),
)
def _show_workflow(
    app: App, at: WorkflowParameters
) -> WorkflowDetail | NoSuchWorkflow | Explanation:
    workspace = _known_project(app, at.workspace)
    if isinstance(workspace, Explanation):
        return workspace
    entry = find_workflow(app, workspace, WorkflowId(at.workflow))
    if isinstance(entry, NoSuchWorkflow):
        return entry
    compiled = entry.pinned.workflow
    steps = outline.preview(compiled, {"goal": "<the goal>"}, Preferences())
    return WorkflowDetail(_listed_workflow(entry), tuple(steps), compiled)


@rest_operation(
    "POST",
    "/validate",
    "Check the source of a workflow without storing it",
    codes=("settings_broken",),
    is_writing=False,
)
def _validate_workflow(
    app: App, _: NoParameters, body: SourceCheckRequest
) -> WorkflowCheck | Explanation:
    workspace = _known_project(app, body.workspace)
    if isinstance(workspace, Explanation):
        return workspace
    outcome = check_content(app, workspace, body.source.encode())
    if isinstance(outcome, InvalidWorkflow):
        return WorkflowCheck(is_valid=False, hash=None, problems=outcome.problems)
    return WorkflowCheck(is_valid=True, hash=outcome.pinned.hash, problems=outcome.warnings)


def _known_project(app: App, directory: str | UnsetType) -> Path | Explanation:
    """The directory of a request, if we know it. No request makes us read another one."""
    if directory is UNSET:
        return app.home  # which is no project
    if is_workspace(app, directory):
        return Path(directory)
    return Explanation(
        "invalid_arguments",
        f"`workspace`: no session was ever recorded in `{directory}`",
        "`GET /api/v2/sessions` shows where sessions were recorded. Leave it out for the workflows"
        " that can be started everywhere.",
    )


def _listed_workflow(entry: CatalogueEntry) -> ListedWorkflow:
    definition = entry.workflow
    return ListedWorkflow(
        id=definition.id,
        name=definition.name,
        description=definition.description,
        version=definition.version,
        kind=definition.kind,
        hash=entry.pinned.hash,
        place=_workflow_location(entry.place),
        step_count=entry.pinned.workflow.step_count,
        tags=definition.tags,
        warnings=entry.warnings,
        shadows=tuple(_workflow_location(hidden) for hidden in entry.shadows),
    )


def _workflow_location(location: CatalogueLocation) -> WorkflowLocation:
    return WorkflowLocation(location.origin, str(location.path))
