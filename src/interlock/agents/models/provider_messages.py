"""Conversations as the library of providers has them, and back.

The same conversation always gives the same bytes on the wire: nothing here depends on time, chance
or what was asked before.
"""

from collections.abc import Sequence

from pydantic_ai import messages as library
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

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
