"""A model that plays a script, for demos and tests. It needs no network and no other package.

A script is a JSON file. It has steps, as a conversation is about one step of a workflow:

    {"steps": [
        {"when": "Fix the test", "turns": [
            {"text": "I look.", "calls": [{"name": "Read", "arguments": {"path": "a.py"}}]},
            {"calls": [{"name": "complete_step", "arguments": {"notes": "It was a typo."}}],
             "faults": [{"fail": "overloaded", "times": 2, "retryAfter": 1}]}
        ]},
        {"when": ["child", "of session 7"], "turns": [...], "repeatLast": true}
    ]}

when        A text, or several, that all occur in the first message of the conversation. The first
            step for which that is so is played, so one script serves the steps of a workflow,
            several sessions, and the children that they start. Nothing given: it fits all.
turns       Which one is played is the number of answers that the request already has. A model is
            asked for more than there are: a failure (`bad_request`), unless `repeatLast`.

Beside `steps`, `charsMax` is the length of the longest request; a longer one is refused.

A turn has `text`, `calls`, both or neither, and
arguments   of a call: an object, or a text that is given as it is, to be malformed
thinking    shown before the text
stop        `tools` if there are calls, else `end`, unless it is said
usage       `input`, `output`, `cacheRead`, `cacheWrite`, `costMicros`; else counted from the texts
faults      tried in order before the answer: each `fail`s (a kind of `ModelFailure`) so many
            `times`, 1 if not said, perhaps with `retryAfter` seconds
delaySeconds  before the answer, in pieces between its lines
hang        true: nothing ever comes

Nothing is remembered between calls, so a request that is repeated gets the same answer, after
`kill -9` and in another process too. Every call is one line of JSON in PATH.calls, written before
it is answered: `model`, `request` (its digest), `step` and `turn`. Faults are counted there by the
digest of the request.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.agents.models.model_port import (
    CONTEXT_TOKENS,
    FailureKind,
    ModelFailure,
    ModelUnavailable,
)
from interlock.core.canonical import Json, short_digest
from interlock.core.unattended.conversation import (
    AnswerPart,
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    SpokenPart,
    StopReason,
    ThinkingPart,
    ToolRequest,
    Usage,
    UserMessage,
)

TOKEN_CHARS = 4
"""How many characters a token has, about."""


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Json] | str = {}


class ScriptedFault(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    fail: FailureKind
    times: int = 1
    retry_after: float | None = None


class ScriptedUsage(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_micros: int | None = 0


class ScriptedTurn(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    thinking: str = ""
    stop: StopReason | None = None
    usage: ScriptedUsage | None = None
    faults: tuple[ScriptedFault, ...] = ()
    delay_seconds: float = 0
    hang: bool = False


class ScriptedStep(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    turns: tuple[ScriptedTurn, ...]
    when: str | tuple[str, ...] = ()
    repeat_last: bool = False

    def is_for(self, first_message: str) -> bool:
        texts = (self.when,) if isinstance(self.when, str) else self.when
        return all(text in first_message for text in texts)


class ModelScript(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    steps: tuple[ScriptedStep, ...]
    chars_max: int | None = None


class CallRecord(msgspec.Struct, frozen=True):
    """A line of PATH.calls."""

    model: str
    request: str
    step: int
    turn: int


class ScriptedModel:
    context_tokens = CONTEXT_TOKENS

    def __init__(self, path: Path, *, call_seconds: float) -> None:
        """Read the script.

        Raises:
            ModelUnavailable: it cannot be read, or is not one, or its calls cannot be recorded.
        """
        self._calls = path.with_name(f"{path.name}.calls")
        self._call_seconds = call_seconds
        try:
            self._script = msgspec.json.decode(path.read_bytes(), type=ModelScript)
            self._record(b"")
        except (OSError, msgspec.DecodeError) as error:
            raise ModelUnavailable(
                f"The scripted model cannot play {path}: {error}",
                "What a script looks like is said in interlock.agents.models.scripted_model.",
            ) from error

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        step, number = self._place(request)
        record = CallRecord(request.model, short_digest(request), step, number)
        self._record(msgspec.json.encode(record) + b"\n")
        chars, chars_max = len(msgspec.json.encode(request)), self._script.chars_max
        if chars_max is not None and chars > chars_max:
            raise ModelFailure("context_too_long", f"scripted: {chars} > {chars_max} characters.")
        turn = self._turn(step, number)
        if turn.faults:
            _fail_if_due(turn.faults, self._number_of_calls(record))
        try:
            async with asyncio.timeout(self._call_seconds):
                await _play(turn, on_text)
        except TimeoutError:
            raise ModelFailure(
                "timeout", f"scripted: nothing came for {self._call_seconds:g} seconds."
            ) from None
        return _answer(turn, number, request)

    async def close(self) -> None: ...

    def _place(self, request: ModelRequest) -> tuple[int, int]:
        """The numbers of the step and of the turn. Only the request decides."""
        first = next((m.text for m in request.messages if isinstance(m, UserMessage)), "")
        number = sum(isinstance(message, ModelMessage) for message in request.messages)
        for index, step in enumerate(self._script.steps):
            if step.is_for(first):
                return index, number
        raise ModelFailure("bad_request", f"scripted: no step is for {first[:200]!r}.")

    def _turn(self, step: int, number: int) -> ScriptedTurn:
        scripted = self._script.steps[step]
        if number < len(scripted.turns):
            return scripted.turns[number]
        if scripted.repeat_last and scripted.turns:
            return scripted.turns[-1]
        raise ModelFailure("bad_request", f"scripted: step {step} has no turn {number}.")

    def _record(self, line: bytes) -> None:
        """Add to the calls. One write at the end of the file: other processes do so, too."""
        descriptor = os.open(self._calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def _number_of_calls(self, record: CallRecord) -> int:
        """How often this has been asked, this time included."""
        lines = self._calls.read_bytes().splitlines()
        return sum(msgspec.json.decode(line, type=CallRecord) == record for line in lines)


def _fail_if_due(faults: tuple[ScriptedFault, ...], calls: int) -> None:
    past = 0
    for fault in faults:
        past += fault.times
        if calls <= past:
            raise ModelFailure(
                fault.fail,
                f"scripted: {fault.fail} on call {calls}.",
                retry_after_seconds=fault.retry_after,
            )


async def _play(turn: ScriptedTurn, on_text: Callable[[str], None]) -> None:
    if turn.hang:
        await asyncio.Event().wait()
    pieces = turn.text.splitlines(keepends=True) or [""]
    for piece in pieces:
        await asyncio.sleep(turn.delay_seconds / len(pieces))
        if piece:
            on_text(piece)


def _answer(turn: ScriptedTurn, number: int, request: ModelRequest) -> ModelAnswer:
    parts: list[AnswerPart] = []
    if turn.thinking:
        parts.append(ThinkingPart(turn.thinking))
    if turn.text:
        parts.append(SpokenPart(turn.text))
    parts += [
        ToolRequest(f"call_{number}_{index}", call.name, _arguments(call))
        for index, call in enumerate(turn.calls)
    ]
    message = ModelMessage(tuple(parts))
    stop = turn.stop or ("tools" if turn.calls else "end")
    return ModelAnswer(message, stop, _usage(turn, message, request))


def _arguments(call: ScriptedCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return msgspec.json.encode(call.arguments).decode()


def _usage(turn: ScriptedTurn, message: ModelMessage, request: ModelRequest) -> Usage:
    if usage := turn.usage:
        return Usage(
            usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cost_micros
        )
    return Usage(
        len(msgspec.json.encode(request)) // TOKEN_CHARS,
        len(msgspec.json.encode(message)) // TOKEN_CHARS,
    )
