"""Ask a model again when its provider could not answer: wait longer each time, and not for ever.

`wait_before_retry` decides and is pure; `answer_with_retries` asks, tells and sleeps.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import msgspec

from interlock.agents.models.model_port import RETRIED, ModelFailure, ModelPort
from interlock.core.unattended.conversation import ModelAnswer, ModelRequest


class RetryPolicy(msgspec.Struct, frozen=True):
    first_seconds: float = 1
    """The longest that the first wait can be; it doubles with each."""
    longest_seconds: float = 60
    total_seconds: float = 600
    """From the first question to the beginning of the last."""
    timeouts_retried: int = 1
    """A model that says nothing has used up minutes, and is paid for, each time."""


class ModelPause:
    """Until when nobody asks a model: its provider has told one of its sessions to wait.

    All sessions with one model share one. Other models of the provider have limits of their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = 0.0
        self.reason: ModelFailure | None = None

    def extend(self, failure: ModelFailure) -> None:
        """Make all wait as long as the provider has asked for; never shorter than before."""
        if failure.kind not in RETRIED or not failure.retry_after_seconds:
            return
        end = self._clock() + failure.retry_after_seconds
        if end > self._end:
            self._end, self.reason = end, failure

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._end - self._clock())


OnWait = Callable[[ModelFailure, float], None]
"""Told the reason, and how long it will be."""


def wait_before_retry(
    policy: RetryPolicy,
    failure: ModelFailure,
    *,
    attempts: int,
    timeouts: int,
    elapsed_seconds: float,
    chance: float,
) -> float | None:
    """Return how many seconds to wait before the next attempt, or None if there is to be none.

    `attempts` and `timeouts` include the one that failed. `chance`, from 0 to 1, spreads those who
    failed together over the whole wait ("full jitter"); they wait so in addition to the time that
    the provider has asked for.
    """
    if failure.kind not in RETRIED:
        return None
    if failure.kind == "timeout" and timeouts > policy.timeouts_retried:
        return None
    longest = min(policy.longest_seconds, policy.first_seconds * 2 ** min(attempts - 1, 30))
    seconds = chance * longest + (failure.retry_after_seconds or 0)
    return seconds if elapsed_seconds + seconds <= policy.total_seconds else None


async def answer_with_retries(
    model: ModelPort,
    request: ModelRequest,
    on_text: Callable[[str], None],
    *,
    bucket: ModelPause,
    on_wait: OnWait,
    policy: RetryPolicy | None = None,
    chance: Callable[[], float] = random.random,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> ModelAnswer:
    """Ask until there is an answer, or no more hope of one. `on_wait` is told before each wait.

    After a wait `on_text` is told the text of the new answer, from its beginning.

    Raises:
        ModelFailure: the last one.
    """
    policy = policy or RetryPolicy()
    started = clock()
    attempts = timeouts = 0
    while True:
        while (pause := bucket.seconds_left) and bucket.reason:
            if clock() - started + pause > policy.total_seconds:
                raise bucket.reason
            pause += chance() * policy.first_seconds  # or all would come back at once
            on_wait(bucket.reason, pause)
            await sleep(pause)
        attempts += 1
        try:
            return await model.answer(request, on_text)
        except ModelFailure as failure:
            timeouts += failure.kind == "timeout"
            bucket.extend(failure)
            wait = wait_before_retry(
                policy,
                failure,
                attempts=attempts,
                timeouts=timeouts,
                elapsed_seconds=clock() - started,
                chance=chance(),
            )
            if wait is None:
                raise
            on_wait(failure, wait)
        await sleep(wait)
