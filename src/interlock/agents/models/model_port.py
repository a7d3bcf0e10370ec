"""The port to a model: one request, a stream of what it says, and exactly one answer at the end.

There are several behind it: the providers' (`providers`), and a scripted one that needs no network
(`scripted_model`). Cancelling the task that waits for the answer closes the connection.
"""

from collections.abc import Callable
from typing import Literal, Protocol

from interlock.core.unattended.conversation import ModelAnswer, ModelRequest

FailureKind = Literal[
    "rate_limited",
    "overloaded",
    "credentials",
    "bad_request",
    "context_too_long",
    "network",
    "timeout",
]
RETRIED: frozenset[FailureKind] = frozenset({"rate_limited", "overloaded", "network", "timeout"})


class ModelFailure(Exception):
    """The model gave no answer. The message says why, and never contains a secret."""

    def __init__(
        self, kind: FailureKind, message: str, *, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.retry_after_seconds = retry_after_seconds


CONTEXT_TOKENS = 128_000
"""The length of conversation that a model can read of which nothing is known."""


class ModelPort(Protocol):
    @property
    def context_tokens(self) -> int:
        """The tokens of a whole request and its answer."""
        ...

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Ask the model. `on_text` is told each piece of text as it comes, to show life.

        Raises:
            ModelFailure: there is no answer.
        """
        ...

    async def close(self) -> None: ...


class ModelUnavailable(Exception):
    """The model is unknown here. `hint` says what a person can do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint
