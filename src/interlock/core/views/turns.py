"""Turns: the journal of unattended work as people read it, oldest first.

A turn is one answer of the model with all that came of it: the calls that failed before it, its
tools with what they returned, and what was submitted. Between turns stand the beginnings of steps,
what was said to the model, and what the driver found worth noting. Unlike `journal.fold` this is
for looking at: a journal that begins in the middle, or has an end that fits nothing, is shown.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.unattended.conversation import (
    ModelMessage,
    StopReason,
    ThinkingPart,
    ToolReply,
    ToolRequest,
    Usage,
)
from interlock.core.unattended.journal import (
    AdvanceAnswered,
    AdvanceIntended,
    ClientReported,
    ConversationCompacted,
    JournalEntry,
    JournalNote,
    MessageAdded,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ProofEnded,
    StepBegun,
    ToolEnded,
    ToolStarted,
)
from interlock.core.unattended.order import Spent, dollars

HEAD_CHARS, TAIL_CHARS = 3_000, 1_500
COMPACTED = "The oldest parts of the conversation were left out, so that the model can read it."
LOST_ANSWER = "The answer never came: the driver was ended meanwhile. It is charged by estimate."


class ShortText(msgspec.Struct, frozen=True):
    """A text of limited length: its beginning, and its end where something is left out."""

    head: str
    left_out: int = 0
    """Characters."""
    tail: str = ""

    @property
    def line_count(self) -> int:
        return self.head.count("\n") + self.tail.count("\n") + 1


class FailedCall(msgspec.Struct, frozen=True):
    """A question to the model that brought no answer."""

    at_ms: int
    kind: str
    text: str
    wait_ms: int = 0


class ToolUse(msgspec.Struct, frozen=True):
    """A call of a tool, and what came of it so far."""

    call: ToolRequest
    started_ms: int = 0
    result: ToolReply | None = None
    ms: int = 0
    exit_code: int | None = None
    spent: Spent = Spent()
    """What a spawned agent has used."""
    handed_in: Literal["", "sent", "advanced", "blocked", "refused", "exhausted"] = ""
    """The answer to the submission of this call."""

    @property
    def state(self) -> Literal["waits", "runs", "done", "failed"]:
        if self.handed_in in ("blocked", "refused", "exhausted") or (
            self.result and self.result.is_error
        ):
            return "failed"
        if self.result or self.handed_in == "advanced":
            return "done"
        return "runs" if self.started_ms or self.handed_in else "waits"

    @property
    def input(self) -> ShortText:
        return shorten(arguments_text(self.call.arguments))

    @property
    def output(self) -> ShortText:
        return shorten(self.result.text if self.result else "")


class Turn(msgspec.Struct, frozen=True):
    seq: int
    at_ms: int
    """When the model was first asked."""
    number: int = 0
    """The number of its answer, from 1; 0 while there is none."""
    called_ms: int = 0
    """When a call was made that is still open; 0 if none is."""
    message: ModelMessage = ModelMessage(())
    stop: StopReason = "tools"
    usage: Usage = Usage()
    ms: int = 0
    failures: tuple[FailedCall, ...] = ()
    tools: tuple[ToolUse, ...] = ()

    @property
    def thinking(self) -> str:
        parts = (part.text for part in self.message.parts if isinstance(part, ThinkingPart))
        return "\n\n".join(filter(None, parts))


class StepStart(msgspec.Struct, frozen=True):
    seq: int
    at_ms: int
    begun: StepBegun
    is_continued: bool = False
    """Whether it began on an earlier page."""


class AddedText(msgspec.Struct, frozen=True):
    """Something that was said to the model besides the results of its tools."""

    seq: int
    at_ms: int
    added: MessageAdded


class JournalRemark(msgspec.Struct, frozen=True):
    seq: int
    at_ms: int
    kind: str
    text: str


TurnRow: TypeAlias = Turn | StepStart | AddedText | JournalRemark


def fold_turns(entries: Iterable[JournalEntry], *, first_number: int = 1) -> tuple[TurnRow, ...]:
    """The rows to show. `first_number`: that of the first answer among the entries."""
    folding = _TurnFolding(first_number)
    for placed in entries:
        folding.add(placed)
    return tuple(folding.rows)


class _TurnFolding:
    def __init__(self, first_number: int) -> None:
        self.rows: list[TurnRow] = []
        self._next_number = first_number
        self._places: dict[str, tuple[int, int]] = {}
        """The place of each call: its row, and its place among the tools there."""
        self._sent_call = ""

    def add(self, placed: JournalEntry) -> None:
        place = (placed.seq, placed.at_ms)
        match placed.entry:
            case StepBegun() as begun:
                self.rows.append(StepStart(*place, begun))
            case MessageAdded() as added:
                self.rows.append(AddedText(*place, added))
            case JournalNote() as noted:
                self.rows.append(JournalRemark(*place, noted.kind, noted.text))
            case ConversationCompacted():
                self.rows.append(JournalRemark(*place, "compacted", COMPACTED))
            case ProofEnded(proof):
                self.rows.append(JournalRemark(*place, "proof", f"{proof.command} {proof.end}"))
            case ClientReported() as reported:
                if reported.cost_micros is not None:
                    text = f"the turns of the client cost {dollars(reported.cost_micros)}"
                    self.rows.append(JournalRemark(*place, "cost", text))
            case ModelCalled():
                self._end_lost_call(placed.at_ms)
                self._set_last(self._open_turn(placed), called_ms=placed.at_ms)
            case ModelFailed() as failed:
                turn = self._open_turn(placed)
                failure = FailedCall(placed.at_ms, failed.kind, failed.text, failed.wait_ms)
                self._set_last(turn, called_ms=0, failures=(*turn.failures, failure))
            case ModelAnswered() as answered:
                self._answer(placed, answered)
            case ToolStarted() as started:
                self._change_tool(started.call, started_ms=placed.at_ms)
            case ToolEnded() as ended:
                self._change_tool(
                    ended.result.call,
                    result=ended.result,
                    ms=ended.ms,
                    exit_code=ended.exit_code,
                    spent=ended.spent,
                )
            case AdvanceIntended() as intended:
                self._sent_call = intended.call
                self._change_tool(intended.call, handed_in="sent")
            case AdvanceAnswered() as answered:
                result = ToolReply(self._sent_call, "", answered.text) if answered.text else None
                self._change_tool(self._sent_call, handed_in=answered.outcome, result=result)
            case _:
                pass  # it is in the sums alone

    def _end_lost_call(self, at_ms: int) -> None:
        """Note that a call which is still open brought no answer, since another one is made."""
        for place, row in enumerate(self.rows):
            if isinstance(row, Turn) and row.called_ms:
                failures = (*row.failures, FailedCall(at_ms, "lost", LOST_ANSWER))
                self.rows[place] = msgspec.structs.replace(row, called_ms=0, failures=failures)

    def _open_turn(self, placed: JournalEntry) -> Turn:
        """The turn that has no answer yet, at the end of the rows."""
        last = self.rows[-1] if self.rows else None
        if isinstance(last, Turn) and not last.number:
            return last
        turn = Turn(placed.seq, placed.at_ms)
        self.rows.append(turn)
        return turn

    def _set_last(self, turn: Turn, **changes: object) -> None:
        assert self.rows[-1] is turn, "what goes on is at the end"
        self.rows[-1] = msgspec.structs.replace(turn, **changes)

    def _answer(self, placed: JournalEntry, answered: ModelAnswered) -> None:
        turn = self._open_turn(placed)
        for index, call in enumerate(answered.message.calls):
            self._places[call.id] = (len(self.rows) - 1, index)
        self._set_last(
            turn,
            number=self._next_number,
            called_ms=0,
            message=answered.message,
            stop=answered.stop,
            usage=answered.usage,
            ms=answered.ms,
            tools=tuple(ToolUse(call) for call in answered.message.calls),
        )
        self._next_number += 1

    def _change_tool(self, call: str, **changes: object) -> None:
        place = self._places.get(call)
        if place is None:
            return  # it belongs to a turn before these entries
        row, index = place
        turn = self.rows[row]
        assert isinstance(turn, Turn), "only turns have calls"
        tools = list(turn.tools)
        tools[index] = msgspec.structs.replace(tools[index], **changes)
        self.rows[row] = msgspec.structs.replace(turn, tools=tuple(tools))


def shorten(text: str, *, head: int = HEAD_CHARS, tail: int = TAIL_CHARS) -> ShortText:
    if len(text) <= head + tail:
        return ShortText(text)
    return ShortText(text[:head], len(text) - head - tail, text[-tail:])


def arguments_text(arguments: str) -> str:
    """The arguments of a call as people read them: a line for each, and texts as they are."""
    try:
        values: Json = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if not isinstance(values, Mapping):
        return arguments
    items = cast("Mapping[str, Json]", values).items()
    return "\n".join(f"{name}: {_value_text(value)}" for name, value in items)


def _value_text(value: Json) -> str:
    if isinstance(value, str):
        return f"\n{value}" if "\n" in value else value
    return msgspec.json.encode(value).decode()
