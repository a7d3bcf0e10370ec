"""The refusal of a call whose session is not known, with a call for each that may be meant."""

from collections.abc import Mapping
from typing import Any

import msgspec

from interlock.app.callers.caller import NO_SESSION, Caller, CallerUnknown, session_meant
from interlock.app.context import App
from interlock.app.refusals import NoSuchSession, SeveralSessions
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.mcp.arguments import WORKSPACE_PLACEHOLDER
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.tool import Tool


def refuse_unknown_caller(
    app: App,
    caller: Caller,
    refusal: CallerUnknown,
    tool: Tool[Any],
    sent_arguments: Mapping[str, Json],
    *,
    begins_session: bool = False,
) -> ToolResult:
    """`begins_session`: the tool creates a session for a caller that has none."""
    other_arguments = {
        name: value for name, value in sent_arguments.items() if name not in _SESSION_ARGUMENTS
    }
    likely = refusal.explain().did_you_mean
    calls = tuple(
        tool.corrected_call({**other_arguments, "sessionId": session}) for session in likely
    )
    match refusal:
        case SeveralSessions():
            correct_call = None  # none of them is more likely than the others
        case NoSuchSession() if refusal == NO_SESSION:
            correct_call = call_to_begin(sent_arguments)
        case NoSuchSession() if calls:
            correct_call = calls[0]
        case NoSuchSession() if refusal.variable:
            correct_call = None  # the same call would read the same variable again
        case NoSuchSession(requested=""):
            correct_call = call_to_begin()
        case _ if not begins_session and _has_no_session(app, caller):
            correct_call = call_to_begin(sent_arguments)
        case _:
            correct_call = tool.corrected_call(other_arguments)
    return refusal_result(refusal.explain(), correct_call, next_calls=calls)


def _has_no_session(app: App, caller: Caller) -> bool:
    unnamed = msgspec.structs.replace(caller, session=None, token=None)
    return session_meant(app, unnamed) == NO_SESSION


def call_to_begin(sent_arguments: Mapping[str, Json] | None = None) -> SuggestedCall:
    """Return the call that creates a session if there is none, or if it has ended."""
    sent = (sent_arguments or {}).items()
    where = {name: value for name, value in sent if name == "workspacePath"}
    return SuggestedCall("session", {"action": "start", **where})


_SESSION_ARGUMENTS = ("sessionId", "continueToken")


_NAMING_ARGUMENTS = ("workspace_path", "session_id", "run_id", "continue_token")
"""Arguments that each name a project."""


def needs_workspace(arguments: msgspec.Struct) -> bool:
    """Whether a call is about a project that nothing in it names."""
    fields = arguments.__struct_fields__
    is_named = any(getattr(arguments, name, None) for name in _NAMING_ARGUMENTS)
    return "workspace_path" in fields and not is_named


def refuse_without_workspace(tool: Tool[Any], arguments: msgspec.Struct) -> ToolResult:
    sent = {
        name: value for name, value in msgspec.to_builtins(arguments).items() if value is not None
    }
    explanation = Explanation(
        "invalid_arguments",
        "This server was not started in a project, so it does not know the project",
        "Name the project's directory in `workspacePath`.",
    )
    call = tool.corrected_call({**sent, "workspacePath": WORKSPACE_PLACEHOLDER})
    return refusal_result(explanation, call, missing=("workspacePath",))
