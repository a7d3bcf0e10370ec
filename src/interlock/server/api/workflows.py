"""Operations on workflows: which there are, what one asks for, whether a source is valid."""

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
from interlock.app.explanation import Explanation
from interlock.app.refusals import NoSuchWorkflow
from interlock.app.sessions.lookup import is_workspace
from interlock.core.ids import WorkflowHash, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.workflow import outline
from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.core.workflow.outline import Preview
from interlock.core.workflow.problems import InvalidWorkflow, Problem
from interlock.server.api.operation import Body, Nothing, Parameters, changing, reading
from interlock.server.api.runs import Workspace

Project = Annotated[
    Workspace | UnsetType,
    Meta(
        description="A directory in which a session was recorded: its workflows and settings"
        " count too. Left out: only what counts everywhere."
    ),
]


class WorkflowsAsked(Parameters, frozen=True):
    workspace: Project = UNSET
    q: Annotated[str, Meta(description="Words in the id, name and description.")] = ""
    tag: Annotated[str, Meta(description="Only workflows with this tag.")] = ""


class OneWorkflow(Parameters, frozen=True):
    workflow: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)?$(?!\n)",
            max_length=64,
            description="The id of a workflow.",
        ),
    ]
    workspace: Project = UNSET


class Placed(msgspec.Struct, frozen=True):
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
    place: Placed
    step_count: int
    tags: tuple[str, ...]
    warnings: tuple[Problem, ...]
    shadows: tuple[Placed, ...]
    """Files with the same id that count less."""


class BrokenWorkflow(msgspec.Struct, frozen=True):
    place: Placed
    problems: tuple[Problem, ...]


class Workflows(msgspec.Struct, frozen=True):
    workflows: tuple[ListedWorkflow, ...]
    broken: tuple[BrokenWorkflow, ...]
    tags: dict[str, int]
    """How many workflows carry each tag, before any filter."""


class WorkflowShown(msgspec.Struct, frozen=True):
    workflow: ListedWorkflow
    steps: tuple[Preview, ...]
    """As an agent would see them on its first pass."""
    compiled: CompiledWorkflow


class SourceSent(Body, frozen=True):
    source: Annotated[str, Meta(description="A workflow file, as text.")]
    workspace: Project = UNSET


class Checked(msgspec.Struct, frozen=True, rename="camel"):
    is_valid: bool
    hash: WorkflowHash | None
    """What a run of it would be pinned to."""
    problems: tuple[Problem, ...]
    """Warnings too, which do not keep it from running."""


def _listed(app: App, at: WorkflowsAsked) -> Workflows | Explanation:
    workspace = _project(app, at.workspace)
    if isinstance(workspace, Explanation):
        return workspace
    tags = (at.tag,) if at.tag else ()
    listing = list_workflows(app, workspace, tags=tags, query=at.q)
    return Workflows(
        tuple(_described(entry) for entry in listing.entries),
        tuple(BrokenWorkflow(_placed(file.place), file.problems) for file in listing.broken),
        listing.tags,
    )


def _shown(app: App, at: OneWorkflow) -> WorkflowShown | NoSuchWorkflow | Explanation:
    workspace = _project(app, at.workspace)
    if isinstance(workspace, Explanation):
        return workspace
    entry = find_workflow(app, workspace, WorkflowId(at.workflow))
    if isinstance(entry, NoSuchWorkflow):
        return entry
    compiled = entry.pinned.workflow
    steps = outline.preview(compiled, {"goal": "<the goal>"}, Preferences())
    return WorkflowShown(_described(entry), tuple(steps), compiled)


def _checked(app: App, _: Nothing, sent: SourceSent) -> Checked | Explanation:
    workspace = _project(app, sent.workspace)
    if isinstance(workspace, Explanation):
        return workspace
    found = check_content(app, workspace, sent.source.encode())
    if isinstance(found, InvalidWorkflow):
        return Checked(is_valid=False, hash=None, problems=found.problems)
    return Checked(is_valid=True, hash=found.pinned.hash, problems=found.warnings)


def _project(app: App, asked: str | UnsetType) -> Path | Explanation:
    """The directory that was asked for, if we know it. No request makes us read another one."""
    if asked is UNSET:
        return app.home  # which is no project
    if is_workspace(app, asked):
        return Path(asked)
    return Explanation(
        "invalid_arguments",
        f"`workspace`: no session was ever recorded in `{asked}`",
        "`GET /api/v2/sessions` shows where sessions were recorded. Leave it out for the workflows"
        " that can be started everywhere.",
    )


def _described(entry: CatalogueEntry) -> ListedWorkflow:
    found = entry.workflow
    return ListedWorkflow(
        id=found.id,
        name=found.name,
        description=found.description,
        version=found.version,
        kind=found.kind,
        hash=entry.pinned.hash,
        place=_placed(entry.place),
        step_count=entry.pinned.workflow.step_count,
        tags=found.tags,
        warnings=entry.warnings,
        shadows=tuple(_placed(hidden) for hidden in entry.shadows),
    )


def _placed(place: CatalogueLocation) -> Placed:
    return Placed(place.origin, str(place.path))


OPERATIONS = (
    reading(
        "/workflows",
        "listWorkflows",
        "List the workflows that can be started, and the files that are not valid",
        _listed,
        parameters=WorkflowsAsked,
        answer=Workflows,
        codes=("settings_broken",),
    ),
    reading(
        "/workflows/{workflow}",
        "showWorkflow",
        "Show what a workflow asks for, step by step, and what it compiles to",
        _shown,
        parameters=OneWorkflow,
        answer=WorkflowShown,
        codes=("unknown_workflow", "settings_broken"),
    ),
    changing(
        "/validate",
        "validateWorkflow",
        "Check the source of a workflow; nothing is stored",
        _checked,
        parameters=Nothing,
        body=SourceSent,
        answer=Checked,
        codes=("settings_broken",),
        is_writing=False,
    ),
)
