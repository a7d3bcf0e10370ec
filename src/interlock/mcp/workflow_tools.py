"""The tools that go through a workflow: start it, submit its steps, set a checkpoint."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import NO_SESSION, Caller
from interlock.app.context import App
from interlock.app.protocol.gated_sessions import go_on_working
from interlock.app.refusals import (
    NoSuchDirectory,
    NoSuchSession,
    NoSuchWorkflow,
    RequestReused,
    SeveralSessions,
)
from interlock.app.runs.advance import advance
from interlock.app.runs.checkpoint import begin_with_checkpoint, checkpoint
from interlock.app.runs.past_outputs import read_notes
from interlock.app.runs.rehydrate import show_pending_step
from interlock.app.runs.start import GOAL_CHARS_MAX, StartRequest, corrected_context, start
from interlock.app.runs.start_preflight import ConflictFound, StartScope
from interlock.app.runs.submission import Output, Submission, parse_submission
from interlock.core.canonical import Json
from interlock.core.coordination.refusals import (
    AlreadyOver,
    IdentityLost,
    SnapshotFailed,
    StillThere,
    UnknownIdentity,
)
from interlock.core.explanation import Explanation
from interlock.core.ids import WorkflowId
from interlock.core.preferences import Wish
from interlock.core.refusal import Refusal
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.refusals import (
    ContextUnset,
    InputRefused,
    RunCannotBegin,
    SessionUnattended,
)
from interlock.core.tokens import BadToken
from interlock.core.workflow.examples import NOTES_BLANK
from interlock.mcp.arguments import TOKEN_ALIASES, WORKSPACE_PLACEHOLDER, Workspace, token_in
from interlock.mcp.catalogue_tools import refuse_unknown_workflow
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.resume_tool import RESUME_SESSION
from interlock.mcp.session_tool import given_arguments
from interlock.mcp.tool import Tool
from interlock.mcp.unknown_caller import refuse_unknown_caller

_Context = Annotated[
    dict[str, Json] | None,
    Meta(description="Values for later steps, merged by key; null removes a key."),
]
_Token = Annotated[
    str,
    Meta(
        description="From the newest answer, copied whole.",
        examples=["<the continueToken of the newest answer>"],
    ),
]
_RequestId = Annotated[
    str | None,
    Meta(description="Any name; a repeated name is not carried out again."),
]
_SessionId = Annotated[
    str | None,
    Meta(description="Default: yours, else a new one."),
]
_Artifacts = Annotated[tuple[Json, ...] | None, Meta(description="Objects with a `kind`.")]


class StartArguments(msgspec.Struct, frozen=True, rename="camel"):
    workflow_id: Annotated[
        str,
        Meta(
            description="Id from list_workflows.",
            examples=["<id from list_workflows, like “hello”>"],
        ),
    ]
    goal: Annotated[
        str,
        Meta(
            description="The purpose of the work, in one sentence. resume_session finds it.",
            examples=["<what the user wants, in one sentence>"],
        ),
    ]
    workspace_path: Workspace = None
    session_id: _SessionId = None
    context: _Context = None
    preferences: Annotated[Wish | None, Meta(description="Only stricter than the user's.")] = None
    request_id: _RequestId = None
    track: Annotated[str | None, Meta(description="Line of work. Default: the feature.")] = None
    on_conflict: Annotated[
        Literal["warn", "refuse"] | None, Meta(description="If others work on the track.")
    ] = None
    takeover: Annotated[str | None, Meta(description="The stale agent to take over.")] = None


def _start_workflow(app: App, caller: Caller, arguments: StartArguments) -> ToolResult:
    request = StartRequest(
        WorkflowId(arguments.workflow_id),
        goal=arguments.goal,
        caller=caller,
        context=arguments.context or {},
        preferences=arguments.preferences or Wish(),
        request_id=arguments.request_id,
        scope=StartScope(
            arguments.track, arguments.on_conflict or "warn", arguments.takeover or ""
        ),
    )
    outcome = start(app, request)
    if isinstance(outcome, RenderedAnswer):
        caller.connection.remember_work(outcome.session)
        return _answer_result(app, caller, outcome)
    sent_arguments = given_arguments(arguments)
    match outcome:
        case RunCannotBegin(var=""):
            return refusal_result(outcome.explain(), None)
        case NoSuchWorkflow():
            return refuse_unknown_workflow(outcome, START_WORKFLOW, sent_arguments)
        case SessionUnattended():
            sent_arguments.pop("sessionId", None)
        case NoSuchSession() if outcome == NO_SESSION:  # a takeover needs one, which a start makes
            sent_arguments.pop("takeover", None)
        case NoSuchSession() | SeveralSessions() | BadToken():
            return refuse_unknown_caller(
                *(app, caller, outcome, START_WORKFLOW, sent_arguments), begins_session=True
            )
        case NoSuchDirectory():  # the server's own is gone
            sent_arguments["workspacePath"] = WORKSPACE_PLACEHOLDER
        case ConflictFound():
            sent_arguments.pop("onConflict", None)
        case UnknownIdentity() | StillThere() | AlreadyOver() | SnapshotFailed() | IdentityLost():
            sent_arguments.pop("takeover", None)
        case RequestReused():
            sent_arguments.pop("requestId", None)
        case InputRefused() | ContextUnset() | RunCannotBegin():
            if isinstance(outcome, InputRefused) and outcome.pointer == "/goal":
                sent_arguments["goal"] = arguments.goal[:GOAL_CHARS_MAX]
            else:
                sent_arguments["context"] = corrected_context(app, request, outcome)
        case _:
            pass
    return refusal_result(outcome.explain(), START_WORKFLOW.corrected_call(sent_arguments))


START_WORKFLOW = Tool(
    name="start_workflow",
    purpose=(
        "Start a workflow and get its first step. Do only that step, then submit it with"
        " continue_workflow, which returns the next step. To continue or resume a workflow that"
        " was started before, use resume_session."
    ),
    arguments=StartArguments,
    cue="{workflowId, goal}: get its first step",
    call=_start_workflow,
    aliases={
        "id": "workflowId",
        "workflow": "workflowId",
        "name": "workflowId",
        "task": "goal",
        "description": "goal",
        "contextVariables": "context",
        "workspace": "workspacePath",
        "cwd": "workspacePath",
    },
)


class ContinueArguments(msgspec.Struct, frozen=True, rename="camel"):
    continue_token: _Token
    output: Annotated[Output | None, Meta(description="Your result of the step.")] = None
    context: _Context = None
    intent: Annotated[
        Literal["advance", "rehydrate"] | None,
        Meta(description="Default: advance with output, else rehydrate (only show)."),
    ] = None
    step: Annotated[
        str | None,
        Meta(description="Read the notes of this step, or of `all`."),
    ] = None


def _continue_workflow(app: App, caller: Caller, arguments: ContinueArguments) -> ToolResult:
    token = token_in(arguments.continue_token)
    is_reading = arguments.intent == "rehydrate" or arguments.step is not None
    if is_reading and arguments.output is not None:
        conflict = Explanation(
            "invalid_arguments",
            "The call reads (`intent` rehydrate, or `step`), but `output` was sent too",
            "To submit the step, leave `intent` and `step` out. To only look, leave `output` out.",
        )
        return refusal_result(conflict, _next_call(app, token))
    if arguments.step is not None:
        outcome = read_notes(app.reader, app.keyring, token=token, step=arguments.step)
    elif arguments.intent == "advance" or arguments.output is not None:
        submission = parse_submission(arguments.output, arguments.context)
        outcome = (
            advance(app, token, submission) if isinstance(submission, Submission) else submission
        )
    else:
        outcome = show_pending_step(app, token)
    if isinstance(outcome, RenderedAnswer):
        return _answer_result(app, caller, outcome, is_submitting=arguments.output is not None)
    return refusal_result(outcome.explain(), _suggest_call(app, outcome, token))


CONTINUE_WORKFLOW = Tool(
    name="continue_workflow",
    purpose=(
        "Continue a workflow: submit the step you have done and get the next step. Write in"
        " output.notesMarkdown what you did, found and decided, and what is open: your notes are"
        " all that is left of the step if this conversation is lost. Without output, the current"
        " step is shown again. Repeating a call is safe. To resume without a continueToken, use"
        " resume_session; to start, start_workflow."
    ),
    arguments=ContinueArguments,
    cue="{continueToken, output: {notesMarkdown}}: submit a step; without output: show it",
    is_idempotent=True,
    call=_continue_workflow,
    aliases={
        **TOKEN_ALIASES,
        "notesMarkdown": "output.notesMarkdown",
        "notes": "output.notesMarkdown",
        "artifacts": "output.artifacts",
        "contextVariables": "context",
    },
)


class CheckpointArguments(msgspec.Struct, frozen=True, rename="camel"):
    notes_markdown: Annotated[
        str | None, Meta(description="What you did, found and decided so far.")
    ] = None
    continue_token: Annotated[str | None, Meta(description="Of the run.")] = None
    artifacts: _Artifacts = None
    workspace_path: Workspace = None
    session_id: _SessionId = None
    request_id: _RequestId = None


def _checkpoint_workflow(app: App, caller: Caller, arguments: CheckpointArguments) -> ToolResult:
    submission = parse_submission(Output(arguments.notes_markdown, arguments.artifacts), None)
    if isinstance(submission, InputRefused):
        return refusal_result(submission.explain(), _checkpoint_call(None))
    token = token_in(arguments.continue_token) if arguments.continue_token else None
    if token:
        outcome = checkpoint(app, token, submission)
    else:
        outcome = begin_with_checkpoint(app, caller, submission, request_id=arguments.request_id)
    if isinstance(outcome, RenderedAnswer):
        return _answer_result(app, caller, outcome)
    if isinstance(outcome, NoSuchSession):
        sent: dict[str, Json] = {"notesMarkdown": arguments.notes_markdown}
        return refuse_unknown_caller(app, caller, outcome, CHECKPOINT_WORKFLOW, sent)
    return refusal_result(
        outcome.explain(), _checkpoint_call(token if _is_token_usable(outcome) else None)
    )


CHECKPOINT_WORKFLOW = Tool(
    name="checkpoint_workflow",
    purpose=(
        "Save notes without submitting the step, before something risky or after a long search."
        " Without a continueToken, they are saved in a session without a workflow."
    ),
    arguments=CheckpointArguments,
    cue="{notesMarkdown?}: save notes",
    call=_checkpoint_workflow,
    aliases={**TOKEN_ALIASES, "notes": "notesMarkdown", "summary": "notesMarkdown"},
)


def _answer_result(
    app: App, caller: Caller, rendered: RenderedAnswer, *, is_submitting: bool = True
) -> ToolResult:
    answer = rendered.answer
    is_submitting = is_submitting and answer.pending is not None
    note = go_on_working(app, caller, rendered.session, is_submitting=is_submitting)
    if not note:
        return ToolResult(answer, rendered.text)
    answer = msgspec.structs.replace(answer, warnings=(*answer.warnings, note))
    return ToolResult(answer, f"{rendered.text}\nwarning: {note}")


def _next_call(app: App, token: str) -> SuggestedCall:
    """The next call for the step that is pending at this token, as every answer shows it."""
    outcome = show_pending_step(app, token)
    if not isinstance(outcome, RenderedAnswer):
        return RESUME_SESSION.example_call()
    if call := outcome.answer.next_call:
        return SuggestedCall(call.tool, call.params)
    return CONTINUE_WORKFLOW.corrected_call({"continueToken": token, "intent": "rehydrate"})


def _checkpoint_call(token: str | None) -> SuggestedCall:
    arguments: dict[str, Json] = {"notesMarkdown": NOTES_BLANK}
    return CHECKPOINT_WORKFLOW.corrected_call(
        {**arguments, "continueToken": token} if token else arguments
    )


def _is_token_usable(refusal: Refusal) -> bool:
    """Whether the refusal is about something other than the token."""
    return refusal.explain().code in ("notes_not_written", "notes_too_long", "invalid_arguments")


def _suggest_call(app: App, refusal: Refusal, token: str) -> SuggestedCall:
    match refusal.explain().code:
        case (
            "notes_not_written"
            | "notes_too_long"
            | "invalid_arguments"
            | "nothing_pending"
            | "run_waits"
            | "approval_pending"
        ):
            return _next_call(app, token)
        case "unknown_step":
            return CONTINUE_WORKFLOW.corrected_call({"continueToken": token, "step": "all"})
        case "token_mangled" | "token_forged":
            return CONTINUE_WORKFLOW.example_call()
        case _:
            return RESUME_SESSION.example_call()
