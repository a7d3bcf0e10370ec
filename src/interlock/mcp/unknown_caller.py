"""A call whose session is not known: what is said, and a call for each that may be meant."""

from collections.abc import Mapping
from typing import Any

from interlock.app.callers.caller import CallerUnknown
from interlock.app.explain import explain
from interlock.app.refusals import NoSuchSession, SeveralSessions
from interlock.core.canonical import Json
from interlock.mcp.results import ToolResult, refusal_result
from interlock.mcp.tool import Tool

SESSION_PLACEHOLDER = "<the session that is yours>"


def refuse_unknown_caller(
    refusal: CallerUnknown, tool: Tool[Any], given: Mapping[str, Json]
) -> ToolResult:
    kept = {name: value for name, value in given.items() if name not in _SESSION_ARGUMENTS}
    likely = explain(refusal).did_you_mean
    calls = tuple(tool.corrected_call({**kept, "sessionId": session}) for session in likely)
    match refusal:
        case SeveralSessions():
            # None of them is more likely than the others, so none is put forward.
            correct = tool.corrected_call({**kept, "sessionId": SESSION_PLACEHOLDER})
        case NoSuchSession() if calls:
            correct = calls[0]
        case NoSuchSession() if refusal.variable:
            correct = None  # the same call would find the same variable
        case _:
            correct = tool.corrected_call(kept)
    return refusal_result(explain(refusal), correct, next_calls=calls)


_SESSION_ARGUMENTS = ("sessionId", "continueToken")
