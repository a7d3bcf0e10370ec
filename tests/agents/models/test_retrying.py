"""Asking again: when, how often, and who else has to wait. No test sleeps."""

import asyncio
from collections.abc import Callable

import pytest

from interlock.agents.models.model_port import FailureKind, ModelFailure
from interlock.agents.models.retrying import (
    ModelPause,
    RetryPolicy,
    answer_with_retries,
    wait_before_retry,
)
from interlock.core.unattended.conversation import (
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    SpokenPart,
    Usage,
)

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest("scripted:x", "", (), (), 100)
ANSWER = ModelAnswer(ModelMessage((SpokenPart("Here."),)), "end", Usage())


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class FailingModel:
    """Fails as it is told, then answers; a call takes `call_seconds`."""

    context_tokens = 1_000

    def __init__(
        self, clock: Clock, failures: list[ModelFailure], *, call_seconds: float = 0
    ) -> None:
        self.clock, self.failures, self.call_seconds = clock, failures, call_seconds
        self.asked_at: list[float] = []

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        assert request == REQUEST
        self.asked_at.append(self.clock())
        self.clock.now += self.call_seconds
        if self.failures:
            raise self.failures.pop(0)
        on_text("Here.")
        return ANSWER

    async def close(self) -> None: ...


class Desk:
    """Asks with a clock of its own, and keeps what it is told."""

    def __init__(self, clock: Clock, chance: float = 1.0) -> None:
        self.clock, self.chance = clock, chance
        self.bucket = ModelPause(clock)
        self.waits: list[tuple[FailureKind, float]] = []

    async def ask(self, model: FailingModel) -> ModelAnswer:
        return await answer_with_retries(
            model,
            REQUEST,
            lambda _: None,
            bucket=self.bucket,
            on_wait=lambda failure, seconds: self.waits.append((failure.kind, seconds)),
            chance=lambda: self.chance,
            sleep=self.clock.sleep,
            clock=self.clock,
        )


def test_the_wait_grows_to_its_longest_and_keeps_what_the_provider_asked_for() -> None:
    cases: list[tuple[FailureKind, float | None, int, int, float, float, float | None]] = [
        # kind, retry-after, attempts, timeouts, elapsed, chance -> seconds
        ("overloaded", None, 1, 0, 0, 1.0, 1),
        ("overloaded", None, 1, 0, 0, 0.0, 0),
        ("overloaded", None, 4, 0, 20, 0.5, 4),
        ("network", None, 7, 0, 20, 1.0, 60),
        ("network", None, 5000, 0, 20, 1.0, 60),
        ("rate_limited", 7, 1, 0, 0, 0.0, 7),
        ("rate_limited", 7, 3, 0, 0, 0.5, 9),
        ("rate_limited", 599, 1, 0, 0, 1.0, 600),
        ("rate_limited", 601, 1, 0, 0, 0.0, None),
        ("overloaded", None, 9, 0, 590, 1.0, None),
        ("overloaded", None, 9, 0, 590, 0.1, 6),
        ("timeout", None, 1, 1, 120, 1.0, 1),
        ("timeout", None, 2, 2, 240, 1.0, None),
        ("overloaded", None, 2, 1, 240, 1.0, 2),
        ("credentials", None, 1, 0, 0, 1.0, None),
        ("bad_request", None, 1, 0, 0, 1.0, None),
        ("context_too_long", None, 1, 0, 0, 1.0, None),
    ]
    for kind, retry_after, attempts, timeouts, elapsed, chance, seconds in cases:
        failure = ModelFailure(kind, "why", retry_after_seconds=retry_after)
        assert (
            wait_before_retry(
                RetryPolicy(),
                failure,
                attempts=attempts,
                timeouts=timeouts,
                elapsed_seconds=elapsed,
                chance=chance,
            )
            == seconds
        ), (kind, attempts)


async def test_an_overloaded_provider_is_asked_again_and_each_wait_is_told() -> None:
    clock = Clock()
    desk = Desk(clock)
    model = FailingModel(clock, [ModelFailure("overloaded", "529")] * 5)

    assert await desk.ask(model) == ANSWER
    assert desk.waits == [("overloaded", 2.0**n) for n in range(5)]
    assert [at - 1000 for at in model.asked_at] == [0, 1, 3, 7, 15, 31]


@pytest.mark.parametrize(
    ("kind", "call_seconds", "calls", "seconds_max"),
    [
        pytest.param("overloaded", 0, 15, 600, id="after ten minutes"),
        pytest.param("timeout", 120, 2, 300, id="after one more timeout"),
        pytest.param("credentials", 0, 1, 0, id="at once"),
    ],
)
async def test_the_last_failure_is_raised_when_there_is_no_more_hope(
    kind: FailureKind, call_seconds: float, calls: int, seconds_max: float
) -> None:
    clock = Clock()
    failures = [ModelFailure(kind, f"call {n}") for n in range(1, 30)]
    model = FailingModel(clock, failures, call_seconds=call_seconds)

    with pytest.raises(ModelFailure, match=f"call {calls}$"):
        await Desk(clock).ask(model)
    assert len(model.asked_at) == calls
    assert clock() - 1000 <= seconds_max


async def test_one_that_is_told_to_wait_makes_all_of_its_provider_wait() -> None:
    clock = Clock()
    desk = Desk(clock, chance=0.5)
    limited = FailingModel(clock, [ModelFailure("rate_limited", "429", retry_after_seconds=7)])
    other = FailingModel(clock, [])

    first = asyncio.create_task(desk.ask(limited))
    await asyncio.sleep(0)
    assert len(limited.asked_at) == 1
    await asyncio.gather(first, desk.ask(other))

    assert min(*limited.asked_at[1:], *other.asked_at) >= 1007
    assert desk.waits[0] == ("rate_limited", 7.5)


async def test_a_pause_that_is_longer_than_anybody_waits_is_raised_to_those_who_come() -> None:
    clock = Clock()
    desk = Desk(clock)
    told = ModelFailure("rate_limited", "in an hour", retry_after_seconds=3600)
    other = FailingModel(clock, [])

    with pytest.raises(ModelFailure, match="in an hour"):
        await desk.ask(FailingModel(clock, [told]))
    with pytest.raises(ModelFailure, match="in an hour"):
        await desk.ask(other)
    clock.now += 3600
    assert await desk.ask(other) == ANSWER
    assert desk.waits == []
