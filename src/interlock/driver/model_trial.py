"""Try a model with one small request: whether it answers and calls tools, and what that costs."""

import time

import msgspec

from interlock.agents.models.model_port import ModelFailure, ModelUnavailable
from interlock.app.unattended.driver_settings import DriverSettings
from interlock.core.unattended.conversation import ModelRequest, ToolSpec, Usage, UserMessage
from interlock.driver.model_loop import ignore_text
from interlock.driver.model_shelf import ModelShelf

OUTPUT_TOKENS = 1_000  # some models think before they call a tool
_ECHO = ToolSpec(
    "echo",
    "Return a word.",
    {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    },
)
_REQUEST = UserMessage("Call the tool `echo` with the word `ready`. Say nothing else.")


class ModelTrial(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    model: str
    problem: str = ""
    """Why it cannot be used; empty if it answered."""
    hint: str = ""
    ms: int = 0
    calls_tools: bool = False
    usage: Usage = Usage()
    context_tokens: int = 0


async def try_model(settings: DriverSettings, name: str) -> ModelTrial:
    """Send one request to a model, which is opened as a driver opens it."""
    shelf = ModelShelf(settings)
    try:
        port = (await shelf.model(name)).port
        request = ModelRequest(name, "", (_ECHO,), (_REQUEST,), OUTPUT_TOKENS)
        started = time.monotonic()
        answer = await port.answer(request, ignore_text)
        return ModelTrial(
            model=name,
            ms=int((time.monotonic() - started) * 1_000),
            calls_tools=any(call.name == _ECHO.name for call in answer.message.calls),
            usage=settings.price(name, answer.usage),
            context_tokens=settings.context_tokens or port.context_tokens,
        )
    except ModelUnavailable as unavailable:
        return ModelTrial(name, str(unavailable), unavailable.hint)
    except ModelFailure as failure:
        return ModelTrial(name, str(failure))
    finally:
        await shelf.close()
