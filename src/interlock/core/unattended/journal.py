"""The journal of unattended work: everything a driver does, written down before or right after.

The model's answer is recorded before any of its tools runs, the start of a tool before it runs and
its result after, and what is submitted before it is sent. So whoever reads the journal knows where
the work stands, and the driver itself knows nothing more: it folds the entries (`fold`), does the
one thing that comes next (`next_action`), appends what came of it, and folds on. A driver that was
killed goes on in the same way; the only difference it sees is a call or a tool that has a beginning
and no end.

The messages of one step form one conversation. The next step begins a new one, with a recap.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from interlock.core.unattended.compaction import compact
from interlock.core.unattended.conversation import (
    Message,
    ModelMessage,
    StopReason,
    ToolMessage,
    ToolReply,
    ToolRequest,
    Usage,
    UserMessage,
)
from interlock.core.unattended.order import Spent
from interlock.core.unattended.proof import ProofRun

COMPLETE_STEP = "complete_step"
INTERRUPTED = (
    "Interrupted: the driver stopped while this call ran, so its effect is unknown. It was not"
    " repeated. Check the current state before you continue."
)
NO_TOOL = (
    "No user reads this text. Call a tool to continue the step. When it is done, submit it with"
    f" `{COMPLETE_STEP}`."
)
CUT_OFF = (
    "Your answer was cut off at the limit of output tokens before it called a tool. Answer in"
    " smaller parts: write a long file with several calls."
)
FILTERED = (
    "The provider's content filter stopped your answer. Continue the step in another way, or submit"
    f" it with `{COMPLETE_STEP}` and say in the notes what cannot be done."
)


class EntryStruct(
    msgspec.Struct, frozen=True, tag_field="entry", rename="camel", omit_defaults=True
):
    """The form that all entries have in the file."""


class JournalBegun(EntryStruct, frozen=True, tag="journal_begun"):
    """The first entry of a journal that was lost before: what the log knows of the cost."""

    spent: Spent


class StepBegun(EntryStruct, frozen=True, tag="step_begun"):
    """A conversation begins. What the model is told first is the same in each of its turns."""

    run: str
    step: str
    title: str
    number: int
    token: str
    """The token with which the step is submitted. The model never sees it."""
    system: str
    message: str
    model: str
    tools: tuple[str, ...]
    level: str
    proof: str = ""
    """The command that proves the step."""


class ModelCalled(EntryStruct, frozen=True, tag="model_called"):
    digest: str
    """Of the whole request."""
    input_estimate: int
    """Tokens: charged if the answer never comes."""


class ModelAnswered(EntryStruct, frozen=True, tag="model_answered"):
    message: ModelMessage
    stop: StopReason
    usage: Usage
    ms: int


class ModelFailed(EntryStruct, frozen=True, tag="model_failed"):
    """A call that brought no answer. `wait_ms`: it is made again after that time."""

    kind: str
    text: str
    wait_ms: int = 0
    ms: int = 0


class ToolStarted(EntryStruct, frozen=True, tag="tool_started"):
    call: str
    name: str


class ToolEnded(EntryStruct, frozen=True, tag="tool_ended"):
    result: ToolReply
    ms: int = 0
    exit_code: int | None = None
    spent: Spent = Spent()
    """What a spawned agent has used."""
    is_malformed: bool = False
    """The call made no sense, so nothing was run."""


class MessageAdded(EntryStruct, frozen=True, tag="message_added"):
    """Something is said to the model besides the results of its tools."""

    text: str
    source: Literal["steer", "driver"]
    steer: str = ""
    limit: str = ""
    """The limit, in words, that it warns of."""


class ConversationCompacted(EntryStruct, frozen=True, tag="compacted"):
    """The conversation is made as short as this, because its model cannot read it all."""

    chars_max: int


class AdvanceIntended(EntryStruct, frozen=True, tag="advance_intended"):
    """The call that submits a step: sent again after a crash, it is the same call."""

    call: str
    token: str
    arguments: str
    """The arguments of `continue_workflow` besides the token, as JSON."""
    proof: str = ""
    """How the command ended that proves the step, for the model."""


class AdvanceAnswered(EntryStruct, frozen=True, tag="advance_answered"):
    outcome: Literal["advanced", "blocked", "refused", "exhausted"]
    """`exhausted`: it was not accepted, and no attempt is left."""
    text: str
    """The reason why it was not accepted, for the model."""
    token: str = ""
    """The token of the next attempt."""


class ProofEnded(EntryStruct, frozen=True, tag="proof_ended"):
    """A command that proves the result, or a step, was run by the driver itself."""

    proof: ProofRun


class ClientReported(EntryStruct, frozen=True, tag="client_reported"):
    """A client that does the steps begins with a conversation, or tells what its turns have cost.

    Their own entries cannot tell, because it says so only at its end.
    """

    conversation: str
    cost_micros: int | None = None
    """Of the turns since the last such entry; None: nobody will ever tell."""
    total_micros: int = 0
    """The cost of the whole conversation, as the client counts it."""
    ms: int = 0
    """The time since its last entry."""


class JournalNote(EntryStruct, frozen=True, tag="noted"):
    """Something worth showing: why it is parked, that it continues, a sign, a question."""

    kind: Literal["parked", "resumed", "stuck", "limit", "approval", "question", "issue"]
    text: str
    call: str = ""
    """The tool call, or the limit, that it is about."""


Entry: TypeAlias = (
    JournalBegun
    | StepBegun
    | ModelCalled
    | ModelAnswered
    | ModelFailed
    | ToolStarted
    | ToolEnded
    | MessageAdded
    | ConversationCompacted
    | AdvanceIntended
    | AdvanceAnswered
    | ProofEnded
    | ClientReported
    | JournalNote
)


class JournalEntry(msgspec.Struct, frozen=True):
    seq: int
    at_ms: int
    entry: Entry


decode_entry = msgspec.json.Decoder(Entry).decode


class WorkProgress(msgspec.Struct, frozen=True):
    """Where the work stands by the journal."""

    spent: Spent = Spent()
    step: StepBegun | None = None
    """The step whose conversation is open."""
    messages: tuple[Message, ...] = ()
    token: str = ""
    open_call: ModelCalled | None = None
    """A call to the model whose answer has not come."""
    calls: tuple[ToolRequest, ...] = ()
    """The calls of the last answer that have no result yet."""
    results: tuple[ToolReply, ...] = ()
    """The results of the others."""
    started: str = ""
    """The call whose tool was started."""
    added: tuple[str, ...] = ()
    """Messages that wait for the end of the tools."""
    advance: AdvanceIntended | None = None
    is_advanced: bool = False
    """The step was accepted: a new one begins."""
    history: tuple[tuple[str, str], ...] = ()
    """The last calls of tools, oldest first: what was called, and what came of it."""
    malformed_in_row: int = 0
    silent_in_row: int = 0
    """Answers without a call."""
    stop: StopReason = "tools"
    """Why the last answer ended."""
    warned: tuple[str, ...] = ()
    """The limits, in words, of which the user was told that they come near."""
    signs: tuple[str, ...] = ()
    """The signs of going in circles that were noted in this conversation since it last went on."""
    turns_in_step: int = 0
    last_cost_micros: int = 0
    steered: tuple[str, ...] = ()
    unheard: tuple[str, ...] = ()
    """What a person has said to the model since its last answer."""
    client: ClientReported | None = None
    """The conversation of a client, as it was last told of."""
    unpaid_tokens: int = 0
    """The tokens of a client's turns whose cost was not told yet."""


HISTORY_MAX = 24


class BeginStep(msgspec.Struct, frozen=True):
    pass


class CallModel(msgspec.Struct, frozen=True):
    pass


class RunTool(msgspec.Struct, frozen=True):
    call: ToolRequest
    was_started: bool
    """It was, and nobody knows with which effect."""


class SendAdvance(msgspec.Struct, frozen=True):
    intended: AdvanceIntended


Action: TypeAlias = BeginStep | CallModel | RunTool | SendAdvance


def next_action(progress: WorkProgress) -> Action:
    """The one thing to do next."""
    if progress.step is None or progress.is_advanced:
        return BeginStep()
    if progress.advance:
        return SendAdvance(progress.advance)
    if progress.calls:
        call = progress.calls[0]
        return RunTool(call, was_started=progress.started == call.id)
    return CallModel()


def fold(entries: Iterable[Entry], progress: WorkProgress | None = None) -> WorkProgress:
    for entry in entries:
        progress = apply_entry(progress or WorkProgress(), entry)
    return progress or WorkProgress()


def apply_entry(before: WorkProgress, entry: Entry) -> WorkProgress:
    change, spent = msgspec.structs.replace, before.spent
    match entry:
        case JournalBegun():
            return change(before, spent=entry.spent)
        case StepBegun():
            kept = WorkProgress(
                spent=spent,
                last_cost_micros=before.last_cost_micros,
                steered=before.steered,
                unheard=before.unheard,
                warned=before.warned,
                client=before.client,
                unpaid_tokens=before.unpaid_tokens,
            )
            first = (UserMessage(entry.message),)
            return change(kept, step=entry, messages=first, token=entry.token)
        case ModelCalled():
            # One that was open before has cost something, though nobody knows its answer.
            return change(_charge_open_call(before), open_call=entry)
        case ModelFailed():
            work_ms = spent.work_ms + entry.ms
            return change(before, open_call=None, spent=change(spent, work_ms=work_ms))
        case ModelAnswered():
            return _apply_answer(before, entry)
        case ToolStarted():
            return change(before, started=entry.call)
        case ToolEnded():
            return _tool_ended(before, entry)
        case MessageAdded():
            if entry.steer:
                steered, unheard = (*before.steered, entry.steer), (*before.unheard, entry.text)
                before = change(before, steered=steered, unheard=unheard)
            if entry.limit:
                before = change(before, warned=(*before.warned, entry.limit))
            if before.calls or before.advance:
                return change(before, added=(*before.added, entry.text))
            return change(before, messages=_with_text(before.messages, entry.text))
        case ConversationCompacted():
            return change(before, messages=compact(before.messages, entry.chars_max))
        case AdvanceIntended():
            return change(before, advance=entry)
        case AdvanceAnswered(outcome="advanced" | "exhausted"):
            return change(before, advance=None, is_advanced=True)
        case AdvanceAnswered():
            assert before.advance is not None, "an answer follows what was sent"
            result = ToolReply(before.advance.call, COMPLETE_STEP, entry.text, is_error=True)
            before = change(before, advance=None, token=entry.token or before.token)
            return _tool_ended(before, ToolEnded(result))
        case ProofEnded():
            work_ms = spent.work_ms + entry.proof.ms
            return change(before, spent=change(spent, work_ms=work_ms))
        case ClientReported():
            return _client_reported(before, entry)
        case JournalNote(kind="resumed"):
            # Whoever lets it go on has seen what it did: the same signs count anew.
            return change(before, history=(), malformed_in_row=0, silent_in_row=0, signs=())
        case JournalNote(kind="limit"):
            return change(before, warned=(*before.warned, entry.call))
        case JournalNote(kind="stuck"):
            return change(before, signs=(*before.signs, entry.text))
        case JournalNote():
            return before


def _charge_open_call(before: WorkProgress) -> WorkProgress:
    if before.open_call is None:
        return before
    lost = Usage(input=before.open_call.input_estimate, is_estimated=True)
    if before.last_cost_micros:
        lost = msgspec.structs.replace(lost, cost_micros=before.last_cost_micros)
    spent = msgspec.structs.replace(before.spent, usage=before.spent.usage + lost)
    return msgspec.structs.replace(before, spent=spent, open_call=None)


def _client_reported(before: WorkProgress, entry: ClientReported) -> WorkProgress:
    spent, cost, is_estimated = before.spent, entry.cost_micros, False
    if cost is None:
        # A client that was killed has told nothing: by what the others have cost.
        paid_tokens = spent.usage.tokens - before.unpaid_tokens
        price = (spent.usage.cost_micros or 0) / paid_tokens if paid_tokens else 0
        cost, is_estimated = round(price * before.unpaid_tokens), before.unpaid_tokens > 0
    usage = spent.usage + Usage(cost_micros=cost, is_estimated=is_estimated)
    spent = Spent(spent.turns, spent.work_ms + entry.ms, usage)
    return msgspec.structs.replace(before, spent=spent, client=entry, unpaid_tokens=0)


def _apply_answer(before: WorkProgress, entry: ModelAnswered) -> WorkProgress:
    spent, calls, usage = before.spent, entry.message.calls, entry.usage
    if before.client:  # it tells the cost later
        usage = msgspec.structs.replace(usage, cost_micros=0)
    spent = Spent(spent.turns + 1, spent.work_ms + entry.ms, spent.usage + usage)
    answered = msgspec.structs.replace(
        before,
        spent=spent,
        messages=(*before.messages, entry.message),
        open_call=None,
        calls=calls,
        results=(),
        started="",
        turns_in_step=before.turns_in_step + 1,
        silent_in_row=0 if calls else before.silent_in_row + 1,
        stop=entry.stop,
        last_cost_micros=entry.usage.cost_micros or 0,
        unheard=(),
        unpaid_tokens=before.unpaid_tokens + entry.usage.tokens if before.client else 0,
    )
    if calls:
        return answered
    text = {"length": CUT_OFF, "refusal": FILTERED}.get(entry.stop, NO_TOOL)
    messages = _with_text(answered.messages, text)
    return msgspec.structs.replace(answered, messages=messages)


def _tool_ended(before: WorkProgress, entry: ToolEnded) -> WorkProgress:
    change, spent = msgspec.structs.replace, before.spent
    result = entry.result
    call = next((one for one in before.calls if one.id == result.call), None)
    assert call is not None, f"{result.call} was called"
    calls = tuple(one for one in before.calls if one is not call)
    outcome = f"{'error' if result.is_error else 'ok'}:{result.text}"
    usage, turns = spent.usage + entry.spent.usage, spent.turns + entry.spent.turns
    after = change(
        before,
        spent=Spent(turns, spent.work_ms + entry.ms + entry.spent.work_ms, usage),
        calls=calls,
        results=(*before.results, result),
        started="",
        history=(*before.history, (f"{call.name} {call.arguments}", outcome))[-HISTORY_MAX:],
        malformed_in_row=before.malformed_in_row + 1 if entry.is_malformed else 0,
    )
    if calls:
        return after
    messages: tuple[Message, ...] = (*after.messages, ToolMessage(after.results))
    for text in after.added:
        messages = _with_text(messages, text)
    return change(after, messages=messages, results=(), added=())


def _with_text(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Say one more thing: two messages of the user in a row are one."""
    last = messages[-1] if messages else None
    if isinstance(last, UserMessage) and len(messages) > 1:
        return (*messages[:-1], UserMessage(f"{last.text}\n\n{text}"))
    return (*messages, UserMessage(text))
