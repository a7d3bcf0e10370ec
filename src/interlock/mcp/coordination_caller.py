"""Who calls a tool about others, and the refusal of what they want, with a call that leads on."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import (
    NO_SESSION,
    Caller,
    refuse_acting_as,
    workspace_of_session,
)
from interlock.app.callers.session_record import StartedSession
from interlock.app.context import App
from interlock.app.coordination.participants import Participant, find_participant
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.app.protocol import gated_sessions
from interlock.app.refusals import NoSuchDirectory
from interlock.core.coordination.identities import NameRefused
from interlock.core.coordination.refusals import IdentityLost, UnknownWork, WorkHeld, WorkNotFree
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.session_tool import given_arguments
from interlock.mcp.tool import Tool
from interlock.mcp.unknown_caller import refuse_unknown_caller

WorkspacePath = Annotated[str | None, Meta(description="Default: here.")]
CallerSession = Annotated[str | None, Meta(description="Default: yours.")]


class ToolCaller(msgspec.Struct, frozen=True):
    desk: ProjectDesk
    who: Participant


def find_caller(
    app: App,
    caller: Caller,
    tool: Tool[Any],
    arguments: msgspec.Struct,
    track: str | None = None,
    *,
    begins_session: bool = False,
) -> ToolCaller | ToolResult:
    """Who calls, and the desk of the project; or a refusal.

    `begins_session`: whether a caller without a session gets one.
    """
    sent = given_arguments(arguments)
    named: str | None = getattr(arguments, "workspace_path", None)
    workspace = caller.workspace
    if named and not workspace.is_dir():
        sent.pop("workspacePath", None)
        return refusal_result(NoSuchDirectory(named).explain(), tool.corrected_call(sent))
    who = find_participant(app, caller, track=track)
    if begins_session and who == NO_SESSION:
        started = gated_sessions.start(app, caller)
        if isinstance(started, StartedSession):
            caller.connection.remember_work(started.session)
            who = find_participant(app, caller, track=track)
    if isinstance(who, Participant):
        if refusal := refuse_acting_as(app, caller, SessionId(who.key)):
            sent.pop("sessionId", None)
            return refusal_result(refusal.explain(), tool.corrected_call(sent))
        # The project is that of the session: over HTTP our own directory says nothing.
        place = workspace if named else workspace_of_session(app, who.key) or workspace
        return ToolCaller(open_desk(app, place), who)
    if isinstance(who, NameRefused):
        return refusal_result(who.explain(), None)
    return refuse_unknown_caller(app, caller, who, tool, sent)


def refuse_call(refusal: Refusal, tool: Tool[Any]) -> ToolResult:
    match refusal:
        case IdentityLost():
            call = SuggestedCall("preflight", {})
        case WorkHeld() | WorkNotFree() | UnknownWork():
            call = SuggestedCall("work_items", {"action": "ready"})
        case _:
            call = tool.example_call()
    return refusal_result(refusal.explain(), call)
