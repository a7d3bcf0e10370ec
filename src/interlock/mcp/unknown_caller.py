"""The refusal of a call whose session is not known, with a call for each that may be meant."""

from collections.abc import Mapping
from typing import Any

from interlock.app.callers.caller import CallerUnknown
from interlock.app.refusals import NoSuchSession, SeveralSessions
from interlock.core.canonical import Json
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.tool import Tool

SESSION_PLACEHOLDER = "<the session that is yours>"


def refuse_unknown_caller(
    refusal: CallerUnknown, tool: Tool[Any], sent_arguments: Mapping[str, Json]
) -> ToolResult:
    other_arguments = {
        name: value for name, value in sent_arguments.items() if name not in _SESSION_ARGUMENTS
    }
    likely = refusal.explain().did_you_mean
    calls = tuple(
        tool.corrected_call({**other_arguments, "sessionId": session}) for session in likely
    )
    match refusal:
        case SeveralSessions():
            # None of them is more likely than the others, so none is put forward.
            correct_call = tool.corrected_call(
                {**other_arguments, "sessionId": SESSION_PLACEHOLDER}
            )
        case NoSuchSession() if calls:
            correct_call = calls[0]
        case NoSuchSession() if refusal.variable:
            correct_call = None  # the same call would read the same variable again
        case NoSuchSession(requested=""):
            correct_call = SuggestedCall("session", {"action": "start"})
        case _:
            correct_call = tool.corrected_call(other_arguments)
    return refusal_result(refusal.explain(), correct_call, next_calls=calls)


_SESSION_ARGUMENTS = ("sessionId", "continueToken")
