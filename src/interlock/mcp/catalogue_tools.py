"""The tools that show the catalogue: `list_workflows` and `inspect_workflow`."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import Caller
from interlock.app.catalogue import workflow_files
from interlock.app.context import App
from interlock.app.refusals import NoSuchWorkflow
from interlock.core.canonical import Json
from interlock.core.counting import pluralise
from interlock.core.explanation import Explanation
from interlock.core.ids import StepId, WorkflowHash, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.workflow import outline
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.mcp.arguments import Workspace
from interlock.mcp.results import ToolResult, refusal_result
from interlock.mcp.session_tool import given_arguments
from interlock.mcp.tool import Tool


class ListArguments(msgspec.Struct, frozen=True, rename="camel"):
    workspace_path: Workspace = None
    tags: Annotated[
        tuple[str, ...] | None, Meta(description="Only those with one of these tags.")
    ] = None
    query: Annotated[str | None, Meta(description="Only those whose text contains this.")] = None


class WorkflowListItem(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: WorkflowId
    name: str
    description: str = ""
    version: str = ""
    hash: str = ""
    step_count: int = 0
    tags: tuple[str, ...] = ()
    kind: str = "workflow"
    """`routine`: made to be called by workflows; it can be started too."""
    required_context: tuple[str, ...] = ()


class BrokenFile(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    problems: tuple[str, ...]


class WorkflowList(msgspec.Struct, frozen=True, rename="camel"):
    workflows: tuple[WorkflowListItem, ...]
    tags: dict[str, int]
    broken: tuple[BrokenFile, ...] = ()
    remark: str = ""


def _list_workflows(app: App, caller: Caller, arguments: ListArguments) -> ToolResult:
    listing = workflow_files.list_workflows(
        app,
        caller.workspace,
        tags=arguments.tags or (),
        query=arguments.query or "",
    )
    is_short, remark = not (arguments.tags or arguments.query), ""
    if not (is_short or listing.entries):
        # A task described in other words than ours would look like one without a workflow.
        listing = workflow_files.list_workflows(app, caller.workspace)
        is_short, remark = True, "No workflow matches; all are shown. Choose by name."
    answer = WorkflowList(
        tuple(_workflow_list_item(entry, is_short=is_short) for entry in listing.entries),
        listing.tags,
        tuple(
            BrokenFile(str(file.place.path), tuple(str(problem) for problem in file.problems))
            for file in listing.broken
        ),
        remark,
    )
    return ToolResult(answer, _workflow_list_text(answer, is_short=is_short))


def _workflow_list_item(
    entry: workflow_files.CatalogueEntry, *, is_short: bool
) -> WorkflowListItem:
    workflow, compiled = entry.workflow, entry.pinned.workflow
    needed = compiled.required_inputs()
    item = WorkflowListItem(workflow.id, workflow.name, kind=workflow.kind, required_context=needed)
    return (
        item
        if is_short
        else msgspec.structs.replace(
            item,
            description=workflow.description,
            version=workflow.version,
            hash=entry.pinned.hash,
            step_count=compiled.step_count,
            tags=workflow.tags,
        )
    )


def _workflow_list_text(answer: WorkflowList, *, is_short: bool) -> str:
    routines = sum(one.kind == "routine" for one in answer.workflows)
    lines = [f"{pluralise(len(answer.workflows) - routines, 'workflow')}:"]
    if routines:
        lines = [f"{lines[0][:-1]} and {pluralise(routines, 'routine')}:"]
    if answer.remark:
        lines.insert(0, answer.remark)
    for workflow in answer.workflows:
        marks = [] if workflow.kind == "workflow" else [workflow.kind]
        if workflow.required_context:
            marks.append(f"start needs context: {', '.join(workflow.required_context)}")
        mark = f" ({', '.join(marks)})" if marks else ""
        lines.append(f"- {workflow.id}: {workflow.name}{mark}")
        if not is_short:
            tags = ", ".join(workflow.tags) or "-"
            lines.append(
                f"  {workflow.description}\n  version {workflow.version},"
                f" {pluralise(workflow.step_count, 'step')}, tags: {tags}, {workflow.hash}"
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


LIST_WORKFLOWS = Tool(
    name="list_workflows",
    purpose=(
        "List the workflows you can start here. Use it when the user names a kind of task"
        " (feature, bug, review) but no workflow. Pass query or tags to get descriptions."
    ),
    arguments=ListArguments,
    cue="{query?, tags?}: find one for a kind of task (feature, bug, review)",
    is_read_only=True,
    is_idempotent=True,
    call=_list_workflows,
)


class InspectArguments(msgspec.Struct, frozen=True, rename="camel"):
    workflow_id: Annotated[
        str,
        Meta(
            description="Id from list_workflows.",
            examples=["<id from list_workflows, like “hello”>"],
        ),
    ]
    mode: Annotated[
        Literal["metadata", "preview", "source", "compiled"] | None,
        Meta(description="Default: preview (the prompts). metadata: titles only."),
    ] = None
    step: Annotated[str | None, Meta(description="Only this step.")] = None
    workspace_path: Workspace = None


class InspectedStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: StepId
    number: int
    title: str
    notes: tuple[str, ...] = ()
    """When it is shown, and what happens with it."""
    prompt: str = ""


class Inspection(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: WorkflowId
    name: str
    description: str
    version: str
    hash: WorkflowHash
    origin: str
    tags: tuple[str, ...]
    steps: tuple[InspectedStep, ...]
    content: str = ""
    """The file as written, or what it compiles to, where that was asked for."""


def _inspect_workflow(app: App, caller: Caller, arguments: InspectArguments) -> ToolResult:
    entry = workflow_files.find_workflow(app, caller.workspace, WorkflowId(arguments.workflow_id))
    if isinstance(entry, NoSuchWorkflow):
        return refuse_unknown_workflow(entry, INSPECT_WORKFLOW, given_arguments(arguments))
    mode = arguments.mode or "preview"
    workflow = entry.workflow
    content = {
        "source": lambda: entry.place.path.read_text(encoding="utf-8"),
        "compiled": entry.pinned.content.decode,
    }.get(mode, str)()
    steps = tuple(_inspected_steps(entry.pinned.workflow, with_prompts=mode == "preview"))
    if arguments.step is not None:
        known = tuple(step.id for step in steps)
        steps = tuple(step for step in steps if step.id == arguments.step)
        if not steps:
            return refusal_result(
                Explanation(
                    "unknown_step",
                    f"Workflow `{workflow.id}` has no step `{arguments.step}`",
                    "Ask for one of its steps, or leave `step` out.",
                ),
                INSPECT_WORKFLOW.corrected_call({"workflowId": workflow.id, "mode": "metadata"}),
                allowed=known,
            )
        if content and (part := _part_of(msgspec.json.decode(content), arguments.step)):
            content = msgspec.json.format(msgspec.json.encode(part)).decode()
    answer = Inspection(
        workflow.id,
        workflow.name,
        workflow.description,
        workflow.version,
        entry.pinned.hash,
        entry.place.origin,
        workflow.tags,
        steps,
        content,
    )
    return ToolResult(answer, _inspection_text(answer))


def _inspected_steps(workflow: CompiledWorkflow, *, with_prompts: bool) -> Iterator[InspectedStep]:
    context = {"goal": "<the goal>"}
    for number, step in enumerate(outline.preview(workflow, context, Preferences()), start=1):
        prompt = step.prompt if with_prompts else ""
        yield InspectedStep(StepId(step.step), number, step.title, step.notes, prompt)


def _part_of(part: Json, step: str) -> Json:
    """Return the step of this id in a workflow file; None if there is none."""
    if isinstance(part, dict) and part.get("id") == step:
        return part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return next(filter(None, (_part_of(each, step) for each in inner)), None)


def _inspection_text(answer: Inspection) -> str:
    lines = [
        f"{answer.id} {answer.version}: {answer.name}",
        answer.description,
        f"origin: {answer.origin}, tags: {', '.join(answer.tags) or '-'}, {answer.hash}",
    ]
    for step in answer.steps:
        lines.append(f"{step.number}. {step.title} [{step.id}]")
        lines += [f"   ({note})" for note in step.notes]
        if step.prompt:
            lines.append(f"   {step.prompt}")
    if answer.content:
        lines += ["", answer.content]
    return "\n".join(lines)


INSPECT_WORKFLOW = Tool(
    name="inspect_workflow",
    purpose=("Show what a workflow is for and what each step asks, before you start it."),
    arguments=InspectArguments,
    cue="{workflowId}: show its steps",
    is_read_only=True,
    is_idempotent=True,
    call=_inspect_workflow,
)


def refuse_unknown_workflow(
    refusal: NoSuchWorkflow, tool: Tool[Any], sent_arguments: dict[str, Json]
) -> ToolResult:
    """Suggest the same call for the workflow that was probably meant, else the list of them."""
    explanation = refusal.explain()
    call = LIST_WORKFLOWS.corrected_call(
        {name: path for name, path in sent_arguments.items() if name == "workspacePath"}
    )
    if likely := explanation.did_you_mean:
        call = tool.corrected_call({**sent_arguments, "workflowId": likely[0]})
    return refusal_result(explanation, call)
