"""A model of a provider, over its HTTP interface.

Of the library only the single call is used: the loop, the retries and the records are ours. The
same conversation always gives the same bytes on the wire: nothing in them depends on time, chance
or what was asked before.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from genai_prices.data_snapshot import get_snapshot
from pydantic_ai import direct
from pydantic_ai import messages as library
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
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.tools import ToolDefinition

from interlock.agents.models.credentials import NO_KEY_VALUE, ApiKey, key_variable
from interlock.agents.models.model_port import (
    CONTEXT_TOKENS,
    FailureKind,
    ModelFailure,
    ModelUnavailable,
)
from interlock.core.unattended.conversation import (
    AnswerPart,
    Message,
    ModelAnswer,
    ModelMessage,
    ModelRequest,
    SpokenPart,
    StopReason,
    ThinkingPart,
    ToolMessage,
    ToolRequest,
    Usage,
    UserMessage,
)

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
        match provider:
            case "anthropic":
                self._model = _messages_model(name, key, base_url)
            case "openai":
                self._model = _chat_model(name, key, base_url)
            case _:
                self._model = _other_model(provider, name, key, base_url)
        self.context_tokens = _context_tokens(provider, name)

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
        client = getattr(self._model, "client", None)
        if close := getattr(client, "close", None):
            await close()

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


def _other_model(provider: str, name: str, key: ApiKey, base_url: str) -> Model:
    """Return a model of any provider that the library knows by name.

    Raises:
        ModelUnavailable: it does not know it, or needs another package, key or address.
    """

    def make_provider(wanted: str) -> Provider[Any]:
        found = infer_provider_class(wanted)
        given = {"api_key": key.value, "base_url": base_url}
        accepted = inspect.signature(found).parameters
        if base_url and "base_url" not in accepted:
            raise UserError(f"`base_url` has no meaning for {wanted}; `openai:{name}` takes one")
        known = {
            field: value
            for field, value in given.items()
            if value and value != NO_KEY_VALUE and field in accepted
        }
        return found(**known)

    try:
        return infer_model(f"{provider}:{name}", make_provider)
    except ImportError as error:
        package = f"pydantic-ai-slim[{provider}]"
        raise ModelUnavailable(
            f"Models of {provider} need more packages: {error}",
            f"Install `{package}` beside Interlock, in the same environment.",
        ) from error
    except (UserError, ValueError) as error:
        raise ModelUnavailable(
            f"`{provider}:{name}` cannot be opened: {key.redact(str(error))}",
            f"Correct the name, or set {key_variable(provider)} where the driver is started.",
        ) from error


def _context_tokens(provider: str, name: str) -> int:
    """Return the length by the table of prices, which has it beside them."""
    try:
        model = get_snapshot().find_provider_model(name, None, provider, None)[1]
    except LookupError:
        return CONTEXT_TOKENS
    return model.context_window or CONTEXT_TOKENS


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
    where = f"`key_file` under `[driver]`, or {key_variable(provider)} without one"
    advice = f" Check the key ({where})." if kind == "credentials" else ""
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    return ModelFailure(kind, f"{provider}{status}: {said}{advice}", retry_after_seconds=wait)


def _kind(error: Exception, said: str) -> FailureKind:
    match error:
        case ModelRateLimitError():
            return "rate_limited"
        case ModelQuotaExceededError() if error.retry_after:
            return "rate_limited"  # the provider says when there is more
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


STOPS: dict[library.FinishReason, StopReason] = {
    "stop": "end",
    "tool_call": "tools",
    "length": "length",
    "content_filter": "refusal",
}


def library_parameters(request: ModelRequest) -> ModelRequestParameters:
    """Return the beginning of a request, which stays the same from turn to turn."""
    return ModelRequestParameters(
        function_tools=[
            # Not strict: OpenAI would otherwise want the schemas rewritten.
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.schema),
                strict=False,
            )
            for tool in request.tools
        ],
        instruction_parts=[library.InstructionPart(content=request.system)]
        if request.system
        else [],
    )


def library_messages(messages: Sequence[Message], provider: str) -> list[library.ModelMessage]:
    """Return the messages for the library. What only one provider understands goes to it alone."""
    return [_library_message(message, provider) for message in messages]


def _library_message(message: Message, provider: str) -> library.ModelMessage:
    match message:
        case UserMessage(text):
            return library.ModelRequest(parts=[library.UserPromptPart(content=text)])
        case ToolMessage(results):
            return library.ModelRequest(
                parts=[
                    library.ToolReturnPart(
                        tool_name=result.name,
                        content=result.text,
                        tool_call_id=result.call,
                        outcome="failed" if result.is_error else "success",
                    )
                    for result in results
                ]
            )
        case ModelMessage(parts):
            return library.ModelResponse(
                parts=[_library_part(part, provider) for part in parts], provider_name=provider
            )


def _library_part(part: AnswerPart, provider: str) -> library.ModelResponsePart:
    match part:
        case SpokenPart(text):
            return library.TextPart(content=text)
        case ThinkingPart(text, signature):
            # The library tells hidden thoughts, and the fields that others use, by an id.
            name, colon, proof = signature.rpartition(":")
            return library.ThinkingPart(
                content=text,
                id=name if colon else None,
                signature=proof or None,
                provider_name=provider,
            )
        case ToolRequest(id=call, name=name, arguments=arguments):
            return library.ToolCallPart(tool_name=name, args=arguments, tool_call_id=call)


def answer_from(response: library.ModelResponse) -> ModelAnswer:
    """Return our answer for a whole response of the library."""
    message = ModelMessage(tuple(_answer_parts(response.parts)))
    stop = STOPS.get(response.finish_reason, "other") if response.finish_reason else "other"
    if stop == "end" and message.calls:
        stop = "tools"  # some endpoints say `stop` to both
    return ModelAnswer(message, stop, _usage(response))


def _answer_parts(parts: Sequence[library.ModelResponsePart]) -> list[AnswerPart]:
    answers: list[AnswerPart] = []
    for part in parts:
        match part:
            # Blank text is refused by Anthropic when it is sent back.
            case library.TextPart(content=text) if text.strip():
                answers.append(SpokenPart(text))
            case library.ThinkingPart(content=text, id=name, signature=proof):
                signature = f"{name}:{proof or ''}" if name else proof or ""
                answers.append(ThinkingPart(text, signature))
            case library.ToolCallPart(tool_name=name, args=arguments, tool_call_id=call):
                raw = arguments if isinstance(arguments, str) else part.args_as_json_str()
                answers.append(ToolRequest(call, name, raw or "{}"))
            case _:
                pass  # blank text; what we never ask for, such as pictures
    return answers


def _usage(response: library.ModelResponse) -> Usage:
    usage = response.usage
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        _cost_micros(response),
    )


def _cost_micros(response: library.ModelResponse) -> int | None:
    """The price by the table that is installed. It is never fetched anew."""
    try:
        return round(response.cost().total_price * 1_000_000)
    except (LookupError, ValueError):
        return None  # no such model in the table, or it was not said how much was used
