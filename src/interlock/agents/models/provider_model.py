"""A model of a provider, over its HTTP interface.

Of the library only the single call is used: the loop, the retries and the records are ours.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

from pydantic_ai import direct
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
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import StreamedResponse

from interlock.agents.models.credentials import KEY_VARIABLES, ApiKey
from interlock.agents.models.model_port import FailureKind, ModelFailure
from interlock.agents.models.provider_messages import (
    answer_from,
    library_messages,
    library_parameters,
)
from interlock.core.unattended.conversation import ModelAnswer, ModelRequest

if TYPE_CHECKING:  # each takes more than a second, and one of them is enough
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel

OPENAI_FAMILIES = re.compile(r"(^|/)(gpt-[5-9]|o[1-9])")
"""They refuse `max_tokens`, which is the only name that many other endpoints know."""

Result = TypeVar("Result")


class ProviderModel:
    def __init__(
        self, provider: str, name: str, *, key: ApiKey, base_url: str, call_seconds: float
    ) -> None:
        self._provider = provider
        self._key = key
        self._call_seconds = call_seconds
        make_model = _messages_model if provider == "anthropic" else _chat_model
        self._model = make_model(name, key, base_url)

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Ask the model that was opened, whatever name the request has for it."""
        try:
            async with asyncio.timeout(self._call_seconds) as patience:
                response = await self._receive(request, on_text, patience)
        except TimeoutError:
            raise ModelFailure(
                "timeout", f"{self._provider}: nothing came for {self._call_seconds:g} seconds."
            ) from None
        return answer_from(response)

    async def close(self) -> None:
        await self._model.client.close()

    async def _receive(
        self, request: ModelRequest, on_text: Callable[[str], None], patience: asyncio.Timeout
    ) -> ModelResponse:
        clock = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            stream = await self._wait_for(stack.enter_async_context(self._stream(request)))
            events = aiter(stream)
            while event := await self._wait_for(anext(events, None)):
                patience.reschedule(clock.time() + self._call_seconds)
                match event:
                    case (
                        PartStartEvent(part=TextPart(content=text))
                        | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
                    ) if text:
                        on_text(text)
                    case _:
                        pass
            response = stream.get()
        # A reason that the library has no word for is in the details alone.
        if not (response.finish_reason or (response.provider_details or {}).get("finish_reason")):
            raise ModelFailure("network", f"{self._provider}: the answer broke off.")
        return response

    async def _wait_for(self, awaitable: Awaitable[Result]) -> Result:
        """Wait for the library alone. It meets much that is malformed as a `TypeError`."""
        try:
            return await awaitable
        except Exception as error:  # noqa: BLE001 (no error of a library leaves this package)
            raise failure_from(error, self._provider, self._key) from None

    def _stream(self, request: ModelRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        return direct.model_request_stream(
            self._model,
            library_messages(request.messages, self._model.system),
            model_settings={
                "max_tokens": request.output_tokens_max,
                "max_retries": 0,  # `retrying` does that, and tells
                "timeout": self._call_seconds,
            },
            model_request_parameters=library_parameters(request),
            instrument=False,
        )


def _messages_model(name: str, key: ApiKey, base_url: str) -> "AnthropicModel":
    from pydantic_ai.models import anthropic  # noqa: PLC0415 (see above)
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 (as above)

    # The provider itself moves the mark along the messages, so that their bytes stay as they are.
    settings = anthropic.AnthropicModelSettings(
        anthropic_cache=True,
        anthropic_cache_instructions=True,
        anthropic_cache_tool_definitions=True,
    )
    provider = AnthropicProvider(api_key=key.value, base_url=base_url or None)
    return anthropic.AnthropicModel(name, provider=provider, settings=settings)


def _chat_model(name: str, key: ApiKey, base_url: str) -> "OpenAIChatModel":
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 (see above)
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415 (as above)
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 (as above)
    from pydantic_ai.providers.openai_compatible import (  # noqa: PLC0415 (as above)
        OpenAICompatibleProvider,
    )

    # Without it, the half of an answer would be taken for one.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if not base_url:
        return OpenAIChatModel(name, provider=OpenAIProvider(api_key=key.value), profile=profile)
    if not OPENAI_FAMILIES.search(name):
        profile["openai_chat_supports_max_completion_tokens"] = False
    provider = OpenAICompatibleProvider(
        "openai-compatible", base_url=base_url, api_key=key.value, profile=profile
    )
    return OpenAIChatModel(name, provider=provider)


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
