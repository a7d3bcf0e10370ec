"""The toolset `workflow`: find a workflow, start it, and go through it step by step."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.app import catalogue
from interlock.app.advance import Output, advance
from interlock.app.context import App
from interlock.app.explain import Explanation, explain
from interlock.app.refusals import NoSuchWorkflow, Refusal
from interlock.app.rehydrate import rehydrate
from interlock.app.start import start
from interlock.core.canonical import Json
from interlock.core.ids import StepId, WorkflowHash, WorkflowId
from interlock.core.session.answer import WRITE_YOUR_NOTES, Answer, Answered
from interlock.mcp.contract import Tool
from interlock.mcp.results import Call, ToolResult, refused

_Workspace = Annotated[
    str | None,
    Meta(
        description="Absolute path of the project directory. Default: where the server runs.",
        examples=["/home/me/project"],
    ),
]
_Token = Annotated[
    str,
    Meta(
        description="The continueToken of the newest answer, copied whole (48 characters).",
        examples=["<the continueToken of the newest answer>"],
    ),
]


class ListArguments(msgspec.Struct, frozen=True, rename="camel"):
    workspace_path: _Workspace = None
    tags: Annotated[
        tuple[str, ...] | None, Meta(description="Only workflows with one of these tags.")
    ] = None
    query: Annotated[str | None, Meta(description="Only workflows whose words contain this.")] = (
        None
    )


class ListedWorkflow(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: WorkflowId
    name: str
    description: str = ""
    version: str = ""
    hash: str = ""
    step_count: int = 0
    tags: tuple[str, ...] = ()


class BrokenFile(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    problems: tuple[str, ...]


class WorkflowList(msgspec.Struct, frozen=True, rename="camel"):
    workflows: tuple[ListedWorkflow, ...]
    tags: dict[str, int]
    broken: tuple[BrokenFile, ...] = ()


def _list(app: App, arguments: ListArguments) -> ToolResult:
    listing = catalogue.list_workflows(
        app,
        _workspace(arguments.workspace_path),
        tags=arguments.tags or (),
        query=arguments.query or "",
    )
    is_short = not (arguments.tags or arguments.query)
    answer = WorkflowList(
        tuple(_listed(entry, is_short=is_short) for entry in listing.entries),
        listing.tags,
        tuple(
            BrokenFile(str(file.path), tuple(str(problem) for problem in file.problems))
            for file in listing.broken
        ),
    )
    return ToolResult(answer, _list_text(answer, is_short=is_short))


def _listed(entry: catalogue.Entry, *, is_short: bool) -> ListedWorkflow:
    workflow = entry.workflow
    if is_short:
        return ListedWorkflow(workflow.id, workflow.name)
    return ListedWorkflow(
        workflow.id,
        workflow.name,
        workflow.description,
        workflow.version,
        entry.pinned.hash,
        len(workflow.steps),
        workflow.tags,
    )


def _list_text(answer: WorkflowList, *, is_short: bool) -> str:
    lines = [f"{len(answer.workflows)} workflows:"]
    for workflow in answer.workflows:
        lines.append(f"- {workflow.id}: {workflow.name}")
        if not is_short:
            lines.append(
                f"  {workflow.description}\n  version {workflow.version},"
                f" {workflow.step_count} steps, tags: {', '.join(workflow.tags) or '-'},"
                f" {workflow.hash}"
            )
    if answer.tags:
        lines.append("tags: " + ", ".join(f"{tag} ({n})" for tag, n in answer.tags.items()))
    for file in answer.broken:
        lines.append(f"not valid: {file.path}: {'; '.join(file.problems)}")
    if is_short:
        lines.append(
            "Pass `tags` or `query` for descriptions, or look at one with `inspect_workflow`."
        )
    return "\n".join(lines)


LIST = Tool(
    name="list_workflows",
    title="List workflows",
    purpose=(
        "Show the workflows that can be started here. Call it when the user asks for a structured"
        " way of working, or names a kind of task (review, bug, feature) without naming a workflow."
        " Without filters the answer is short; pass tags or query for descriptions."
    ),
    arguments=ListArguments,
    answer=WorkflowList,
    is_read_only=True,
    call=_list,
)


class InspectArguments(msgspec.Struct, frozen=True, rename="camel"):
    workflow_id: Annotated[str, Meta(description="Id from list_workflows.", examples=["hello"])]
    mode: Annotated[
        Literal["metadata", "preview", "source", "compiled"] | None,
        Meta(description="metadata: titles only. preview (default): what you would be asked."),
    ] = None
    workspace_path: _Workspace = None


class InspectedStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: StepId
    title: str
    prompt: str = ""


class Inspection(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: WorkflowId
    name: str
    description: str
    version: str
    hash: WorkflowHash
    origin: Literal["bundled", "user", "project"]
    tags: tuple[str, ...]
    steps: tuple[InspectedStep, ...]
    content: str = ""
    """The file as written, or what it compiles to, where that was asked for."""


def _inspect(app: App, arguments: InspectArguments) -> ToolResult:
    workspace = _workspace(arguments.workspace_path)
    entry = catalogue.find_workflow(app, workspace, WorkflowId(arguments.workflow_id))
    if isinstance(entry, NoSuchWorkflow):
        return refused(explain(entry), INSPECT.corrected({"workflowId": _closest(entry)}))
    mode = arguments.mode or "preview"
    workflow = entry.workflow
    content = {
        "source": lambda: entry.path.read_text(encoding="utf-8"),
        "compiled": entry.pinned.content.decode,
    }.get(mode, str)()
    answer = Inspection(
        workflow.id,
        workflow.name,
        workflow.description,
        workflow.version,
        entry.pinned.hash,
        entry.origin,
        workflow.tags,
        tuple(
            InspectedStep(step.id, step.title, step.prompt if mode == "preview" else "")
            for step in workflow.steps
        ),
        content,
    )
    return ToolResult(answer, _inspection_text(answer))


def _inspection_text(answer: Inspection) -> str:
    lines = [
        f"{answer.id} {answer.version}: {answer.name}",
        answer.description,
        f"origin: {answer.origin}, tags: {', '.join(answer.tags) or '-'}, {answer.hash}",
    ]
    for number, step in enumerate(answer.steps, start=1):
        lines.append(f"{number}. {step.title} [{step.id}]")
        if step.prompt:
            lines.append(f"   {step.prompt}")
    if answer.content:
        lines += ["", answer.content]
    return "\n".join(lines)


INSPECT = Tool(
    name="inspect_workflow",
    title="Inspect a workflow",
    purpose="Look at one workflow before starting it: what it is for and what its steps ask.",
    arguments=InspectArguments,
    answer=Inspection,
    is_read_only=True,
    call=_inspect,
)


class StartArguments(msgspec.Struct, frozen=True, rename="camel"):
    workflow_id: Annotated[str, Meta(description="Id from list_workflows.", examples=["hello"])]
    goal: Annotated[
        str,
        Meta(
            description="One sentence: what this work is for. The session is found by it later.",
            examples=["<what the user wants, in one sentence>"],
        ),
    ]
    workspace_path: _Workspace = None


def _start(app: App, arguments: StartArguments) -> ToolResult:
    outcome = start(
        app,
        WorkflowId(arguments.workflow_id),
        goal=arguments.goal,
        workspace=_workspace(arguments.workspace_path),
    )
    if isinstance(outcome, Answered):
        return _answered(outcome)
    given: dict[str, Json] = {"workflowId": arguments.workflow_id}
    if isinstance(outcome, NoSuchWorkflow):
        given["workflowId"] = _closest(outcome)
    if arguments.goal.strip():
        given["goal"] = arguments.goal
    return refused(explain(outcome), START.corrected(given))


START = Tool(
    name="start_workflow",
    title="Start a workflow",
    purpose=(
        "Start a workflow and get its first step. Do only the step you are shown, then hand it in"
        " with continue_workflow; the next step comes in the answer. Progress is recorded: a lost"
        " answer, a rewind or a restart loses nothing."
    ),
    arguments=StartArguments,
    answer=Answer,
    is_read_only=False,
    call=_start,
    aliases={"id": "workflowId", "workflow": "workflowId", "name": "workflowId"},
)


class ContinueArguments(msgspec.Struct, frozen=True, rename="camel"):
    continue_token: _Token
    output: Annotated[
        Output | None, Meta(description="What you hand in for the step. Present: advance.")
    ] = None
    intent: Annotated[
        Literal["advance", "rehydrate"] | None,
        Meta(
            description="Usually left out. rehydrate: show the pending step again, change nothing."
        ),
    ] = None


def _continue(app: App, arguments: ContinueArguments) -> ToolResult:
    token = _trimmed(arguments.continue_token)
    if arguments.intent == "rehydrate" and arguments.output is not None:
        conflict = Explanation(
            "invalid_arguments",
            "`intent` is rehydrate, which changes nothing, but `output` was sent too",
            "To hand the step in, leave `intent` out. To only look, leave `output` out.",
        )
        return refused(conflict, _hand_in(token))
    if arguments.intent == "advance" or arguments.output is not None:
        outcome = advance(app, token, arguments.output or Output())
    else:
        outcome = rehydrate(app.reader, app.keyring, app.entropy, token=token)
    if isinstance(outcome, Answered):
        return _answered(outcome)
    return refused(explain(outcome), _way_on(outcome, token))


CONTINUE = Tool(
    name="continue_workflow",
    title="Continue a workflow",
    purpose=(
        "Hand in the step you have just done and get the next one. Send the continueToken of the"
        " newest answer and your notes on the step in output.notesMarkdown. Without output, the"
        " pending step is shown again and nothing changes. Sending the same call twice is safe."
    ),
    arguments=ContinueArguments,
    answer=Answer,
    is_read_only=False,
    call=_continue,
    aliases={
        "token": "continueToken",
        "stateToken": "continueToken",
        "ackToken": "continueToken",
        "checkpointToken": "continueToken",
        "resumeToken": "continueToken",
        "notesMarkdown": "output.notesMarkdown",
        "notes": "output.notesMarkdown",
    },
)

TOOLS = (LIST, INSPECT, START, CONTINUE)


def _answered(answered: Answered) -> ToolResult:
    return ToolResult(answered.answer, answered.text)


def _workspace(path: str | None) -> Path:
    return Path(path).expanduser() if path else Path.cwd()


def _trimmed(token: str) -> str:
    """Agents like to put quotes or backticks around what they copy."""
    return token.strip().strip("`'\"<>").strip()


def _closest(refusal: NoSuchWorkflow) -> str:
    likely = (*explain(refusal).did_you_mean, *refusal.known)
    return likely[0] if likely else "hello"


def _hand_in(token: str) -> Call:
    return CONTINUE.corrected(
        {"continueToken": token, "output": {"notesMarkdown": WRITE_YOUR_NOTES}}
    )


def _way_on(refusal: Refusal, token: str) -> Call:
    match explain(refusal).code:
        case "notes_missing" | "notes_not_written" | "notes_too_long":
            return _hand_in(token)
        case "nothing_pending":
            return CONTINUE.corrected({"continueToken": token, "intent": "rehydrate"})
        case "token_mangled" | "token_forged":
            return CONTINUE.example()
        case _:
            return START.example()
