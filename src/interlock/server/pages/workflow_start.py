"""Start a workflow: the words for an agent's chat, a run that waits for an agent, or unattended.

The console cannot type into a chat. So it gives the words to paste, and says so.
"""

from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from starlette.routing import Route

from interlock.app.callers.caller import Caller
from interlock.app.catalogue.workflow_files import WorkflowFile, find_workflow_file
from interlock.app.refusals import NoSuchWorkflow
from interlock.app.runs.resume import ResumableRun, ResumeQuery, find_resumable_runs
from interlock.app.runs.start import GOAL_CHARS_MAX, StartRequest, start
from interlock.app.sessions.known_workspaces import known_workspace, known_workspaces
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.orders import OrderedWork, OrderRequest, list_active, order_work
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.session.answer import RenderedAnswer
from interlock.core.unattended.order import Spent, limits_in_words
from interlock.core.workflow.compiled_workflow import CompiledInput
from interlock.server.console import Console, Page, PageRedirect, PageRequest
from interlock.server.formatting import pretty_json
from interlock.server.pages.session_work import PLACE, read_limits
from interlock.server.pages.work_view import limit_bars
from interlock.server.pages.workflow import header, missing_page
from interlock.server.pages.workflows import address, chosen_project

INPUT = "input."
"""Before the name of an input, where it is a field of the form."""
_REQUEST_BYTES = 12
TWICE_WITHIN_MS = 10_000


class FormError(NamedTuple):
    """An input that cannot be accepted."""

    error: str
    hint: str


def routes(console: Console) -> list[Route]:
    return [
        console.page("/workflows/{id}/start", form),
        console.action("/workflows/{id}/start", begin),
        console.page("/workflows/{id}/started", started_page),
        console.action("/workflows/{id}/unattended", order, loosens=True),
    ]


def form(request: PageRequest) -> Page | Explanation:
    return _page(request, None)


def begin(request: PageRequest) -> PageRedirect | Page | Explanation:
    if not request.word("project"):
        return _page(request, FormError("No project is chosen", "A run belongs to a directory."))
    project = known_workspace(request.app, request.word("project"))
    if isinstance(project, Explanation):
        return project
    file = find_workflow_file(request.app, project, request.params["id"])
    if isinstance(file, NoSuchWorkflow):
        return missing_page(request, file)
    if file.workflow is None or not file.can_start:
        return _page(request, None)
    context = _context(request, _inputs(file))
    if isinstance(context, FormError):
        return _page(request, context)
    answered = start(
        request.app,
        StartRequest(
            file.workflow,
            goal=request.word("goal"),
            caller=Caller(surface="rest", actor="user", workspace=project),
            context=context,
            request_id=f"console:{request.word('request')}" if request.word("request") else None,
        ),
    )
    if not isinstance(answered, RenderedAnswer):
        told = answered.explain()
        return _page(request, FormError(told.error, told.hint))
    session = answered.session
    return PageRedirect(
        f"/workflows/{file.workflow}/started?session={session}", message_key="started"
    )


def order(request: PageRequest) -> PageRedirect | Page | Explanation:
    """Have it done unattended. Fields: those of the start, `model`, `read_only` and the limits."""
    form_path = f"/workflows/{request.params['id']}/start"
    request = msgspec.structs.replace(request, path=form_path)
    project = known_workspace(request.app, request.word("project"))
    if isinstance(project, Explanation):
        return project
    file = find_workflow_file(request.app, project, request.params["id"])
    if isinstance(file, NoSuchWorkflow):
        return missing_page(request, file)
    context, limits = _context(request, _inputs(file)), read_limits(request)
    if file.workflow is None or not file.can_start:
        return _page(request, None)
    if isinstance(context, FormError):
        return _page(request, context)
    if isinstance(limits, Explanation):
        return _page(request, FormError(limits.error, limits.hint))
    goal, app = request.word("goal").strip(), request.app
    for session, state in list_active(app):  # a button that was pressed twice
        is_same = (state.order.goal, state.order.workflow) == (goal, file.workflow)
        if is_same and app.clock.now_ms() - state.requested_ms < TWICE_WITHIN_MS:
            return PageRedirect(f"/sessions/{session}", "work_ordered")
    wanted = OrderRequest(
        file.workflow,
        goal,
        project,
        model=request.word("model").strip(),
        is_read_only=bool(request.word("read_only")),
        limits=limits,
        context=context,
    )
    ordered = order_work(app, wanted, place=PLACE)
    if not isinstance(ordered, OrderedWork):
        told = ordered.explain()
        return _page(request, FormError(told.error, told.hint))
    return PageRedirect(f"/sessions/{ordered.session}", "work_ordered")


def started_page(request: PageRequest) -> Page | Explanation:
    """The run as it stands, and the words with which an agent takes it up."""
    app, workflow = request.app, request.params["id"]
    query = ResumeQuery(app.home, session=request.word("session") or "-")
    candidates = find_resumable_runs(app.reader, app.keyring, query)
    chosen = next((one for one in candidates if one.row.workflow == workflow), None)
    if chosen is None:
        error = f"No run of `{workflow}` was started in session `{request.word('session')}`"
        return Explanation("unknown_run", error, "The list of sessions shows what there is.")
    arguments: dict[str, Json] = {"continueToken": chosen.token, "intent": "rehydrate"}
    return Page(
        "workflow_started.html",
        f"Started: {chosen.row.title}",
        {
            "row": chosen.row,
            "token": chosen.token,
            "call": pretty_json(arguments),
            "paste": _resume_prompt(chosen, arguments),
        },
        live=chosen.row.session,
    )


def _page(request: PageRequest, wrong: FormError | None) -> Page | Explanation:
    project = chosen_project(request)
    if isinstance(project, Explanation):
        return project
    file = find_workflow_file(request.app, project, request.params["id"])
    if isinstance(file, NoSuchWorkflow):
        return missing_page(request, file)
    facts, settings = header(file, project), driver_settings(request.app.home)
    inputs = _inputs(file)
    context = _context(request, inputs)
    if isinstance(context, FormError):
        wrong, context = wrong or context, {}
    goal = request.word("goal").strip()
    arguments: dict[str, Json] = {"workflowId": str(file.workflow), "goal": goal}
    if project:
        arguments["workspacePath"] = str(project)
    if context:
        arguments["context"] = context
    return Page(
        "workflow_start.html",
        f"Start {facts['heading']}",
        {
            **facts,
            "asked": request,
            "detail_page": address(request.params["id"], project),
            "wrong": wrong,
            "goal": goal,
            "goal_max": GOAL_CHARS_MAX,
            "inputs": [(one, f"{INPUT}{one.name}") for one in inputs],
            "projects": _projects(request, file, project),
            "is_ready": bool(goal) and not wrong and not facts["why_not"],
            "call": pretty_json(arguments),
            "paste": _start_prompt(arguments),
            "settings": settings,
            "limits": limit_bars(settings.default_limits, Spent()),
            "limit_words": limits_in_words(settings.default_limits).values(),
            "unattended_page": f"/workflows/{request.params['id']}/unattended",
            "request": request.word("request") or request.app.entropy(_REQUEST_BYTES).hex(),
        },
        status=409 if request.form else 200,  # a form comes back only when it was not taken
    )


def _inputs(file: WorkflowFile) -> tuple[CompiledInput, ...]:
    return file.compiled.pinned.workflow.inputs if file.compiled else ()


def _projects(request: PageRequest, file: WorkflowFile, project: Path | None) -> tuple[str, ...]:
    """The projects in which it can be started. A workflow of a project belongs to that project."""
    if file.place.origin == "project" and project:
        return (str(project),)
    return known_workspaces(request.app)


def _context(
    request: PageRequest, inputs: tuple[CompiledInput, ...]
) -> dict[str, Json] | FormError:
    """The context of the run: the values typed for the inputs, and the rest from the JSON field."""
    written = request.word("context").strip()
    try:
        rest: Any = msgspec.json.decode(written) if written else {}
    except (msgspec.DecodeError, RecursionError) as error:
        return FormError(
            f"The context is not JSON: {error}", 'Write an object, like {"area": "api"}.'
        )
    if not isinstance(rest, dict):
        return FormError("The context is not an object", 'Write one, like {"area": "api"}.')
    typed = {one.name: request.word(f"{INPUT}{one.name}").strip() for one in inputs}
    given = {name: _value(text) for name, text in typed.items() if text}
    return {**cast("dict[str, Json]", rest), **given}


def _value(text: str) -> Json:
    """A number, a list and so on where it is written as one, otherwise text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _start_prompt(arguments: dict[str, Json]) -> str:
    return (
        f"Start the Interlock workflow `{arguments['workflowId']}`: call the tool `start_workflow`"
        " with exactly these arguments. Then do only the step that it shows, and submit it with"
        f" `continue_workflow`, step by step until it is complete.\n\n{pretty_json(arguments)}"
    )


def _resume_prompt(chosen: ResumableRun, arguments: dict[str, Json]) -> str:
    return (
        f"Take up the Interlock session `{chosen.row.session}` ({chosen.row.title}): call the tool"
        " `continue_workflow` with exactly these arguments. It shows the pending step. Do only"
        " that step, and submit it with `continue_workflow`, step by step until it is"
        f" complete.\n\n{pretty_json(arguments)}"
    )
