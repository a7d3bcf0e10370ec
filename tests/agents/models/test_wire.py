"""The providers' models over the wire, against a fake of each interface on loopback."""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest

from interlock.agents.models.credentials import Credentials
from interlock.agents.models.providers import open_model
from interlock.core.unattended.conversation import (
    Message,
    ModelMessage,
    SpokenPart,
    StopReason,
    ThinkingPart,
    ToolMessage,
    ToolReply,
    ToolRequest,
    Usage,
    UserMessage,
)
from tests.agents.models.fake_provider import FakeProvider, Reply, anthropic_stream, openai_stream
from tests.agents.models.wires import (
    ANTHROPIC,
    ASKED,
    CALLED,
    CALLS,
    KEY,
    OPENAI,
    Wire,
    ask,
    opened,
)

pytestmark = pytest.mark.anyio


async def test_text_is_told_as_it_comes_and_the_whole_answer_at_the_end(
    wire: Wire, provider: FakeProvider
) -> None:
    stream = wire.stream(
        texts=["I look", " at it."],
        calls=CALLS,
        thought=("Hm.", wire.proof),
        usage=wire.usage,
        stop=wire.tools_stop,
    )
    provider.replies = [Reply(stream)]
    told: list[str] = []
    async with opened(wire, provider) as port:
        answer = await ask(port, on_text=told.append)

    signature = wire.proof if wire is ANTHROPIC else f"{wire.proof}:"
    thought = ThinkingPart("Hm.", signature)
    assert told == ["I look", " at it."]
    assert answer.message.parts == (thought, SpokenPart("I look at it."), *CALLED)
    assert (answer.stop, answer.usage) == ("tools", wire.counted)
    [request] = provider.requests
    assert KEY in request.headers.get("authorization", request.headers.get("x-api-key", ""))


async def test_an_answer_says_why_it_ended(wire: Wire, provider: FakeProvider) -> None:
    endings: dict[str, list[tuple[str, StopReason]]] = {
        "anthropic": [
            ("end_turn", "end"),
            ("max_tokens", "length"),
            ("refusal", "refusal"),
            ("pause_turn", "other"),
        ],
        "openai": [("stop", "end"), ("length", "length"), ("content_filter", "refusal")],
    }
    async with opened(wire, provider) as port:
        for theirs, ours in endings[wire.provider]:
            provider.replies = [Reply(wire.stream(texts=["So."], stop=theirs))]
            assert (await ask(port)).stop == ours
        # Calls are calls, whatever the endpoint says of them. An empty answer is one; blank text,
        # which is refused when it is sent back, is no part of it.
        for texts, calls, stop in (
            ([], CALLS, "tools"),
            ([], (), "end"),
            (["\n", "\n"], (), "end"),
        ):
            provider.replies = [Reply(wire.stream(texts=texts, calls=calls))]
            answer = await ask(port)
            assert (len(answer.message.parts), answer.stop) == (len(calls), stop)


async def test_a_model_without_a_known_price_has_no_cost(
    wire: Wire, provider: FakeProvider
) -> None:
    stream = wire.stream(texts=["So."]).replace(wire.model.encode(), b"house-model")
    provider.replies = [Reply(stream)]
    async with opened(wire, provider, model="house-model") as port:
        usage = (await ask(port)).usage

    assert usage == Usage(10, 1, cost_micros=None)


def messages_in(body: bytes) -> tuple[str, str]:
    """The bytes of the messages without their last bracket, and of everything else."""
    text = body.decode()
    start = text.index('"messages":') + len('"messages":')
    _, length = json.JSONDecoder().raw_decode(text[start:])
    return text[start : start + length - 1], text[:start] + text[start + length :]


async def test_each_turn_begins_with_the_bytes_of_the_turn_before(
    wire: Wire, provider: FakeProvider
) -> None:
    thoughts = (ThinkingPart("Hm.", "c2lnbmVk"), ThinkingPart("", "redacted_thinking:aGlkZGVu"))
    broken = ToolRequest("call_c", "Bash", '{"command": "ls')
    conversation: tuple[Message, ...] = (
        *ASKED,
        ModelMessage((*thoughts, SpokenPart("I look."), *CALLED)),
        ToolMessage((ToolReply("call_a", "Read", "x = 1\n"), ToolReply("call_b", "Bash", ""))),
        ModelMessage((broken,)),
        ToolMessage((ToolReply("call_c", "Bash", "This is no JSON.", is_error=True),)),
        UserMessage("Be quick."),
        ModelMessage((SpokenPart("Done."),)),
        UserMessage("Really?"),
    )
    for end in (1, 3, 5, 6, 8):
        provider.replies.append(Reply(wire.stream(texts=["So."])))
        async with opened(wire, provider) as port:  # each anew, as after a crash
            await ask(port, conversation[:end])

    parts = [messages_in(request.body) for request in provider.requests]
    assert len({rest for _, rest in parts}) == 1
    for (shorter, _), (longer, _) in pairwise(parts):
        assert longer.startswith(shorter)
    first, last = provider.requests[0].json, provider.requests[-1].json
    names = [tool.get("name") or tool["function"]["name"] for tool in first["tools"]]
    assert names == ["Read", "Bash"]
    if wire is ANTHROPIC:
        mark = {"type": "ephemeral", "ttl": "5m"}
        marked = (first, first["system"][-1], first["tools"][-1])
        assert [place.get("cache_control") for place in marked] == [mark] * 3
        assert last["messages"][1]["content"][:2] == [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "aGlkZGVu"},
        ]
        assert last["messages"][4]["content"][0]["is_error"] is True


async def test_thoughts_go_back_in_the_field_that_they_came_in(provider: FakeProvider) -> None:
    provider.replies = [Reply(openai_stream(thought=("Hm.", "reasoning_content"), calls=CALLS))]
    provider.replies += [Reply(openai_stream(texts=["So."]))]
    async with opened(OPENAI, provider) as port:
        answer = await ask(port)
        results = tuple(ToolReply(call.id, call.name, "") for call in CALLED)
        await ask(port, (*ASKED, answer.message, ToolMessage(results)))

    assert provider.requests[-1].json["messages"][2]["reasoning_content"] == "Hm."


@pytest.mark.parametrize(
    ("model", "limit"), [("gpt-5-mini", "max_completion_tokens"), ("llama3.1", "max_tokens")]
)
async def test_an_endpoint_of_ones_own_needs_no_key_and_is_given_the_limit_it_knows(
    provider: FakeProvider, model: str, limit: str
) -> None:
    provider.replies = [Reply(openai_stream(texts=["So."]))]
    url = provider.url + "/v1"
    port = open_model(f"openai:{model}", credentials=Credentials(), base_url=url)
    await ask(port)
    await port.close()

    assert provider.requests[0].json[limit] == 1000


PROGRAM = """
import asyncio, sys
reached = []
sys.addaudithook(lambda event, args: reached.append(args[1]) if event == "socket.connect" else None)
from interlock.agents.models.credentials import ApiKey, Credentials
from interlock.agents.models.providers import open_model
from interlock.core.unattended.conversation import ModelRequest, UserMessage
assert not {"pydantic_ai", "anthropic", "openai", "genai_prices"} & set(sys.modules)
port = open_model(sys.argv[1], credentials=Credentials({"anthropic": ApiKey("k")}),
                  base_url=sys.argv[2])
request = ModelRequest("m", "", (), (UserMessage("Hello"),), 100)
print(asyncio.run(port.answer(request, len)).usage.cost_micros)
print({address[0] for address in reached})
"""


def test_nothing_but_the_provider_is_reached_and_nothing_is_imported_too_early(
    provider: FakeProvider,
) -> None:
    provider.replies = [Reply(anthropic_stream(texts=["So."], usage={"input_tokens": 1000}))]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "anthropic:claude-opus-5", provider.url],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == ["5025", "{'127.0.0.1'}"], done.stderr


@pytest.mark.parametrize("name", ["ollama", "vllm"])
async def test_other_providers_are_opened_by_their_names(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of all that the extra brings, these take the address of a server that runs here."""
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    provider.replies.append(Reply(openai_stream(texts=["Hello"])))
    credentials = Credentials.from_environment(os.environ, name)

    port = open_model(f"{name}:some/model", credentials=credentials, base_url=f"{provider.url}/v1")
    try:
        answer = await ask(port)
    finally:
        await port.close()

    assert answer.message.text == "Hello"
    assert provider.requests[0].json["model"] == "some/model"
