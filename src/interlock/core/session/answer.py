"""The structure of answers to the agent. `answer_text` says the same in words.

An answer is small. Beyond the prompt it names the step, the steps skipped on the way and why, the
expected output, and what is new. The structure has ids, hash and preferences only at the start of a
run and after a break (`Introduction`), where the guidance is complete as well.
"""

from typing import Literal

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import (
    ApprovalId,
    GapId,
    NodeId,
    RunId,
    SessionId,
    StepId,
    WorkflowHash,
    WorkflowId,
)
from interlock.core.preferences import Preferences
from interlock.core.session.blockers import Blocker
from interlock.core.workflow.packs import Severity

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
    """The expected submission of a step."""

    notes: bool
    artifacts: tuple[str, ...] = ()
    """The kinds of artifact, in the order of the example."""
    context: tuple[str, ...] = ()
    """The keys of the context that it should set."""


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
    is_read_only: bool = False
    """Whether it changes nothing in the workspace."""


class PassedByStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step, or a part with several, that the run has passed by since the last answer."""

    step_id: StepId
    title: str
    reason: str


class AnswerGap(msgspec.Struct, frozen=True, rename="camel"):
    id: GapId
    severity: Severity
    summary: str


class OtherBranch(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Another line of work from the same step, which is kept."""

    node: NodeId
    """The node where it stands."""
    summary: str
    continue_token: str = ""


class LeftOutNotes(msgspec.Struct, frozen=True, rename="camel"):
    """Notes that a recap only names; `continue_workflow` with this `step` reads them."""

    step: str
    title: str
    characters: int
    """0 where nobody has counted."""


class PastOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The output of an earlier step or checkpoint, every byte of it."""

    step: str
    title: str
    notes: str
    artifacts: tuple[str, ...] = ()
    """As JSON."""


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """The steps of the definition: how many were done, how many passed by."""

    done: int
    skipped: int
    of: int


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


class BlockedStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why the step was not accepted. The answer's next call has an acceptable form."""

    blockers: tuple[Blocker, ...]
    attempts_left: int
    """Attempts that remain before the run waits for the user."""
    unblock: str = ""
    """At 0 attempts: the user's command to continue the run."""
    example: dict[str, Json] = {}
    """An output in the form of earlier versions."""


class Introduction(msgspec.Struct, frozen=True, rename="camel"):
    """Sent at the start of a run and after a break."""

    session: SessionId
    run: RunId
    workflow: WorkflowRef
    preferences: Preferences


class Answer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: Literal["ok", "blocked", "approval", "notes"]
    pending: Pending | None
    continue_token: str
    is_complete: bool
    next_intent: NextIntent
    next_call: NextCall | None
    guidance: str = ""
    """How to submit the step and write its notes: complete with an introduction, else one line."""
    introduction: Introduction | None = None
    progress: Progress | None = None
    """Given at the end of a run and after a break."""
    skipped: tuple[PassedByStep, ...] = ()
    gaps: tuple[AnswerGap, ...] = ()
    """Gaps that are new; after a break and at the end, all that are open."""
    blocked: BlockedStep | None = None
    approval: AnswerApproval | None = None
    checkpoint: NodeId | None = None
    """The checkpoint that was set, if the call asked for one."""
    branches: tuple[OtherBranch, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """Facts that help with the step; nothing is wrong."""
    verify: tuple[str, ...] = ()
    """Things to check before going on after a break."""
    recap: str = ""
    """After a break: the goal, the values, and the notes that later steps need."""
    left_out: tuple[LeftOutNotes, ...] = ()
    """The notes that the recap, or the reading of notes, leaves out."""
    outputs: tuple[PastOutput, ...] = ()
    """The outputs of the step that was asked for, the oldest first."""
    values: dict[str, Json] = {}
    """The context, if everything was asked for."""


PROMPT_SLOT = "\0prompt\0"
TOKEN_SLOT = "\0token\0"


class StoredAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """An answer as it is stored: `text` has slots for the prompt and the tokens."""

    answer: Answer
    text: str


class RenderedAnswer(msgspec.Struct, frozen=True):
    """A complete answer, as it is sent, and whose it is."""

    answer: Answer
    text: str
    session: SessionId
    run: RunId


class Situation(msgspec.Struct, frozen=True):
    """The state of a run, as far as an answer mentions it."""

    introduction: Introduction
    pending: Pending | None
    progress: Progress
    gaps: tuple[AnswerGap, ...] = ()
    example: dict[str, Json] = {}
    """An output of the right form for the pending step, to be filled in."""
    example_context: dict[str, Json] = {}
    """The context that goes with it."""
    needs_user: bool = False
    """The pending step waits for something that only the user can give."""
    is_waiting: bool = False
    """Too many attempts were blocked: the run waits for the user."""
    is_introduced: bool = True
    """Whether whoever reads this knows how it works, and in which run it is."""
    blocked: BlockedStep | None = None
    approval: AnswerApproval | None = None
    checkpoint: NodeId | None = None
    skipped: tuple[PassedByStep, ...] = ()
    branches: tuple[OtherBranch, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    recap: str = ""
    left_out: tuple[LeftOutNotes, ...] = ()


class _FirstStoredAnswer(msgspec.Struct, frozen=True):
    """An answer as the first stores have it: its text is what stands around prompt and token."""

    answer: dict[str, Json]
    text: tuple[str, str, str]


_decode_stored_answer = msgspec.json.Decoder(StoredAnswer).decode


def decode_stored_answer(content: bytes) -> StoredAnswer:
    try:
        return _decode_stored_answer(content)
    except msgspec.ValidationError:
        first = msgspec.json.decode(content, type=_FirstStoredAnswer)
        answer = msgspec.convert({**first.answer, "gaps": []}, Answer)
        head, middle, tail = (part.replace("\0", "\ufffd") for part in first.text)
        return StoredAnswer(answer, f"{head}{PROMPT_SLOT}{middle}{TOKEN_SLOT}{tail}")
