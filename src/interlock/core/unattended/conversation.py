"""The conversation of a model about one step: what it is told, what it answers, what tools return.

These types are neutral: no provider's names, no provider's order. They are written to the journal
as they are, so their tags never change.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from interlock.core.canonical import Json


class SpokenPart(msgspec.Struct, frozen=True, tag_field="part", tag="text"):
    text: str


class ThinkingPart(msgspec.Struct, frozen=True, tag_field="part", tag="thinking"):
    """A provider wants its own thoughts back as they were, with its signature."""

    text: str
    signature: str = ""


class ToolRequest(msgspec.Struct, frozen=True, tag_field="part", tag="tool_call"):
    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON, or what it took for JSON."""


AnswerPart: TypeAlias = SpokenPart | ThinkingPart | ToolRequest
StopReason = Literal["end", "tools", "length", "refusal", "other"]


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens of one call, or the sum over several."""

    input: int = 0
    """All that was sent, whether it was in the provider's cache or not."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_micros: int | None = 0
    """Millionths of a dollar; None if no price is known for one of the calls."""
    is_estimated: bool = False
    """A call whose answer never came is in it by estimate."""

    @property
    def tokens(self) -> int:
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        costs = (self.cost_micros, other.cost_micros)
        known = [cost for cost in costs if cost is not None]
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            sum(known) if len(known) == len(costs) else None,
            self.is_estimated or other.is_estimated,
        )


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    text: str


class ModelMessage(msgspec.Struct, frozen=True, tag_field="role", tag="model"):
    parts: tuple[AnswerPart, ...]

    @property
    def calls(self) -> tuple[ToolRequest, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolRequest))

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, SpokenPart))


class ToolReply(msgspec.Struct, frozen=True, omit_defaults=True):
    call: str
    """The id of the call."""
    name: str
    text: str
    is_error: bool = False


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tools"):
    """The results of all calls of the message before, in their order."""

    results: tuple[ToolReply, ...]


Message: TypeAlias = UserMessage | ModelMessage | ToolMessage


class ToolSpec(msgspec.Struct, frozen=True):
    name: str
    description: str
    schema: Mapping[str, Json]
    """JSON Schema of the arguments, an object."""


class ModelRequest(msgspec.Struct, frozen=True):
    """One question to a model. What comes first in it stays the same from turn to turn, byte for
    byte, so that a provider's cache can be used: system, tools, then messages that only grow.
    """

    model: str
    system: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    output_tokens_max: int


class ModelAnswer(msgspec.Struct, frozen=True):
    message: ModelMessage
    stop: StopReason
    usage: Usage
