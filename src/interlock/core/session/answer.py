"""Answers to the agent: the facts as a structure, and the same facts as text.

Every answer is stored, so that asking again always returns the same bytes. Two parts are left out
of the stored form and filled in when it is read: the prompt, which is stored once as a blob of its
own, and the token, which is minted again rather than stored.
"""

from typing import Literal

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import (
    ApprovalId,
    NodeId,
    RunId,
    SessionId,
    StepId,
    WorkflowHash,
    WorkflowId,
)
from interlock.core.preferences import Preferences
from interlock.core.session.blockers import Blocker

NextIntent = Literal[
    "perform_pending_then_continue", "await_user_confirmation", "rehydrate_only", "complete"
]


class WorkflowRef(msgspec.Struct, frozen=True, rename="camel"):
    id: WorkflowId
    version: str
    hash: WorkflowHash


class Pass(msgspec.Struct, frozen=True, rename="camel"):
    """The pass of a loop that a step is in."""

    id: StepId
    iteration: int
    max: int


class Expects(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The output that a step requires."""

    notes: bool
    contract: str | None = None
    """The kind of artifact that the step requires."""


class Pending(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The step the agent must do now."""

    step_id: StepId
    title: str
    number: int
    of: int
    prompt: str
    expects: Expects
    loop: Pass | None = None
    """The innermost loop, if the step is in one."""


class AnswerApproval(msgspec.Struct, frozen=True, rename="camel"):
    """The approval that the run waits for."""

    id: ApprovalId
    question: str
    how: str
    """The way to answer it."""
    on_timeout: str
    """The outcome if nobody answers."""


class NextCall(msgspec.Struct, frozen=True, rename="camel"):
    tool: Literal["continue_workflow"]
    params: dict[str, Json]


class BlockedStep(msgspec.Struct, frozen=True, rename="camel"):
    """Why the step was not accepted, and what would be."""

    blockers: tuple[Blocker, ...]
    attempts_left: int
    """Attempts that remain before the run waits for the user."""
    example: dict[str, Json]
    """An output of the right shape, to be filled in."""


class Gaps(msgspec.Struct, frozen=True, rename="camel"):
    open: int = 0
    critical: int = 0


class Answer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: Literal["ok", "blocked", "approval"]
    session: SessionId
    run: RunId
    workflow: WorkflowRef
    pending: Pending | None
    continue_token: str
    is_complete: bool
    preferences: Preferences
    gaps: Gaps
    next_intent: NextIntent
    next_call: NextCall | None
    blocked: BlockedStep | None = None
    approval: AnswerApproval | None = None
    checkpoint: NodeId | None = None
    """The checkpoint that was set, if the call asked for one."""
    warnings: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    """Things to check before going on after a break."""
    recap: str = ""
    """The notes of earlier steps, newest first."""


class StoredAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """An answer as it is stored: `text` is the parts before, between and after prompt and token."""

    answer: Answer
    text: tuple[str, str, str]


class RenderedAnswer(msgspec.Struct, frozen=True):
    """A complete answer, as it is sent."""

    answer: Answer
    text: str


class Situation(msgspec.Struct, frozen=True):
    """The state of a run, as far as an answer mentions it."""

    session: SessionId
    run: RunId
    workflow: WorkflowRef
    pending: Pending | None
    preferences: Preferences
    gaps: Gaps
    example: dict[str, Json] = {}
    """An output of the right shape for the pending step, to be filled in."""
    example_context: dict[str, Json] = {}
    """The context that is missing, as it could be sent."""
    needs_user: bool = False
    """The pending step waits for something that only the user can give."""
    is_waiting: bool = False
    """Too many attempts were blocked: the run waits for the user."""
    blocked: BlockedStep | None = None
    approval: AnswerApproval | None = None
    checkpoint: NodeId | None = None
    warnings: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    recap: str = ""


decode_stored_answer = msgspec.json.Decoder(StoredAnswer).decode


def stored_answer(situation: Situation) -> StoredAnswer:
    """Return the answer for `situation`, without prompt and token."""
    intent = _next_intent(situation)
    pending = msgspec.structs.replace(situation.pending, prompt="") if situation.pending else None
    answer = Answer(
        kind="approval" if situation.approval else "blocked" if situation.blocked else "ok",
        session=situation.session,
        run=situation.run,
        workflow=situation.workflow,
        pending=pending,
        continue_token="",
        is_complete=intent == "complete",
        preferences=situation.preferences,
        gaps=situation.gaps,
        next_intent=intent,
        next_call=_next_call(situation, intent),
        blocked=situation.blocked,
        approval=situation.approval,
        checkpoint=situation.checkpoint,
        warnings=situation.warnings,
        verify=situation.verify,
        recap=situation.recap,
    )
    return StoredAnswer(answer, _text_parts(answer))


def fill(stored: StoredAnswer, *, prompt: str, token: str) -> RenderedAnswer:
    """Return a stored answer with its prompt and token filled in."""
    answer = stored.answer
    pending, next_call = answer.pending, answer.next_call
    if pending:
        pending = msgspec.structs.replace(pending, prompt=prompt)
    if next_call:
        params = {**next_call.params, "continueToken": token}
        next_call = NextCall(next_call.tool, params)
    before, between, after = stored.text
    return RenderedAnswer(
        msgspec.structs.replace(answer, pending=pending, next_call=next_call, continue_token=token),
        f"{before}{prompt}{between}{token}{after}",
    )


def _next_intent(situation: Situation) -> NextIntent:
    if situation.approval:
        return "await_user_confirmation"
    if situation.pending is None:
        return "complete"
    if situation.is_waiting:
        return "rehydrate_only"
    return "await_user_confirmation" if situation.needs_user else "perform_pending_then_continue"


def _next_call(situation: Situation, intent: NextIntent) -> NextCall | None:
    if intent == "complete":
        return None
    if intent == "rehydrate_only" or situation.approval:
        return NextCall("continue_workflow", {"continueToken": "", "intent": "rehydrate"})
    params: dict[str, Json] = {"continueToken": "", "output": situation.example}
    if situation.example_context:
        params["context"] = situation.example_context
    return NextCall("continue_workflow", params)


_INSTRUCTIONS: dict[NextIntent, str] = {
    "perform_pending_then_continue": "Do this step now. Then call `continue_workflow` with the"
    " token below as `continueToken` and your notes as `output.notesMarkdown`.",
    "await_user_confirmation": "Ask the user what the step says, and wait. Then call"
    " `continue_workflow` with the token below as `continueToken`, your notes, and the artifact"
    " where one is asked for.",
    "rehydrate_only": "Too many attempts were not accepted: the run waits for the user. Tell the"
    " user, who can let it go on; then ask again with the token below and without output.",
    "complete": "This token shows the end of the run again if you need it.",
}


_APPROVAL_INSTRUCTIONS = (
    "Tell the user, and stop here. Once it is answered, call `continue_workflow` with the token"
    " below and without output: it brings the step at which the run goes on."
)


def _text_parts(answer: Answer) -> tuple[str, str, str]:
    head = "The workflow is complete: every step is done and recorded. Nothing more to call."
    if answer.approval:
        head = _approval_text(answer.approval)
    if answer.pending:
        head = _heading(answer.pending)
    before = "".join((_verify_text(answer), _blocked_text(answer), head))
    instructions = _APPROVAL_INSTRUCTIONS if answer.approval else _INSTRUCTIONS[answer.next_intent]
    between = f"{_recap_text(answer)}\n\n---\n{instructions}\ncontinueToken: "
    return before, between, _facts_text(answer)


def _heading(step: Pending) -> str:
    loop = step.loop
    passes = f", pass {loop.iteration} of at most {loop.max} in {loop.id}" if loop else ""
    return f"# Step {step.number} of {step.of}: {step.title} [{step.step_id}{passes}]\n\n"


def _approval_text(approval: AnswerApproval) -> str:
    return (
        f"The step is recorded, and the run waits for an approval ({approval.id}).\n\n"
        f"{approval.question}\n\n{approval.how} {approval.on_timeout}"
    )


def _expects_line(expects: Expects) -> str:
    parts = ["notes"] if expects.notes else []
    parts += [f"contract {expects.contract}"] if expects.contract else []
    return f"\nexpects: {', '.join(parts) or 'nothing'}"


def _verify_text(answer: Answer) -> str:
    if not answer.verify:
        return ""
    return "Verify before you go on:\n" + "".join(f"- {line}\n" for line in answer.verify) + "\n"


def _blocked_text(answer: Answer) -> str:
    if answer.blocked is None:
        return ""
    lines = [f"Not accepted yet; {answer.blocked.attempts_left} attempts left. What is missing:"]
    for blocker in answer.blocked.blockers:
        lines.append(
            f"- {blocker.message} ({blocker.code}, {blocker.pointer}). {blocker.suggestion}"
        )
    example = msgspec.json.encode(answer.blocked.example).decode()
    lines.append(f"An output of the right shape: {example}\n\n")
    return "\n".join(lines)


def _recap_text(answer: Answer) -> str:
    return f"\n\n## What happened before\n\n{answer.recap}" if answer.recap else ""


def _facts_text(answer: Answer) -> str:
    gaps = f"\ngaps: {answer.gaps.open} open, {answer.gaps.critical} critical"
    return (
        f"\nkind: {answer.kind}"
        f"\nnextIntent: {answer.next_intent}"
        f"\nsession: {answer.session}"
        f"\nrun: {answer.run}"
        f"\nworkflow: {answer.workflow.id} {answer.workflow.version} {answer.workflow.hash}"
        f"\npreferences: {answer.preferences.autonomy}, {answer.preferences.risk_policy}"
        + (_expects_line(answer.pending.expects) if answer.pending else "")
        + (gaps if answer.gaps.open else "")
        + (f"\ncheckpoint: {answer.checkpoint}" if answer.checkpoint else "")
        + "".join(f"\nwarning: {warning}" for warning in answer.warnings)
    )
