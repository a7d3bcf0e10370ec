"""Answers to the agent: the facts as a structure, and the same facts as text.

What was answered is stored, so that asking again gives the same bytes for ever. Two parts are left
out of the stored form and filled in again when it is read: the prompt, which is kept once as a blob
of its own, and the token, which is minted again rather than kept.
"""

from typing import Literal

import msgspec

from interlock.core.ids import RunId, SessionId, StepId, WorkflowHash, WorkflowId

WRITE_YOUR_NOTES = "<write your notes>"
"""Stands in `nextCall` where the agent's notes belong; handed in as it is, it is refused."""

NextIntent = Literal["perform_pending_then_continue", "complete"]


class WorkflowRef(msgspec.Struct, frozen=True, rename="camel"):
    id: WorkflowId
    version: str
    hash: WorkflowHash


class Pending(msgspec.Struct, frozen=True, rename="camel"):
    """The step the agent must do now."""

    step_id: StepId
    title: str
    number: int
    of: int
    prompt: str


class NextOutput(msgspec.Struct, frozen=True, rename="camel"):
    notes_markdown: str = WRITE_YOUR_NOTES


class NextParams(msgspec.Struct, frozen=True, rename="camel"):
    continue_token: str
    output: NextOutput = NextOutput()


class NextCall(msgspec.Struct, frozen=True, rename="camel"):
    params: NextParams
    tool: Literal["continue_workflow"] = "continue_workflow"


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    run: RunId
    workflow: WorkflowRef
    pending: Pending | None
    continue_token: str
    is_complete: bool
    next_intent: NextIntent
    next_call: NextCall | None
    kind: Literal["ok"] = "ok"
    warnings: tuple[str, ...] = ()


class Frame(msgspec.Struct, frozen=True, rename="camel"):
    """An answer as it is stored: `text` is what stands before, between and after its two holes."""

    answer: Answer
    text: tuple[str, str, str]


class Answered(msgspec.Struct, frozen=True):
    """A whole answer, as it goes out."""

    answer: Answer
    text: str


decode_frame = msgspec.json.Decoder(Frame).decode


def frame(
    *,
    session: SessionId,
    run: RunId,
    workflow: WorkflowRef,
    pending: Pending | None,
    warnings: tuple[str, ...] = (),
) -> Frame:
    answer = Answer(
        session=session,
        run=run,
        workflow=workflow,
        pending=msgspec.structs.replace(pending, prompt="") if pending else None,
        continue_token="",
        is_complete=pending is None,
        next_intent="perform_pending_then_continue" if pending else "complete",
        next_call=NextCall(NextParams("")) if pending else None,
        warnings=warnings,
    )
    return Frame(answer, _text(answer))


def fill(stored: Frame, *, prompt: str, token: str) -> Answered:
    answer = stored.answer
    pending, next_call = answer.pending, answer.next_call
    if pending:
        pending = msgspec.structs.replace(pending, prompt=prompt)
    if next_call:
        next_call = NextCall(msgspec.structs.replace(next_call.params, continue_token=token))
    before, between, after = stored.text
    return Answered(
        msgspec.structs.replace(answer, pending=pending, next_call=next_call, continue_token=token),
        f"{before}{prompt}{between}{token}{after}",
    )


def _text(answer: Answer) -> tuple[str, str, str]:
    facts = (
        f"\nkind: {answer.kind}"
        f"\nnextIntent: {answer.next_intent}"
        f"\nsession: {answer.session}"
        f"\nrun: {answer.run}"
        f"\nworkflow: {answer.workflow.id} {answer.workflow.version} {answer.workflow.hash}"
    ) + "".join(f"\nwarning: {warning}" for warning in answer.warnings)
    if answer.pending is None:
        return (
            "The workflow is complete: every step is done and recorded. Nothing more to call."
            "\n\n---\nThis token shows the end of the run again if you need it:\ncontinueToken: ",
            "",
            facts,
        )
    pending = answer.pending
    return (
        f"# Step {pending.number} of {pending.of}: {pending.title} [{pending.step_id}]\n\n",
        "\n\n---\nDo this step now. Then call `continue_workflow` with the token below as "
        "`continueToken` and your notes as `output.notesMarkdown`.\ncontinueToken: ",
        facts,
    )
