"""Make room in a conversation that comes near the length its model can read.

It costs no call and is the same in each replay. The step, the results of the last turns and the
pairing of calls with results stay. Old results and arguments lose their middle first; then the
oldest turns go.
"""

import msgspec

from interlock.core.canonical import Json
from interlock.core.unattended.conversation import (
    AnswerPart,
    Message,
    ModelMessage,
    ToolMessage,
    ToolRequest,
    UserMessage,
)

TURNS_KEPT = 4
"""The last answers that stay, each with its results."""
TEXT_CHARS_KEPT = 400
_LEFT_OUT = "\n[{:,} characters were left out to make room. Look again if you need them.]\n"
_TURNS_LEFT_OUT = (
    "[Your first {} answers in this step were left out to make room. The files and the state of the"
    " repository have what you did: look there before you repeat something.]"
)


def conversation_chars(messages: tuple[Message, ...]) -> int:
    return len(msgspec.json.encode(messages))


def compact(messages: tuple[Message, ...], chars_max: int) -> tuple[Message, ...]:
    """Return the conversation in at most `chars_max`, or as short as it can be."""
    if conversation_chars(messages) <= chars_max:
        return messages
    first, turns = messages[0], _split_turns(messages[1:])
    old, kept = turns[:-TURNS_KEPT], turns[-TURNS_KEPT:]
    left_out = 0

    def is_too_long() -> bool:
        return conversation_chars(_join(first, left_out, old + kept)) > chars_max

    old = [[_shorten(message) for message in turn] for turn in old]
    if is_too_long():
        kept = [[_shorten_calls(message) for message in turn] for turn in kept]
    while old and is_too_long():
        old.pop(0)
        left_out += 1
    if is_too_long():
        kept = [[_shorten(message) for message in turn] for turn in kept[:-1]] + kept[-1:]
    return _join(first, left_out, old + kept)


def _split_turns(messages: tuple[Message, ...]) -> list[list[Message]]:
    """Each answer of the model with all that came after it."""
    turns: list[list[Message]] = []
    for message in messages:
        if isinstance(message, ModelMessage) or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _join(first: Message, left_out: int, turns: list[list[Message]]) -> tuple[Message, ...]:
    if left_out and isinstance(first, UserMessage):
        first = UserMessage(f"{first.text}\n\n{_TURNS_LEFT_OUT.format(left_out)}")
    return (first, *(message for turn in turns for message in turn))


def _shorten(message: Message) -> Message:
    if isinstance(message, ToolMessage):
        results = (msgspec.structs.replace(one, text=_cut(one.text)) for one in message.results)
        return ToolMessage(tuple(results))
    return _shorten_calls(message)


def _shorten_calls(message: Message) -> Message:
    if isinstance(message, ModelMessage):
        return ModelMessage(tuple(_shorten_part(part) for part in message.parts))
    return message


def _shorten_part(part: AnswerPart) -> AnswerPart:
    """Return a part with short arguments. A provider wants its thoughts back as they were."""
    if not isinstance(part, ToolRequest) or len(part.arguments) <= TEXT_CHARS_KEPT:
        return part
    try:
        values = msgspec.json.decode(part.arguments, type=dict[str, Json])
    except msgspec.MsgspecError:
        return msgspec.structs.replace(part, arguments="{}")
    short = {key: _cut(one) if isinstance(one, str) else one for key, one in values.items()}
    return msgspec.structs.replace(part, arguments=msgspec.json.encode(short).decode())


def _cut(text: str) -> str:
    left_out = len(text) - TEXT_CHARS_KEPT
    if left_out <= len(_LEFT_OUT):
        return text
    half = TEXT_CHARS_KEPT // 2
    return f"{text[:half]}{_LEFT_OUT.format(left_out)}{text[-half:]}"
