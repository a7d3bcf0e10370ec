"""The tools that look around and reserve paths."""

from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.callers.caller import Caller
from interlock.app.context import App
from interlock.app.coordination import holdings, preflight
from interlock.app.coordination.holdings import ReservedPaths, ReserveRequest
from interlock.app.coordination.preflight import PreflightRequest
from interlock.app.protocol.presence import end_departed_sessions
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.refusals import NothingReserved, PathsHeld, span_text
from interlock.core.coordination.report_boxes import report_lines
from interlock.mcp.coordination_caller import CallerSession, WorkspacePath, find_caller, refuse_call
from interlock.mcp.results import SuggestedCall, ToolResult, refusal_result
from interlock.mcp.session_tool import given_arguments
from interlock.mcp.tool import Tool


class PreflightArguments(msgspec.Struct, frozen=True, rename="camel"):
    track: Annotated[str | None, Meta(description="Your line of work.")] = None
    paths: Annotated[tuple[str, ...] | None, Meta(description="Paths you will edit.")] = None
    items: Annotated[tuple[str, ...] | None, Meta(description="Work items you will do.")] = None
    ignore: Annotated[tuple[str, ...] | None, Meta(description="Stale agents to ignore.")] = None
    session_id: CallerSession = None
    workspace_path: WorkspacePath = None


class ReserveArguments(msgspec.Struct, frozen=True, rename="camel"):
    paths: Annotated[
        tuple[str, ...],
        Meta(
            description="Files, directories, globs (`src/api/**`); `!…` excludes.",
            examples=[["<path or glob>"]],
        ),
    ]
    minutes: Annotated[
        Annotated[int, Meta(ge=1, le=1440)] | None, Meta(description="Default 60.")
    ] = None
    shared: Annotated[bool | None, Meta(description="Others may reserve them too.")] = None
    reason: str | None = None
    proceed: Annotated[
        bool | None, Meta(description="Reserve although others hold them; they are notified.")
    ] = None
    session_id: CallerSession = None
    workspace_path: WorkspacePath = None


class ReleaseArguments(msgspec.Struct, frozen=True, rename="camel"):
    paths: Annotated[tuple[str, ...] | None, Meta(description="Default: all.")] = None
    session_id: CallerSession = None
    workspace_path: WorkspacePath = None


class ReservationView(msgspec.Struct, frozen=True, rename="camel"):
    pattern: str
    seconds_left: int
    exclusive: bool


class HoldingsAnswer(msgspec.Struct, frozen=True, rename="camel"):
    identity: str
    reservations: tuple[ReservationView, ...]


def _call_preflight(app: App, caller: Caller, arguments: PreflightArguments) -> ToolResult:
    found = find_caller(app, caller, PREFLIGHT, arguments, arguments.track, begins_session=True)
    if isinstance(found, ToolResult):
        return found
    request = PreflightRequest(arguments.paths or (), arguments.items or (), arguments.ignore or ())
    end_departed_sessions(app)
    outcome = preflight.run_preflight(app, found.desk, found.who, request)
    if not isinstance(outcome, PreflightReport):
        return refusal_result(outcome.explain(), PREFLIGHT.example_call())
    return ToolResult(outcome, report_lines(outcome))


def _call_reserve(app: App, caller: Caller, arguments: ReserveArguments) -> ToolResult:
    found = find_caller(app, caller, RESERVE_PATHS, arguments)
    if isinstance(found, ToolResult):
        return found
    request = ReserveRequest(
        arguments.paths,
        arguments.minutes * 60_000 if arguments.minutes else None,
        is_shared=arguments.shared or False,
        reason=arguments.reason or "",
        proceeds=arguments.proceed or False,
    )
    outcome = holdings.reserve_paths(app, found.desk, found.who, request)
    if isinstance(outcome, ReservedPaths):
        return _holdings_result(outcome)
    sent = given_arguments(arguments)
    if isinstance(outcome, PathsHeld):
        if outcome.free:
            excluded = [path for path in arguments.paths if path.startswith("!")]
            call = RESERVE_PATHS.corrected_call({**sent, "paths": [*outcome.free, *excluded]})
            return refusal_result(outcome.explain(), call)
        holder = outcome.conflicts[0].holder
        subject = f"May I have {outcome.conflicts[0].requested}?"
        call = SuggestedCall("send_message", {"to": [holder], "subject": subject})
        return refusal_result(outcome.explain(), call)
    return refuse_call(outcome, RESERVE_PATHS)


def _call_release(app: App, caller: Caller, arguments: ReleaseArguments) -> ToolResult:
    found = find_caller(app, caller, RELEASE_PATHS, arguments)
    if isinstance(found, ToolResult):
        return found
    outcome = holdings.release_paths(app, found.desk, found.who, arguments.paths or ())
    if isinstance(outcome, ReservedPaths):
        return _holdings_result(outcome)
    if isinstance(outcome, NothingReserved):
        call = RELEASE_PATHS.corrected_call({"paths": list(outcome.own)}) if outcome.own else None
        return refusal_result(outcome.explain(), call)
    return refuse_call(outcome, RELEASE_PATHS)


def _holdings_result(held: ReservedPaths) -> ToolResult:
    views = tuple(
        ReservationView(one.pattern, (one.until_ms - held.now_ms) // 1_000, one.is_exclusive)
        for one in held.reservations
    )
    lines = [
        f"- {one.pattern}, for {span_text(one.until_ms - held.now_ms)}"
        f"{'' if one.is_exclusive else ', shared'}"
        for one in held.reservations
    ]
    text = "\n".join((f"You are {held.holder.id}. You hold:", *(lines or ["- nothing"])))
    return ToolResult(HoldingsAnswer(held.holder.id, views), text)


PREFLIGHT: Tool[PreflightArguments] = Tool(
    name="preflight",
    purpose=(
        "Check for conflicts before you start work: who works on this project, what they hold,"
        " and what is in your way. Registers you as an agent, in a new session if you have none;"
        " call it again after a takeover."
    ),
    arguments=PreflightArguments,
    cue="{paths?, items?}: conflicts, before you start",
    is_idempotent=True,
    call=_call_preflight,
    aliases={"files": "paths", "beads": "items", "workspace": "workspacePath"},
)


RESERVE_PATHS: Tool[ReserveArguments] = Tool(
    name="reserve_paths",
    purpose=(
        "Reserve paths before you edit them: other agents are warned. All are reserved, or none."
        " Repeat the call to renew."
    ),
    arguments=ReserveArguments,
    cue="{paths}: before you edit",
    is_idempotent=True,
    call=_call_reserve,
    aliases={"files": "paths", "patterns": "paths", "globs": "paths"},
)


RELEASE_PATHS: Tool[ReleaseArguments] = Tool(
    name="release_paths",
    purpose=("Release the paths that you reserved."),
    arguments=ReleaseArguments,
    cue="{paths?}: when done",
    is_idempotent=True,
    call=_call_release,
    aliases={"files": "paths", "patterns": "paths"},
)
