"""What the tests of the wire share: the two wires, and a model that is opened on one of them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from interlock.agents.models.credentials import ApiKey, Credentials
from interlock.agents.models.model_port import ModelFailure, ModelPort
from interlock.agents.models.providers import open_model
from interlock.core.unattended.conversation import (
    Message,
    ModelAnswer,
    ModelRequest,
    ToolRequest,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests.agents.models.fake_provider import FakeProvider, anthropic_stream, openai_stream

KEY = "sk-test-0123456789abcdef"
CREDENTIALS = Credentials({"anthropic": ApiKey(KEY), "openai": ApiKey(KEY)})
TOOLS = tuple(
    ToolSpec(
        name,
        description,
        {
            "type": "object",
            "properties": {field: {"type": "string", "minLength": 1}},
            "additionalProperties": False,
        },
    )
    for name, description, field in (
        ("Read", "Read a file.", "path"),
        ("Bash", "Run a command.", "command"),
    )
)
ASKED = (UserMessage("Fix the test."),)
CALLS = (("call_a", "Read", '{"path": "a.py"}'), ("call_b", "Bash", '{"command": "ls"}'))
CALLED = tuple(ToolRequest(*call) for call in CALLS)


class Wire(msgspec.Struct, frozen=True):
    """How one provider says what all say."""

    provider: str
    model: str
    stream: Callable[..., bytes]
    tools_stop: str
    proof: str
    """What comes with thoughts: a signature, or the name of the field that they are in."""
    usage: dict[str, object]
    counted: Usage
    path: str = ""


ANTHROPIC = Wire(
    "anthropic",
    "claude-opus-5",
    anthropic_stream,
    "tool_use",
    "c2lnbmVk",
    {
        "input_tokens": 1000,
        "cache_read_input_tokens": 2000,
        "cache_creation_input_tokens": 500,
        "output_tokens": 100,
    },
    Usage(3500, 100, 2000, 500, 1000 * 5 + 2000 // 2 + 500 * 25 // 4 + 100 * 25),
)
OPENAI = Wire(
    "openai",
    "gpt-5-mini",
    openai_stream,
    "tool_calls",
    "reasoning_content",
    {
        "prompt_tokens": 3000,
        "completion_tokens": 100,
        "total_tokens": 3100,
        "prompt_tokens_details": {"cached_tokens": 2000},
    },
    Usage(3000, 100, 2000, 0, 1000 // 4 + 2000 // 40 + 100 * 2),
    path="/v1",
)
WIRES = (ANTHROPIC, OPENAI)


@asynccontextmanager
async def opened(
    wire: Wire, provider: FakeProvider, *, model: str = "", call_seconds: float = 60
) -> AsyncGenerator[ModelPort]:
    port = open_model(
        f"{wire.provider}:{model or wire.model}",
        credentials=CREDENTIALS,
        base_url=provider.url + wire.path,
        call_seconds=call_seconds,
    )
    try:
        yield port
    finally:
        await port.close()


async def ask(
    port: ModelPort,
    messages: tuple[Message, ...] = ASKED,
    on_text: Callable[[str], None] = lambda _: None,
) -> ModelAnswer:
    return await port.answer(ModelRequest("m", "Be brief.", TOOLS, messages, 1000), on_text)


async def failure_of(port: ModelPort) -> ModelFailure:
    with pytest.raises(ModelFailure) as raised:
        await ask(port)
    return raised.value
