"""A call whose session is not known: what is said, and a call for each that may be meant."""

from collections.abc import Mapping
from typing import Any

from interlock.app.callers.caller import CallerUnknown
from interlock.app.explain import explain
from interlock.app.refusals import NoSuchSession, SeveralSessions
from interlock.core.canonical import Json
from interlock.mcp.results import ToolResult, refused
from interlock.mcp.tool import Tool

YOURS = "<the session that is yours>"


def unknown_caller(
    refusal: CallerUnknown, tool: Tool[Any], given: Mapping[str, Json]
) -> ToolResult:
    kept = {name: value for name, value in given.items() if name not in _SAYS_WHICH}
    likely = explain(refusal).did_you_mean
    calls = tuple(tool.corrected({**kept, "sessionId": session}) for session in likely)
    match refusal:
        case SeveralSessions():
            # None of them is more likely than the others, so none is put forward.
            correct = tool.corrected({**kept, "sessionId": YOURS})
        case NoSuchSession() if calls:
            correct = calls[0]
        case NoSuchSession() if refusal.variable:
            correct = None  # the same call would find the same variable
        case _:
            correct = tool.corrected(kept)
    return refused(explain(refusal), correct, next_calls=calls)


_SAYS_WHICH = ("sessionId", "continueToken")
