"""What goes wrong on the wire of a provider, and what kind of failure that is."""

import asyncio
import json

import pytest

from interlock.agents.models.model_port import FailureKind
from tests.agents.models.fake_provider import FakeProvider, Reply, running_provider
from tests.agents.models.wires import ANTHROPIC, CALLS, KEY, Wire, ask, failure_of, opened

pytestmark = pytest.mark.anyio


def error(message: str, **more: str) -> bytes:
    return json.dumps({"type": "error", "error": {"message": message, **more}}).encode()


FAILURES: list[tuple[Reply, FailureKind, float | None]] = [
    (Reply(error("Slow down."), 429, {"retry-after": "7"}), "rate_limited", 7),
    (Reply(error("Slow down."), 429), "rate_limited", None),
    (Reply(error("Busy."), 529), "overloaded", None),
    (Reply(error("Busy."), 503, {"retry-after": "2"}), "overloaded", 2),
    (Reply(error("Oh."), 500), "overloaded", None),
    (Reply(b"<html>Bad gateway</html>", 502), "overloaded", None),
    (Reply(b"", 504), "overloaded", None),
    (Reply(error("Later."), 409), "overloaded", None),
    (Reply(error(f"{KEY} is not known."), 401), "credentials", None),
    (Reply(error(f"Not for {KEY}."), 403), "credentials", None),
    (Reply(error("Your credit balance is too low"), 402), "credentials", None),
    (Reply(error("No such model."), 404), "bad_request", None),
    (Reply(error(f"{KEY}: tools.0 is wrong"), 400), "bad_request", None),
    (Reply(error("prompt is too long: 200001 tokens"), 400), "context_too_long", None),
    (
        Reply(error("input length and `max_tokens` exceed context limit: 9 + 9"), 400),
        "context_too_long",
        None,
    ),
    (
        Reply(error("Too long.", code="context_length_exceeded"), 400),
        "context_too_long",
        None,
    ),
    (Reply(error("Too large."), 413), "context_too_long", None),
]


async def test_a_refusal_has_a_kind_and_is_asked_once_and_never_shows_the_key(
    wire: Wire, provider: FakeProvider
) -> None:
    async with opened(wire, provider) as port:
        for reply, kind, retry_after in FAILURES:
            if wire is ANTHROPIC and b"context_length_exceeded" in reply.body:
                continue  # a code of OpenAI's
            provider.requests.clear()
            provider.replies = [reply]
            failure = await failure_of(port)
            assert (failure.kind, failure.retry_after_seconds) == (kind, retry_after), reply
            assert KEY not in f"{failure} {failure!r} {failure.__cause__}"
            assert str(reply.status) in str(failure)
            assert len(provider.requests) == 1

        date = {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}
        provider.replies = [Reply(error("In a while."), 429, date)]
        assert ((await failure_of(port)).retry_after_seconds or 0) > 86_400


async def test_half_an_answer_is_none(wire: Wire, provider: FakeProvider) -> None:
    whole = wire.stream(texts=["I look."], calls=CALLS, stop=wire.tools_stop)
    overloaded = error("Busy.", type="overloaded_error" if wire is ANTHROPIC else "overloaded")
    cases: list[tuple[Reply, FailureKind]] = [
        (Reply(whole[: len(whole) // 2]), "network"),
        (Reply(whole[: len(whole) // 2], then="cut"), "network"),
        (Reply(b""), "network"),
        (Reply(b"<html>Welcome to the hotel</html>"), "network"),
        (Reply(b"data: 7\n\n"), "network"),
        (Reply(b'data: {"choices": 5}\n\n'), "network"),
        (Reply(whole[:300] + b'\n\nevent: ping\ndata: {"ty\n\n' + whole[300:]), "network"),
        (Reply(b"event: error\ndata: " + overloaded + b"\n\n"), "overloaded"),
    ]
    async with opened(wire, provider) as port:
        for reply, kind in cases:
            provider.replies = [reply]
            failure = await failure_of(port)
            assert failure.kind == kind, (reply, failure)


async def test_nobody_at_the_address_is_a_failure_of_the_network(wire: Wire) -> None:
    with running_provider() as provider:
        pass
    async with opened(wire, provider) as port:
        assert (await failure_of(port)).kind == "network"


async def test_a_model_that_says_nothing_times_out(wire: Wire, provider: FakeProvider) -> None:
    start = wire.stream(texts=["I look."])[:400]
    async with opened(wire, provider, call_seconds=0.5) as port:
        for body in (b"", start):
            provider.was_hung_up.clear()
            provider.replies = [Reply(body, then="hang")]
            assert (await failure_of(port)).kind == "timeout"
            assert await asyncio.to_thread(provider.was_hung_up.wait, 30)


@pytest.mark.slow
async def test_a_model_that_goes_on_speaking_may_take_longer(
    wire: Wire, provider: FakeProvider
) -> None:
    stream = wire.stream(texts=["word "] * 20)
    provider.replies = [Reply(stream, parts=6, pause_seconds=0.6)]
    async with opened(wire, provider, call_seconds=3) as port:
        assert (await ask(port)).message.text == "word " * 20


async def test_cancelling_closes_the_connection(wire: Wire, provider: FakeProvider) -> None:
    provider.replies = [Reply(wire.stream(texts=["I look."])[:600], then="hang")]
    speaks = asyncio.Event()
    async with opened(wire, provider) as port:
        waiting = asyncio.create_task(ask(port, on_text=lambda _: speaks.set()))
        await asyncio.wait_for(speaks.wait(), 30)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(provider.was_hung_up.wait, 30)
