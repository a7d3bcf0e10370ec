"""Who calls a tool about others, and the refusal of what they want, with a call that leads on."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import NO_SESSION
from interlock.app.context import App
from interlock.app.coordination.participants import (
    Participant,
    find_participant,
    workspace_of_session,
)
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.app.refusals import NoSuchDirectory
from interlock.core.coordination.identities import NameRefused
from interlock.core.coordination.refusals import (
    IdentityLost,
    UnknownWork,
    WorkHeld,
    WorkNotFree,
)
from interlock.core.protocol.gated_session import ChangeNotAllowed
from interlock.core.refusal import Refusal
from interlock.mcp.arguments import workspace_of
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.session_tool import SESSION_TOOL, given_arguments
from interlock.mcp.tool import Tool
from interlock.mcp.unknown_caller import refuse_unknown_caller

WorkspacePath = Annotated[str | None, Meta(description="Default: here.")]
CallerSession = Annotated[str | None, Meta(description="Default: yours.")]


class ToolCaller(msgspec.Struct, frozen=True):
    desk: ProjectDesk
    who: Participant


def find_caller(
    app: App, tool: Tool[Any], arguments: msgspec.Struct, track: str | None = None
) -> ToolCaller | ToolResult:
    """Who calls, and the desk of the project; or a refusal."""
    sent = given_arguments(arguments)
    named: str | None = getattr(arguments, "workspace_path", None)
    workspace = workspace_of(named)
    if named and not workspace.is_dir():
        sent.pop("workspacePath", None)
        return refusal_result(NoSuchDirectory(named).explain(), tool.corrected_call(sent))
    session: str | None = getattr(arguments, "session_id", None)
    who = find_participant(app, workspace, session=session, track=track, is_server=True)
    own = find_participant(app, workspace, is_server=True) if session else who
    if (
        isinstance(who, Participant)
        and isinstance(own, Participant)
        and who.key not in (own.key, *app.coordination.own_sessions)
    ):
        refusal = ChangeNotAllowed(f"acting as session {who.key}", "it is another agent's")
        sent.pop("sessionId", None)
        return refusal_result(refusal.explain(), tool.corrected_call(sent))
    if isinstance(who, Participant):
        # The project is that of the session: over HTTP our own directory says nothing.
        place = workspace if named else workspace_of_session(app, who.key) or workspace
        return ToolCaller(open_desk(app, place), who)
    if isinstance(who, NameRefused):
        return refusal_result(who.explain(), None)
    if who == NO_SESSION:
        call = SESSION_TOOL.corrected_call({"action": "start"})
        return refusal_result(NO_SESSION.explain(), call)
    return refuse_unknown_caller(who, tool, sent)


def refuse_call(refusal: Refusal, tool: Tool[Any]) -> ToolResult:
    match refusal:
        case IdentityLost():
            call = SuggestedCall("preflight", {})
        case WorkHeld() | WorkNotFree() | UnknownWork():
            call = SuggestedCall("work_items", {"action": "ready"})
        case _:
            call = tool.example_call()
    return refusal_result(refusal.explain(), call)
