"""One workflow: what it is for, its file, what it compiles to, what is wrong, who ran it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from starlette.routing import Route

from interlock.app.catalogue.workflow_files import (
    WorkflowFile,
    find_workflow,
    find_workflow_file,
    pinned_workflow,
    read_workflow_content,
)
from interlock.app.catalogue.workflow_files import usage_by_workflow as usage_of_all
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.refusals import NoSuchWorkflow
from interlock.app.sessions.known_workspaces import known_workspaces
from interlock.app.sessions.lookup import SessionFilter, session_page
from interlock.app.sessions.statuses import Observer
from interlock.core.explanation import Explanation
from interlock.core.ids import WorkflowHash, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.session.run_head import RunHead
from interlock.core.views.status import Status
from interlock.core.workflow import builtins, json_locations, outline, packs
from interlock.core.workflow.compiled_workflow import CompiledWorkflow, PinnedWorkflow
from interlock.core.workflow.compiler import Compilation
from interlock.core.workflow.definition import FILE_BYTES_MAX, Workflow
from interlock.core.workflow.outline import OutlinePiece
from interlock.core.workflow.problems import Problem
from interlock.server.console import Console, Download, Page, PageRequest
from interlock.server.formatting import pretty_json
from interlock.server.pages.workflows import address, chosen_project, workflow_file_link

LINES_MAX = 20_000
SHOWN_CHARS_MAX = 1_500_000
PROMPT_CHARS_MAX = 500_000  # of all steps together; the command line shows the rest
PER_PAGE = 50
SEARCHED_MAX = 20  # projects in which a workflow is looked for that is not here
TABS = {
    "readme": "Readme",
    "source": "Source",
    "compiled": "Compiled",
    "problems": "Problems",
    "preview": "Preview",
    "used": "Used by",
}
_BREAK = re.compile("\r\n|\n|\r")


class SourceLine(msgspec.Struct, frozen=True):
    text: str
    tone: str
    remarks: tuple[Problem, ...]


class WorkflowRunRow(msgspec.Struct, frozen=True):
    session: str
    workspace: str
    updated_ms: int
    run: RunHead
    status: Status


Facts: TypeAlias = dict[str, Any]


def routes(console: Console) -> list[Route]:
    return [
        console.page("/workflows/{id}", workflow),
        console.page("/workflows/{id}/pinned/{hash}", pinned_page),
    ]


def workflow(request: PageRequest) -> Page | Explanation | Download:
    project = chosen_project(request)
    if isinstance(project, Explanation):
        return project
    file = find_workflow_file(request.app, project, request.params["id"])
    if isinstance(file, NoSuchWorkflow):
        return missing_page(request, file)
    if request.word("download"):
        return _download(file, request.word("download"))
    tabs = _tabs(file)
    tab = request.word("tab") if request.word("tab") in tabs else next(iter(tabs))
    facts: Facts = {
        "asked": request,
        "tabs": [(name, TABS[name], request.without("after", tab=name)) for name in tabs],
        "tab": tab,
        "source_page": request.without("after", tab="source"),
        "problems_page": request.without("after", tab="problems"),
        **header(file, project),
        **_FACTS[tab](request, file),
    }
    is_live = tab == "used"
    return Page("workflow.html", facts["heading"], facts, live="" if is_live else None)


def header(file: WorkflowFile, project: Path | None) -> Facts:
    """The facts that every page about a workflow begins with."""
    definition = file.compiled.workflow if file.compiled else None
    errors = sum(problem.severity == "error" for problem in file.problems)
    why_not = _start_obstacle(file, errors)
    return {
        "found": file,
        "definition": definition,
        "compiled": file.compiled.pinned.workflow if file.compiled else None,
        "pinned": file.compiled.pinned if file.compiled else None,
        "heading": definition.name if definition else file.workflow or file.place.path.name,
        "project": str(project) if project else "",
        "state": _state(file),
        "errors": errors,
        "why_not": why_not,
        "start_page": "" if why_not else address(f"{file.workflow}/start", project),
        "hidden_by": workflow_file_link(file.hidden_by, project) if file.hidden_by else None,
        "shadows": [workflow_file_link(place, project) for place in file.shadows],
        "broken": [workflow_file_link(place, project) for place in file.broken],
    }


def missing_page(request: PageRequest, refusal: NoSuchWorkflow) -> Page:
    """There is no such workflow here: where it might be instead."""
    told, project = refusal.explain(), request.word("project")
    used = usage_of_all(request.app).get(refusal.workflow)
    here = Path(project) if project else None
    return Page(
        "workflow_missing.html",
        told.error,
        {
            "error": told.error,
            "project": project,
            "suggestions": [(name, address(name, here)) for name in told.did_you_mean],
            "elsewhere": [
                (place, address(refusal.workflow, Path(place)))
                for place in _projects_with(request, refusal.workflow)
            ],
            "used": used.sessions + used.archived if used else 0,
            "workflow": refusal.workflow,
            "count": len(refusal.available),
        },
        status=404,
    )


def pinned_page(request: PageRequest) -> Page | Explanation | Download:
    """A workflow that runs are pinned to, from the store: its file may differ by now or be gone."""
    name, wanted = request.params["id"], request.params["hash"]
    hint = f"/workflows/{name}?tab=used shows what its sessions are pinned to."
    try:
        pinned = pinned_workflow(request.app, name, wanted)
    except StoreFailure as failure:
        return Explanation("unknown_workflow", str(failure), failure.hint)
    if pinned is None:
        error = f"No run of `{name}` is pinned to `{wanted}`"
        return Explanation("unknown_workflow", error, hint)
    if request.word("download"):
        return Download(f"{wanted[7:19]}.compiled.json", pinned.content)
    facts: Facts = {
        "name": name,
        "pinned": pinned,
        "compiled": pinned.workflow,
        "pieces": outline.pieces(pinned.workflow),
        "lines_of": {},
        "download": request.without(download="compiled"),
        **_line_facts(_pretty(pinned), ()),
    }
    return Page("workflow_pinned.html", f"{pinned.workflow.name}, pinned", facts)


def _state(file: WorkflowFile) -> dict[str, str]:
    if file.compiled is None:
        return {"word": "not valid", "tone": "bad", "icon": "blocked"}
    if file.hidden_by:
        return {"word": "hidden", "tone": "soft", "icon": "ghost"}
    if file.problems:
        return {"word": "valid, with warnings", "tone": "warn", "icon": "gap"}
    return {"word": "valid", "tone": "good", "icon": "done"}


def _start_obstacle(file: WorkflowFile, errors: int) -> str:
    """The reason why it cannot be started; empty if it can."""
    if file.compiled is None:
        what = "one problem keeps" if errors == 1 else f"{errors} problems keep"
        return f"It cannot be started: {what} this file from being a workflow."
    if file.hidden_by:
        return "It cannot be started: another file with the same id counts instead."
    return ""


def _tabs(file: WorkflowFile) -> tuple[str, ...]:
    """Those that have something to show, the first of which is shown unasked."""
    if file.compiled:
        return tuple(TABS)
    return ("problems", "source", *(("used",) if file.workflow else ()))


def _download(file: WorkflowFile, what: str) -> Download | Explanation:
    """The exact bytes."""
    name = file.workflow or "workflow"
    if what == "compiled" and file.compiled:
        return Download(f"{name}.compiled.json", file.compiled.pinned.content)
    try:
        content = read_workflow_content(file.place.path)
    except OSError as error:
        return Explanation(
            "unknown_workflow",
            f"`{file.place.path}` cannot be read: {error.strerror}",
            "Look at the catalogue again: it may be gone.",
        )
    if len(content) > FILE_BYTES_MAX:
        return Explanation(
            "invalid_arguments",
            f"`{file.place.path}` is longer than a workflow may be",
            "Open it where it lies.",
        )
    return Download(f"{name}.json", content)


def _readme(_: PageRequest, file: WorkflowFile) -> Facts:
    definition, compiled = _both(file)
    features = [builtins.strip_owner_prefix(name, "features") for name in definition.feature_names]
    return {
        "pieces": outline.pieces(compiled),
        "lines_of": _lines_of(file, outline.pieces(compiled)),
        "features": [(name, builtins.FEATURES.get(name)) for name in features],
        "owed": [
            (step, step.contract, step.contract.name in packs.names())
            for step, _ in compiled.steps_with_loops()
            if step.contract
        ],
        "contracts": [
            (name, pretty_json(contract.example), pretty_json(contract.schema))
            for name, contract in definition.contracts.items()
        ],
        "context_schema": pretty_json(definition.context_schema)
        if definition.context_schema
        else "",
    }


def _source(request: PageRequest, file: WorkflowFile) -> Facts:
    download = request.without("tab", download="source")
    try:
        content = read_workflow_content(file.place.path)
    except OSError as error:
        return {"unreadable": error.strerror or str(error), "download": ""}
    text = content.decode(errors="replace")
    is_whole = len(content) <= FILE_BYTES_MAX
    return {
        "unreadable": "",
        "size": len(content),
        "is_text": content == text.encode(),
        "is_whole": is_whole,
        "download": download if is_whole else "",
        **_line_facts(text, file.problems),
    }


def _compiled_facts(request: PageRequest, file: WorkflowFile) -> Facts:
    assert file.compiled is not None, "it has this tab"
    pin = file.compiled.pinned
    try:
        is_stored = pinned_workflow(request.app, pin.workflow.id, pin.hash) is not None
    except StoreFailure:
        is_stored = False
    return {
        "is_stored": is_stored,
        "size": len(pin.content),
        "download": request.without("tab", download="compiled"),
        **_line_facts(_pretty(pin), ()),
    }


def _problems(_: PageRequest, file: WorkflowFile) -> Facts:
    return {"problems": file.problems}


def _preview(_: PageRequest, file: WorkflowFile) -> Facts:
    compiled = _both(file)[1]
    prompts: dict[str, str] = {}
    room, pieces = PROMPT_CHARS_MAX, outline.pieces(compiled)
    for step in outline.preview(compiled, {"goal": "<the goal>"}, Preferences()):
        room -= len(step.prompt)
        if room < 0:
            break
        prompts[step.step] = step.prompt
    return {
        "pieces": pieces,
        "lines_of": _lines_of(file, pieces),
        "prompts": prompts,
        "is_cut": len(prompts) < compiled.step_count,
        "mermaid": outline.mermaid(compiled),
    }


def _usage_facts(request: PageRequest, file: WorkflowFile) -> Facts:
    assert file.workflow is not None, "it has this tab"
    is_archived = request.word("status") == "archived"
    wanted = SessionFilter(workflow=file.workflow, is_archived=is_archived)
    page = session_page(request.app, wanted, after=request.word("after"), limit=PER_PAGE)
    observer = Observer(request.app)
    rows = [
        WorkflowRunRow(
            session=one.session,
            workspace=one.head.workspace,
            updated_ms=one.head.updated_ms,
            run=run,
            status=observer.run_status(one.session, one.head, run),
        )
        for one in page.sessions
        for run in reversed(request.app.reader.runs(one.session))
        if run.workflow_id == file.workflow
    ]
    usage = usage_of_all(request.app).get(file.workflow)
    return {
        "rows": rows,
        "usage": usage,
        "hash": file.compiled.pinned.hash if file.compiled else WorkflowHash(""),
        "is_archived": is_archived,
        "next": request.without(after=page.next) if page.next else "",
        "first": request.without("after") if request.word("after") else "",
    }


_FACTS: dict[str, Callable[[PageRequest, WorkflowFile], Facts]] = {
    "readme": _readme,
    "source": _source,
    "compiled": _compiled_facts,
    "problems": _problems,
    "preview": _preview,
    "used": _usage_facts,
}


def _both(file: WorkflowFile) -> tuple[Workflow, CompiledWorkflow]:
    assert isinstance(file.compiled, Compilation), "only what is valid has this tab"
    return file.compiled.workflow, file.compiled.pinned.workflow


def _pretty(pin: PinnedWorkflow) -> str:
    return msgspec.json.format(pin.content, indent=2).decode()


def _line_facts(text: str, problems: tuple[Problem, ...]) -> Facts:
    """A text line by line, as far as a page takes it, with what is wrong at each line."""
    at: dict[int, list[Problem]] = {}
    for problem in problems:
        at.setdefault(problem.line, []).append(problem)
    pieces = _BREAK.split(text[:SHOWN_CHARS_MAX])
    if len(pieces) > 1 and not pieces[-1]:
        pieces.pop()  # what ends with a line break has no empty line after it
    lines = [
        SourceLine(piece, _tone(at.get(number, [])), tuple(at.get(number, ())))
        for number, piece in enumerate(pieces[:LINES_MAX], start=1)
    ]
    return {"lines": lines, "is_cut": len(text) > SHOWN_CHARS_MAX or len(pieces) > LINES_MAX}


def _tone(problems: list[Problem]) -> str:
    if any(problem.severity == "error" for problem in problems):
        return "bad"
    return "warn" if problems else ""


def _lines_of(file: WorkflowFile, pieces: tuple[OutlinePiece, ...]) -> dict[str, int]:
    """The line of the file at which each step and loop stands, or what brought it."""
    try:
        text = (
            read_workflow_content(file.place.path).decode(errors="replace").removeprefix("\ufeff")
        )
    except OSError:
        return {}
    wanted = {piece.id: piece.pointer for piece in _all(pieces)}
    spots = json_locations.locate(text, set(wanted.values()))
    return {name: spots[pointer].line for name, pointer in wanted.items()}


def _all(pieces: tuple[OutlinePiece, ...]) -> Iterator[OutlinePiece]:
    for piece in pieces:
        yield piece
        yield from _all(piece.body)


def _projects_with(request: PageRequest, name: WorkflowId) -> Iterator[str]:
    """The projects that bring a workflow along which is not here."""
    for place in known_workspaces(request.app)[:SEARCHED_MAX]:
        try:
            outcome = find_workflow(request.app, Path(place), name)
        except SettingsBroken:
            continue  # that project's own page says so
        if not isinstance(outcome, NoSuchWorkflow):
            yield place
