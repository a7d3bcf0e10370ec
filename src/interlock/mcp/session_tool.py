"""The toolset `session`: what the agent may do here, and what the work is about."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock.app import attend
from interlock.app.bootstrap import bootstrap
from interlock.app.context import App
from interlock.app.explain import explain
from interlock.app.policy import remarks
from interlock.app.projects import root_of
from interlock.app.refusals import NoSuchSession, NotOptedIn
from interlock.core.gate.state import Mode
from interlock.core.session.attend import NotAllowed, Work
from interlock.core.session.events import Phase
from interlock.core.session.state import SessionState
from interlock.mcp.arguments import Workspace, workspace_of
from interlock.mcp.contract import Tool
from interlock.mcp.results import ToolResult, refused


class SessionArguments(msgspec.Struct, frozen=True, rename="camel"):
    action: Annotated[
        Literal["get", "start", "set"] | None,
        Meta(description="get (default): where the session stands. start: begin one. set: change."),
    ] = None
    mode: Annotated[
        Mode | None,
        Meta(description="analysis: read only. planning: reading commands too. coding: edits."),
    ] = None
    task: Annotated[str | None, Meta(description="What the work is about now.")] = None
    feature: Annotated[str | None, Meta(description="What the task is part of.")] = None
    phase: Annotated[Phase | None, Meta(description="How far the work is.")] = None
    session_id: Annotated[str | None, Meta(description="Which session, if several are open.")] = (
        None
    )
    workspace_path: Workspace = None


class SessionAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    session: str
    mode: Mode
    status: str
    summary: str
    feature: str = ""
    task: str = ""


def _session(app: App, arguments: SessionArguments) -> ToolResult:
    workspace = workspace_of(arguments.workspace_path)
    root = root_of(workspace)
    if root is None:
        return refused(explain(NotOptedIn(str(workspace))), None)
    changes = (arguments.mode, arguments.task, arguments.feature, arguments.phase)
    action = arguments.action or ("set" if any(x is not None for x in changes) else "get")
    if action == "start":
        return _answer(app, attend.begin(app, root, None).state)
    session = attend.current(app, root, arguments.session_id or _named(app))
    if isinstance(session, NoSuchSession):
        given = {"sessionId": session.candidates[0]} if session.candidates else {"action": "start"}
        return refused(explain(session), SESSION.corrected(given))
    found = attend.state_of(app, session)
    if action == "set":
        work = Work(arguments.feature, arguments.task, arguments.phase)
        found = attend.change_work(app, session, work)
        if arguments.mode and isinstance(found, SessionState):
            found = attend.change_mode(app, session, arguments.mode, by="agent")
    if isinstance(found, SessionState):
        return _answer(app, found)
    way_on = "get" if isinstance(found, NotAllowed) else "start"
    return refused(explain(found), SESSION.corrected({"action": way_on}))


def _named(app: App) -> str | None:
    return app.environment.get("INTERLOCK_SESSION")


def _answer(app: App, state: SessionState) -> ToolResult:
    said = remarks(app.home, Path(state.worktree), at_ms=app.clock.now_ms())
    summary = bootstrap(app.reader, state, said)
    answer = SessionAnswer(
        state.session_id,
        state.current_mode,
        state.status,
        summary,
        state.active_feature or "",
        state.active_task or "",
    )
    return ToolResult(answer, f"{summary}\nstatus: {state.status}")


SESSION = Tool(
    name="session",
    title="Session",
    purpose=(
        "Show where the session stands (mode, task, open runs), or change its mode, task, feature"
        " or phase. Call it when a tool call was denied because of the mode: with a task you can"
        " go to coding yourself where the project allows it; switching the gate off is the user's."
    ),
    arguments=SessionArguments,
    answer=SessionAnswer,
    is_read_only=False,
    call=_session,
)
