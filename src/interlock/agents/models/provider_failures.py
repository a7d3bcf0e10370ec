"""Why a provider gave no answer, in our words: the errors of its library, by kind."""

import re

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from interlock.agents.models.credentials import KEY_VARIABLES, ApiKey
from interlock.agents.models.model_port import FailureKind, ModelFailure

MESSAGE_CHARS = 500
TOO_LARGE = 413
PASSING = (408, 409, 425)
"""Statuses of requests that are right, and came at the wrong moment."""
CONTEXT_TOO_LONG = re.compile(
    r"prompt is too long|context[ _](length|window|size|limit)|too many (input )?tokens", re.I
)
"""How providers and gateways word it that have no code for it, or one that the library misses."""


def failure_from(error: Exception, provider: str, key: ApiKey) -> ModelFailure:
    """Return our failure for an error of the library. The key is not in its message."""
    said = key.redact(" ".join(_message(error).split()))[:MESSAGE_CHARS]
    status = f" ({error.status_code})" if isinstance(error, ModelHTTPError) else ""
    kind = _kind(error, said)
    advice = f" Check {KEY_VARIABLES[provider]}." if kind == "credentials" else ""
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    return ModelFailure(kind, f"{provider}{status}: {said}{advice}", retry_after_seconds=wait)


def _kind(error: Exception, said: str) -> FailureKind:
    match error:
        case ModelRateLimitError():
            return "rate_limited"
        case ModelAuthenticationError() | ModelQuotaExceededError():
            # Waiting does not help against an empty account: a person has to do something.
            return "credentials"
        case ModelContextWindowExceededError():
            return "context_too_long"
        case ModelUnavailableError() | ModelServerError():
            return "overloaded"
        case ModelTimeoutError() | ModelRequestTimeout():
            return "timeout"
        case ModelConnectionError():
            return "network"
        case ModelHTTPError() if error.status_code == TOO_LARGE:
            return "context_too_long"
        case ModelHTTPError() if error.status_code in PASSING:
            return "overloaded"
        case ModelRequestRejectedError() | ModelHTTPError() | UserError():
            return "context_too_long" if CONTEXT_TOO_LONG.search(said) else "bad_request"
        case _:
            return "network"  # a stream that cannot be read, or ends too early


def _message(error: Exception) -> str:
    """The provider's own words, if it sent any."""
    body: object = error.body if isinstance(error, ModelAPIError) else None
    match body:
        case {"error": {"message": str(message)}} | {"message": str(message)} if message:
            return message
        case {"error": str(message)} if message:
            return message
        case _ if isinstance(error, AgentRunError) and not isinstance(error, ModelHTTPError):
            return error.message
        case _:
            return str(error) or type(error).__name__
