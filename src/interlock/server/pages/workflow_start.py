"""Start a workflow: the words for an agent's chat, or a run that waits for an agent.

The console cannot type into a chat. So it gives the words to paste, and says so.
"""

from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from starlette.routing import Route

from interlock.app.catalogue.workflow_files import WorkflowFile, find_workflow_file
from interlock.app.explain import explain
from interlock.app.explanation import Explanation
from interlock.app.refusals import NoSuchWorkflow
from interlock.app.runs.resume import ResumableRun, find_resumable_runs
from interlock.app.runs.resume import ResumeQuery as Sought
from interlock.app.runs.start import GOAL_CHARS_MAX, StartRequest, start
from interlock.app.sessions.known_workspaces import known_workspace, known_workspaces
from interlock.core.canonical import Json
from interlock.core.session.answer import RenderedAnswer
from interlock.core.workflow.compiled import CompiledInput
from interlock.server.console import Console, Page, PageRedirect, PageRequest
from interlock.server.formatting import pretty_json
from interlock.server.pages.workflow import header, missing_page
from interlock.server.pages.workflows import address, chosen_project

INPUT = "input."
"""Before the name of an input, where it is a field of the form."""
_REQUEST_BYTES = 12


class FormError(NamedTuple):
    """What was typed cannot be taken."""

    error: str
    hint: str


def routes(console: Console) -> list[Route]:
    return [
        console.page("/workflows/{id}/start", form),
        console.action("/workflows/{id}/start", begin),
        console.page("/workflows/{id}/started", started_page),
    ]


def form(asked: PageRequest) -> Page | Explanation:
    return _page(asked, None)


def begin(asked: PageRequest) -> PageRedirect | Page | Explanation:
    if not asked.word("project"):
        return _page(asked, FormError("No project is chosen", "A run belongs to a directory."))
    project = known_workspace(asked.app, asked.word("project"))
    if isinstance(project, Explanation):
        return project
    found = find_workflow_file(asked.app, project, asked.params["id"])
    if isinstance(found, NoSuchWorkflow):
        return missing_page(asked, found)
    if found.workflow is None or not found.can_start:
        return _page(asked, None)
    context = _context(asked, _inputs(found))
    if isinstance(context, FormError):
        return _page(asked, context)
    # The session that the server itself may have been started in is not what is meant here.
    app = msgspec.structs.replace(asked.app, environment={})
    answered = start(
        app,
        StartRequest(
            found.workflow,
            goal=asked.word("goal"),
            workspace=project,
            context=context,
            request_id=f"console:{asked.word('request')}" if asked.word("request") else None,
        ),
    )
    if not isinstance(answered, RenderedAnswer):
        told = explain(answered)
        return _page(asked, FormError(told.error, told.hint))
    session = answered.answer.session
    return PageRedirect(
        f"/workflows/{found.workflow}/started?session={session}", message_key="started"
    )


def started_page(asked: PageRequest) -> Page | Explanation:
    """The run as it stands, and the words with which an agent takes it up."""
    app, workflow = asked.app, asked.params["id"]
    sought = Sought(app.home, session=asked.word("session") or "-")
    candidates = find_resumable_runs(app.reader, app.keyring, app.entropy, sought)
    chosen = next((one for one in candidates if one.row.workflow == workflow), None)
    if chosen is None:
        error = f"No run of `{workflow}` was started in session `{asked.word('session')}`"
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


def _page(asked: PageRequest, wrong: FormError | None) -> Page | Explanation:
    project = chosen_project(asked)
    if isinstance(project, Explanation):
        return project
    found = find_workflow_file(asked.app, project, asked.params["id"])
    if isinstance(found, NoSuchWorkflow):
        return missing_page(asked, found)
    facts = header(found, project)
    inputs = _inputs(found)
    context = _context(asked, inputs)
    if isinstance(context, FormError):
        wrong, context = wrong or context, {}
    goal = asked.word("goal").strip()
    arguments: dict[str, Json] = {"workflowId": str(found.workflow), "goal": goal}
    if project:
        arguments["workspacePath"] = str(project)
    if context:
        arguments["context"] = context
    return Page(
        "workflow_start.html",
        f"Start {facts['heading']}",
        {
            **facts,
            "asked": asked,
            "detail_page": address(asked.params["id"], project),
            "wrong": wrong,
            "goal": goal,
            "goal_max": GOAL_CHARS_MAX,
            "inputs": [(one, f"{INPUT}{one.name}") for one in inputs],
            "projects": _projects(asked, found, project),
            "is_ready": bool(goal) and not wrong and not facts["why_not"],
            "call": pretty_json(arguments),
            "paste": _start_prompt(arguments),
            "request": asked.word("request") or asked.app.entropy(_REQUEST_BYTES).hex(),
        },
        status=409 if asked.form else 200,  # a form comes back only when it was not taken
    )


def _inputs(found: WorkflowFile) -> tuple[CompiledInput, ...]:
    return found.compiled.pinned.workflow.inputs if found.compiled else ()


def _projects(asked: PageRequest, found: WorkflowFile, project: Path | None) -> tuple[str, ...]:
    """Where it can be started. What a project brings along is that project's."""
    if found.place.origin == "project" and project:
        return (str(project),)
    return known_workspaces(asked.app)


def _context(asked: PageRequest, inputs: tuple[CompiledInput, ...]) -> dict[str, Json] | FormError:
    """What was typed for the inputs, and the rest as it was written."""
    written = asked.word("context").strip()
    try:
        rest: Any = msgspec.json.decode(written) if written else {}
    except (msgspec.DecodeError, RecursionError) as error:
        return FormError(
            f"The context is not JSON: {error}", 'Write an object, like {"area": "api"}.'
        )
    if not isinstance(rest, dict):
        return FormError("The context is not an object", 'Write one, like {"area": "api"}.')
    typed = {one.name: asked.word(f"{INPUT}{one.name}").strip() for one in inputs}
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
        " with exactly these arguments. Then do only the step that it shows, and hand it in with"
        f" `continue_workflow`, step by step until it is complete.\n\n{pretty_json(arguments)}"
    )


def _resume_prompt(chosen: ResumableRun, arguments: dict[str, Json]) -> str:
    return (
        f"Take up the Interlock session `{chosen.row.session}` ({chosen.row.title}): call the tool"
        " `continue_workflow` with exactly these arguments. It shows the pending step. Do only"
        " that step, and hand it in with `continue_workflow`, step by step until it is"
        f" complete.\n\n{pretty_json(arguments)}"
    )
