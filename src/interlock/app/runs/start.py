"""Start a run of a workflow, in a new session or in one that exists."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.app.append_loop import append_reply
from interlock.app.callers import request_key
from interlock.app.callers.caller import NO_SESSION, Caller, CallerUnknown, resolve_caller
from interlock.app.callers.request_key import UNNAMED_VALID_MS, RequestKey
from interlock.app.catalogue.workflow_files import find_workflow
from interlock.app.context import App
from interlock.app.refusals import (
    GoalMissing,
    NoSuchDirectory,
    NoSuchWorkflow,
    RequestReused,
    SeveralSessions,
)
from interlock.app.runs.advance import replay
from interlock.app.runs.finished_runs import offer_finished
from interlock.app.runs.start_preflight import (
    ConflictFound,
    Outlook,
    StartScope,
    TakeoverRefusal,
    look_before_start,
    register_after_start,
)
from interlock.app.sessions.workspace_snapshot import observe_workspace
from interlock.core import ids
from interlock.core.canonical import Json, NotCanonical
from interlock.core.ids import NodeId, SessionId, WorkflowId
from interlock.core.preferences import Preferences, Wish, apply_wish, apply_wish_where_stricter
from interlock.core.session import decide, start_run
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.decide import PlannedReply
from interlock.core.session.nodes import node_of
from interlock.core.session.plan import RequestRecord, Stream
from interlock.core.session.refusals import (
    ContextUnset,
    InputRefused,
    RunCannotBegin,
    RunRefusal,
    SessionUnattended,
)
from interlock.core.session.start_run import NewRun
from interlock.core.views.status import run_status
from interlock.core.workflow.compiled_workflow import PinnedWorkflow
from interlock.core.workflow.prompt import ResolvedReference
from interlock.store import queries
from interlock.store.records import EarlierRequest
from interlock.store.sql import Query
from interlock.workspace.projects.named_files import resolve_references
from interlock.workspace.projects.settings import preferences_in

_TOOL = "start_workflow"
GOAL_CHARS_MAX = 2_000  # it is a sentence; longer text belongs in the context


class StartRequest(msgspec.Struct, frozen=True):
    """A request to start a run."""

    workflow: WorkflowId
    goal: str
    caller: Caller
    """An agent may only ask for stricter preferences than the user's."""
    context: dict[str, Json] = {}
    preferences: Wish = Wish()
    request_id: str | None = None
    scope: StartScope = StartScope()
    is_by_driver: bool = False
    """The driver begins the run for which the session was queued."""

    @property
    def workspace(self) -> Path:
        return self.caller.workspace


StartRefusal = (
    NoSuchWorkflow
    | GoalMissing
    | NoSuchDirectory
    | CallerUnknown
    | RequestReused
    | RunRefusal
    | ConflictFound
    | TakeoverRefusal
)


def start(app: App, request: StartRequest) -> RenderedAnswer | StartRefusal:
    if not request.goal.strip():
        return GoalMissing()
    if not os.path.isdir(request.workspace):
        return NoSuchDirectory(str(request.workspace))
    entry = find_workflow(app, request.workspace, request.workflow)
    if isinstance(entry, NoSuchWorkflow):
        return entry
    resolved = resolve_references(
        entry.pinned.workflow.references,
        workspace=request.workspace,
        package=entry.place.path.parent,
    )
    session = _session_for(app, request)
    known = session if isinstance(session, str) else None
    tags = entry.workflow.tags
    outlook = Outlook()
    # Who repeats a call whose answer was lost must not find itself in its own way.
    if not _is_repeated(app, request):
        looked = look_before_start(app, request.workspace, known, request.scope, tags)
        if not isinstance(looked, Outlook):
            return looked
        outlook = looked
    outcome = begin_run(
        app,
        request,
        entry.pinned,
        tool=_TOOL,
        resolved_references=resolved,
        warnings=outlook.warnings,
    )
    if isinstance(outcome, RenderedAnswer):
        register_after_start(app, outlook, outcome.session, request.scope)
    return outcome


def _is_repeated(app: App, request: StartRequest) -> bool:
    try:
        key = _request_key(request, _TOOL)
    except NotCanonical:  # it is refused later
        return False
    return is_repeated(app, key)


def corrected_context(
    app: App, request: StartRequest, refusal: InputRefused | ContextUnset | RunCannotBegin
) -> dict[str, Json]:
    """The context that would be accepted instead of the one that was refused."""
    entry = find_workflow(app, request.workspace, request.workflow)
    if isinstance(entry, NoSuchWorkflow):
        return {}
    return start_run.corrected_context(entry.pinned.workflow, request.context, refusal)


def begin_run(
    app: App,
    request: StartRequest,
    pinned: PinnedWorkflow,
    *,
    tool: str,
    resolved_references: tuple[ResolvedReference, ...] = (),
    warnings: tuple[str, ...] = (),
) -> RenderedAnswer | StartRefusal:
    if len(request.goal) > GOAL_CHARS_MAX:
        return InputRefused("/goal", f"it has more than {GOAL_CHARS_MAX} characters")
    session = _session_for(app, request)
    if session is not None and not isinstance(session, str):
        return session
    root = ids.node_id(app.entropy(ids.NODE_BYTES))
    try:
        call = _request_key(request, tool)
    except NotCanonical as error:  # of all arguments, only the context may not be canonical
        return InputRefused(error.pointer, error.reason)

    def attempt(stream: Stream | None) -> decide.PlannedReply | RunRefusal:
        head = stream.head if stream else None
        if session and head and head.unattended and not request.is_by_driver:
            return SessionUnattended(session, run_status(None, head).word)
        new_run = _new_run(app, request, stream, root, resolved_references)
        new_run = msgspec.structs.replace(new_run, warnings=(*warnings, *new_run.warnings))
        return start_run.start(new_run, pinned, key=app.keyring.current(), at_ms=app.clock.now_ms())

    reading = (
        queries.end_of_stream(session) if session else Query[Stream | None]((), lambda _: None)
    )
    return run_once(app, call, reading, attempt, root)


def _session_for(app: App, request: StartRequest) -> SessionId | CallerUnknown | None:
    """The caller's session; None, for a new one, if none was named and no clue points to one."""
    session = resolve_caller(app, request.caller)
    if isinstance(session, SeveralSessions) or session == NO_SESSION:
        # An agent that takes over keeps its session, which gets the waiting mail.
        return request.caller.connection.latest if request.scope.takeover else None
    return session


def default_preferences(app: App, workspace: Path) -> Preferences:
    """The user's preferences, made stricter where the project's config wants that.

    Raises:
        SettingsBroken: one of the files cannot be used.
    """
    user_preferences = apply_wish(Preferences(), preferences_in(app.home / "config.toml"))
    return apply_wish_where_stricter(
        user_preferences, preferences_in(workspace / ".interlock" / "config.toml")
    )


def _new_run(
    app: App,
    request: StartRequest,
    stream: Stream | None,
    root: NodeId,
    resolved_references: tuple[ResolvedReference, ...],
) -> NewRun:
    known = stream.session if stream else None
    if stream is None:
        stream = Stream(ids.session_id(app.entropy(ids.RANDOM_BYTES)))
    directory = Path(stream.head.workspace) if stream.head else request.workspace
    observation = observe_workspace(directory)
    branch = observation.git_branch if observation else None
    default, warnings = default_preferences(app, request.workspace), ()
    if stream.head and stream.head.attended:
        default = apply_wish(default, Wish(stream.head.attended.autonomy))
    preferences = wished = apply_wish(default, request.preferences)
    if request.caller.actor == "agent":
        preferences = apply_wish_where_stricter(default, request.preferences)
    if preferences != wished:
        warnings = (
            f"More than {default.autonomy} and {default.risk_policy} is for the user to allow:"
            " `interlock preferences set RUN --autonomy …`, or the console. This run is"
            f" {preferences.autonomy}, {preferences.risk_policy}.",
        )
    return NewRun(
        stream=stream,
        run=ids.run_id(app.entropy(ids.RANDOM_BYTES)),
        root=root,
        goal=request.goal.strip(),
        workspace=str(request.workspace),
        context=request.context,
        preferences=preferences,
        observation=observation,
        references=resolved_references,
        warnings=warnings,
        notices=offer_finished(app, directory, request.workflow, known, branch),
    )


def _request_key(request: StartRequest, tool: str) -> RequestKey:
    arguments: Json = {
        "workflow": request.workflow,
        "goal": request.goal,
        "workspace": str(request.workspace),
        "session": request.caller.session,
        "context": request.context,
        "preferences": [request.preferences.autonomy, request.preferences.risk_policy],
        "scope": [request.scope.track, request.scope.on_conflict, request.scope.takeover],
    }
    return request_key.request_key(
        tool, request.caller.connection.client, arguments, request.request_id
    )


Other = TypeVar("Other")
Reading = TypeVar("Reading")


def run_once(
    app: App,
    key: RequestKey,
    question: Query[Reading],
    decide: Callable[[Reading], PlannedReply | Other],
    node: NodeId,
) -> RenderedAnswer | RequestReused | Other:
    """Append what `decide` plans, which makes `node`, unless the same call was made before.

    It decides on the answer to `question`.
    """
    valid_ms = None if key.is_named else UNNAMED_VALID_MS

    def attempt() -> PlannedReply | RenderedAnswer | RequestReused | Other:
        at_ms = app.clock.now_ms()
        request, reading = app.log.ask(queries.earlier_request(key.key), question)
        if request and (earlier := _earlier_answer(app, key, request, at_ms)):
            return earlier
        decision = decide(reading)
        if not isinstance(decision, PlannedReply):
            return decision
        request = RequestRecord(key.key, key.arguments, node, at_ms, valid_ms)
        plan = msgspec.structs.replace(decision.plan, request=request)
        return PlannedReply(plan, decision.reply)

    return append_reply(app, attempt)


def is_repeated(app: App, key: RequestKey) -> bool:
    """Whether the same call was made before, so that its answer would be the one of then."""
    request = app.log.ask(queries.earlier_request(key.key))
    if request is None:
        return False
    return _earlier_answer(app, key, request, app.clock.now_ms()) is not None


def _earlier_answer(
    app: App, key: RequestKey, request: EarlierRequest, at_ms: int
) -> RenderedAnswer | RequestReused | None:
    if not key.is_named and at_ms - request.at_ms > UNNAMED_VALID_MS:
        return None
    if request.arguments != key.arguments:
        return RequestReused()
    made = app.log.ask(queries.creation_event(request.node))
    # If there is none, its session was deleted a moment ago.
    return replay(app, app.log, node_of(made)) if made else None
