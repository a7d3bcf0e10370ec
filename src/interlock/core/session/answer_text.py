"""Answers as they are stored and sent: a structure, and a text that says the same.

Every answer is stored, so that asking again always returns the same bytes. Left out of the stored
form and filled in when it is read are the prompt, which is stored once as a blob of its own, and
the tokens, which are minted again rather than stored: the text has slots in their places.
"""

import re
from collections.abc import Callable

import msgspec

from interlock.core.canonical import Json
from interlock.core.counting import pluralise
from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.session.answer import (
    PROMPT_SLOT,
    TOKEN_SLOT,
    Answer,
    AnswerApproval,
    Expects,
    LeftOutNotes,
    NextCall,
    NextIntent,
    OtherBranch,
    PassedByStep,
    PastOutput,
    Pending,
    RenderedAnswer,
    Situation,
    StoredAnswer,
)

_SHOW_AGAIN = NextCall("continue_workflow", {"continueToken": "", "intent": "rehydrate"})
_SLOT = re.compile("\0([^\0]*)\0")


def stored_answer(situation: Situation) -> StoredAnswer:
    """Return the answer for `situation`, without prompt and tokens."""
    intent = _next_intent(situation)
    pending = msgspec.structs.replace(situation.pending, prompt="") if situation.pending else None
    is_complete = intent == "complete"
    answer = Answer(
        kind="approval" if situation.approval else "blocked" if situation.blocked else "ok",
        pending=pending,
        continue_token="",
        is_complete=is_complete,
        next_intent=intent,
        next_call=_next_call(situation, intent),
        guidance=_guidance(situation, intent),
        introduction=None if situation.is_introduced else situation.introduction,
        progress=situation.progress if is_complete or not situation.is_introduced else None,
        skipped=situation.skipped,
        gaps=situation.gaps,
        blocked=situation.blocked,
        approval=situation.approval,
        checkpoint=situation.checkpoint,
        branches=situation.branches,
        warnings=situation.warnings,
        notices=situation.notices,
        verify=situation.verify,
        recap=situation.recap,
        left_out=situation.left_out,
    )
    return StoredAnswer(answer, _text_with_slots(answer))


def notes_answer(
    outputs: tuple[PastOutput, ...],
    values: dict[str, Json],
    left_out: tuple[LeftOutNotes, ...],
) -> StoredAnswer:
    """Return the answer with earlier outputs instead of the pending step."""
    answer = Answer(
        kind="notes",
        pending=None,
        continue_token="",
        is_complete=False,
        next_intent="rehydrate_only",
        next_call=_SHOW_AGAIN,
        left_out=left_out,
        outputs=outputs,
        values=values,
    )
    parts = [f"## {one.title} [{one.step}]\n\n{_output_text(one)}\n" for one in outputs]
    if values:
        lines = (
            f"- {name}: {msgspec.json.encode(value).decode()}" for name, value in values.items()
        )
        parts.insert(0, "\n".join(("Values of the context:", *lines, "")))
    text = _without_slots("\n".join(parts)) or "Nothing was submitted there.\n"
    again = "To see the pending step again, call `continue_workflow` with this token alone."
    return StoredAnswer(
        answer, f"{text}{_left_out_text(answer)}\n---\n{again}\ncontinueToken: {TOKEN_SLOT}"
    )


def _output_text(output: PastOutput) -> str:
    return "\n\n".join((output.notes, *output.artifacts))


def fill(
    stored: StoredAnswer,
    *,
    prompt: str,
    token: str,
    token_at: Callable[[NodeId], str],
    session: SessionId,
    run: RunId,
) -> RenderedAnswer:
    """Return a stored answer with its prompt and tokens. `token_at` mints one for a node."""
    answer = stored.answer
    pending, next_call = answer.pending, answer.next_call
    if pending and PROMPT_SLOT in stored.text:
        pending = msgspec.structs.replace(pending, prompt=prompt)
    if next_call:
        next_call = NextCall(next_call.tool, {**next_call.params, "continueToken": token})
    branches = tuple(
        msgspec.structs.replace(branch, continue_token=token_at(branch.node))
        for branch in answer.branches
    )
    fillings = {
        "prompt": prompt,
        "token": token,
        **{branch.node: branch.continue_token for branch in branches},
    }
    return RenderedAnswer(
        msgspec.structs.replace(
            answer, pending=pending, next_call=next_call, continue_token=token, branches=branches
        ),
        # In one pass: a prompt may contain anything.
        _SLOT.sub(lambda slot: fillings[slot[1]], stored.text),
        session,
        run,
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
        return _SHOW_AGAIN
    params: dict[str, Json] = {"continueToken": "", "output": situation.example}
    if situation.example_context:
        params["context"] = situation.example_context
    return NextCall("continue_workflow", params)


_APPROVAL_GUIDANCE = (
    "Tell the user, and stop here. Once the approval is answered, call `continue_workflow` with"
    " this token and without output: it returns the step at which the run continues."
)
_WAITING_GUIDANCE = (
    "The run used up its attempts and waits for the user. Show the user the command that continues"
    " it. Then call `continue_workflow` with this token and without output."
)
_NOTES_GUIDANCE = (
    "Answer in `output.notesMarkdown`: what you did, found and decided, and what is open."
)
_NOTES_REASON = " Your notes are all that is left of the step if this conversation is lost."
_FIRST_GUIDANCE = (
    "Do only this step. Then submit it with `continue_workflow` and this token; the answer is the"
    " next step."
)
_READ_ONLY_GUIDANCE = "This step only reads: change nothing in the workspace."
_USER_GUIDANCE = "Submit it only after the user has answered."


def _text_with_slots(answer: Answer) -> str:
    head = _completion_text(answer)
    if answer.approval:
        head = _approval_text(answer.approval)
    # An agent that has just submitted the step knows it: only the blockers are new.
    is_new = not answer.blocked or answer.introduction is not None
    if answer.pending:
        head = _heading(answer.pending) if is_new else ""
    parts = (
        *map(_branch_line, answer.branches),
        _verify_text(answer),
        _blocked_text(answer),
        head,
        "".join(f"Skipped: {_without_slots(_skipped_line(part))}\n" for part in answer.skipped),
        f"\n{PROMPT_SLOT}\n" if answer.pending and is_new else "\n" if head else "",
        _without_slots(answer.recap and f"\n{answer.recap}\n"),
        _left_out_text(answer),
        "\n---\n",
        answer.guidance and f"{answer.guidance}\n",
        f"Submit: {_expected_text(answer.pending.expects)}.\n" if answer.pending else "",
        f"continueToken: {TOKEN_SLOT}",
        _facts_text(answer),
    )
    return "".join(parts)


def _without_slots(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _heading(step: Pending) -> str:
    loop = step.loop
    place = f"{step.step_id} in {loop.id}" if loop else step.step_id
    return f"# Step {step.number} of {step.of}: {_without_slots(step.title)} [{place}]\n"


def _completion_text(answer: Answer) -> str:
    progress = answer.progress
    assert progress is not None or answer.pending or answer.approval, "the end has its progress"
    if progress is None:
        return ""
    skipped = f", {progress.skipped} skipped" if progress.skipped else ""
    steps = pluralise(progress.of, "step")
    return f"The workflow is complete: {progress.done} of {steps} done{skipped}.\n"


def _branch_line(branch: OtherBranch) -> str:
    call = f'continue_workflow {{"continueToken": "\0{branch.node}\0", "intent": "rehydrate"}}'
    summary = _without_slots(branch.summary)
    return f"Another branch is kept: {summary} ({branch.node}). To continue there: {call}\n"


def _approval_text(approval: AnswerApproval) -> str:
    return _without_slots(
        "The step is recorded. The run waits for the user's approval.\n\n"
        f"{approval.question}\n\n{approval.how} {approval.on_timeout}\n"
    )


def _skipped_line(part: PassedByStep) -> str:
    return f"{part.title} [{part.step_id}] ({part.reason})"


def _guidance(situation: Situation, intent: NextIntent) -> str:
    """Return what to do with this answer. The agent knows it if it has just sent the same step."""
    step, is_introduced = situation.pending, situation.is_introduced
    if situation.approval:
        return _APPROVAL_GUIDANCE
    if step is None:
        open_ends = " Tell the user about the gaps that are open." if situation.gaps else ""
        return f"Nothing is left to submit.{open_ends}"
    if intent == "rehydrate_only":
        return _WAITING_GUIDANCE
    if situation.blocked and is_introduced:
        return ""
    notes = _NOTES_GUIDANCE if is_introduced else f"{_NOTES_GUIDANCE}{_NOTES_REASON}"
    parts = (
        "" if is_introduced else _FIRST_GUIDANCE,
        _USER_GUIDANCE if intent == "await_user_confirmation" else "",
        _READ_ONLY_GUIDANCE if step.is_read_only else "",
        notes if step.expects.notes else "",
    )
    return " ".join(filter(None, parts))


def _expected_text(expects: Expects) -> str:
    parts = ["notes"] if expects.notes else []
    parts += [f"artifact `{kind}`" for kind in expects.artifacts]
    parts += [f"context `{key}`" for key in expects.context]
    return _without_slots(", ".join(parts)) or "nothing but the token and an empty `output`"


def _verify_text(answer: Answer) -> str:
    if not answer.verify:
        return ""
    lines = "".join(f"- {_without_slots(line)}\n" for line in answer.verify)
    return f"Check before you continue:\n{lines}\n"


def _blocked_text(answer: Answer) -> str:
    if answer.blocked is None:
        return ""
    left = pluralise(answer.blocked.attempts_left, "attempt")
    lines = [f"Not accepted. {left} left for this step. To correct:"]
    for blocker in answer.blocked.blockers:
        lines.append(
            f"- {blocker.message} ({blocker.code}, {blocker.pointer}). {blocker.suggestion}"
        )
    if answer.blocked.unblock:
        lines.append(f"Only the user can continue the run: `{answer.blocked.unblock}`")
    if answer.next_call and "output" in answer.next_call.params:
        form = {
            name: item for name, item in answer.next_call.params.items() if name != "continueToken"
        }
        lines.append(f"Fill in and send: {msgspec.json.encode(form).decode()}")
    lines.append("\n" if answer.introduction else "")
    return _without_slots("\n".join(lines))


def _left_out_text(answer: Answer) -> str:
    if not answer.left_out:
        return ""
    lines = "".join(
        f'- step "{notes.step}": {_without_slots(notes.title)}{_size_text(notes)}\n'
        for notes in answer.left_out
    )
    return (
        "\nLeft out for length. To read one, call `continue_workflow` with this token and its"
        " `step`:\n"
        f"{lines}"
    )


def _size_text(notes: LeftOutNotes) -> str:
    return f" ({pluralise(notes.characters, 'character')})" if notes.characters else ""


def _facts_text(answer: Answer) -> str:
    lines = [
        *(f"gap {gap.id} ({gap.severity}): {gap.summary}" for gap in answer.gaps),
        *((f"checkpoint: {answer.checkpoint}",) if answer.checkpoint else ()),
        *(f"warning: {warning}" for warning in answer.warnings),
        *answer.notices,
    ]
    return _without_slots("".join(f"\n{line}" for line in lines))
