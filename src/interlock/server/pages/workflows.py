"""Workflows: the catalogue, and what a workflow may use without defining it."""

from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec
from starlette.routing import Route

from interlock.app.catalogue.sources import list_sources
from interlock.app.catalogue.workflow_files import (
    BrokenEntry,
    CatalogueEntry,
    CatalogueLocation,
    WorkflowUsage,
    is_routine,
    list_workflows,
    usage_by_workflow,
    workflow_handle,
)
from interlock.app.sessions.known_workspaces import known_workspace, known_workspaces
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.workflow import operators, packs
from interlock.core.workflow.builtins import FEATURES, PASSAGES
from interlock.core.workflow.file_schema import published_schema
from interlock.core.workflow.operators import Operator
from interlock.server.console import Console, Download, Page, PageRequest
from interlock.server.formatting import pretty_json

OWN_PAGES = ("builtins", "sources")
"""Below /workflows these are no ids. A workflow that is called so is reached by its handle."""


NO_PROJECT = "none"
"""In the address of the list: only what is there in every project."""


class WorkflowFileLink(msgspec.Struct, frozen=True):
    """A file by where it came from, and the page about it."""

    origin: str
    path: str
    address: str


class WorkflowRow(msgspec.Struct, frozen=True):
    entry: CatalogueEntry
    address: str
    is_routine: bool
    usage: WorkflowUsage | None
    used_page: str
    shadows: tuple[WorkflowFileLink, ...]


class BrokenWorkflowRow(msgspec.Struct, frozen=True):
    file: WorkflowFileLink
    name: str
    problem: str
    more: int


def routes(console: Console) -> list[Route]:
    return [
        console.page("/workflows", workflows),
        console.page("/workflows/builtins", builtins),
    ]


def workflows(request: PageRequest) -> Page | Explanation:
    projects = known_workspaces(request.app)
    project = _listed_project(request, projects)
    if isinstance(project, Explanation):
        return project
    tag, source, query = request.word("tag"), request.word("source"), request.word("q")
    listing = list_workflows(request.app, project, tags=(tag,) if tag else (), query=query)
    used = usage_by_workflow(request.app)
    chosen = [entry for entry in listing.entries if source in ("", entry.place.origin)]
    rows = [_row(entry, used.get(entry.workflow.id), project) for entry in chosen]
    broken = [file for file in listing.broken if _fits(file, tag=tag, source=source, query=query)]
    return Page(
        "workflows.html",
        "Workflows",
        {
            "asked": request,
            "rows": sorted(rows, key=lambda row: row.is_routine),
            "broken": [_broken_row(file, project) for file in broken],
            "tags": listing.tags,
            "sources": _origins(request, project),
            "projects": projects,
            "project": str(project) if project else "",
            "no_project": NO_PROJECT,
            "is_filtered": bool(tag or source or query),
        },
    )


def builtins(request: PageRequest) -> Page | Download:
    if request.word("download") == "schema":
        return Download("workflow.schema.json", published_schema())
    contracts = [pack for name in packs.names() if (pack := packs.pack(name))]
    return Page(
        "workflow_builtins.html",
        "Built-ins",
        {
            "contracts": [
                (pack, pretty_json(pack.example), pretty_json(pack.schema)) for pack in contracts
            ],
            "features": FEATURES,
            "passages": PASSAGES,
            "conditions": [_condition_example(operator) for operator in operators.OPERATORS],
        },
    )


def chosen_project(request: PageRequest) -> Path | Explanation | None:
    """The project whose workflows are shown. A URL cannot name just any directory."""
    project = request.word("project")
    return known_workspace(request.app, project) if project else None


def _listed_project(request: PageRequest, projects: tuple[str, ...]) -> Path | Explanation | None:
    """The one that was chosen, or else the one in which work was done last."""
    if request.word("project") == NO_PROJECT:
        return None
    if request.word("project") or not projects:
        return chosen_project(request)
    return Path(projects[0])


def address(workflow: str, project: Path | None, *, tab: str = "") -> str:
    """The page about a workflow, or about the file with this handle."""
    wanted = {"tab": tab, "project": str(project) if project else ""}
    query = urlencode({name: value for name, value in wanted.items() if value})
    return f"/workflows/{quote(workflow, safe='~/')}" + (f"?{query}" if query else "")


def workflow_file_link(place: CatalogueLocation, project: Path | None) -> WorkflowFileLink:
    return WorkflowFileLink(place.origin, str(place.path), address(workflow_handle(place), project))


_EXAMPLE_VALUES: dict[str, Json] = {
    "gt": 3,
    "gte": 3,
    "lt": 3,
    "lte": 3,
    "in": ["short", "full"],
    "exists": True,
    "matches": "^v[0-9]+$",
}


def _condition_example(operator: Operator) -> tuple[str, str]:
    """A condition as it is written, and in words."""
    value = _EXAMPLE_VALUES.get(operator, "full")
    written = msgspec.json.encode({"var": "depth", operator: value}).decode()
    return written, f"depth {operators.phrase(operator, value)}"


def _row(entry: CatalogueEntry, used: WorkflowUsage | None, project: Path | None) -> WorkflowRow:
    name = entry.workflow.id
    named = workflow_handle(entry.place) if name in OWN_PAGES else name
    return WorkflowRow(
        entry,
        address(named, project),
        is_routine(entry.workflow),
        used,
        address(named, project, tab="used"),
        tuple(workflow_file_link(place, project) for place in entry.shadows),
    )


def _broken_row(file: BrokenEntry, project: Path | None) -> BrokenWorkflowRow:
    first, *others = file.problems
    name = file.workflow or file.place.path.name
    return BrokenWorkflowRow(workflow_file_link(file.place, project), name, str(first), len(others))


def _fits(file: BrokenEntry, *, tag: str, source: str, query: str) -> bool:
    """Of a file that cannot be read, only its name and its place are known."""
    words = f"{file.workflow or ''} {file.place.path.name}".casefold()
    is_found = all(word in words for word in query.casefold().split())
    return is_found and not tag and source in ("", file.place.origin)


def _origins(request: PageRequest, project: Path | None) -> list[str]:
    added = [f"source {row.name}" for row in list_sources(request.app.home)]
    return ["bundled", "user", *added, *(["project"] if project else [])]
