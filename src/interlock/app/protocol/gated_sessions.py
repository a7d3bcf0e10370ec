"""Sessions under the gate: begin, join, read, change the mode and the work, end.

Such a session is *attended*: its head has a mode, a status, a task and the conversations of agent
clients that were bound to it. A conversation belongs to the session that bound it last.

Every change takes the same course. `core.protocol.gated_session` plans the events from the stream;
the plan is appended, or made again if another writer was faster (`StreamMoved`). Then the gate gets
a row for each conversation that still belongs to the session (an ended session loses its rows), and
unless the profile is light, the session's note is published; if that fails, the change stands.

`begin` serves the hook, which knows its conversation; `start` serves users and clients, and finds
the session first. Joining must never give an agent a mode that it could not have entered by itself.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.agents.hosts.registry import host_named
from interlock.app.append_loop import append_plan
from interlock.app.callers.caller import (
    NO_SESSION,
    SESSION_VARIABLE,
    Caller,
    CallerUnknown,
    local_caller,
    own_conversation,
    session_meant,
    session_of_connection,
)
from interlock.app.callers.session_record import (
    StartedSession,
    announce,
    attended_head,
    effective_policy_in,
    effective_policy_of,
    ensure_attended,
    is_bound,
    publish_to_gate,
    record_start,
    session_of,
    state_of,
)
from interlock.app.context import App
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.gate import integrity, overrides
from interlock.app.gate.policy import EffectivePolicy
from interlock.app.refusals import ProjectNotOptedIn, SeveralSessions
from interlock.app.sessions.logbook_file import refresh_logbook
from interlock.app.sessions.project_name import project_of
from interlock.core.gate.state import Mode, mode_change_objection
from interlock.core.ids import SessionId
from interlock.core.protocol import gated_session
from interlock.core.protocol.gated_session import Actor, ChangeNotAllowed, Conversation, WorkUpdate
from interlock.core.session.events import SessionStatus
from interlock.core.session.head import Attendance
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.state import SessionState
from interlock.workspace.machine import user_questions
from interlock.workspace.machine.identity import user_name
from interlock.workspace.projects import project

RENAMING_SOURCE = "clear"
"""A conversation that begins so continues another one in the same client, under a new name."""


def begin(app: App, root: Path, conversation: Conversation) -> StartedSession:
    """Begin or continue the session of a conversation in the project at `root`."""
    _let_gate_know_others(app, root)
    session = _continued_session(app, root, conversation)
    if session is None:
        return announce(app, root, conversation, _previous_name(app, conversation))
    return _start(app, root, conversation, session)


def start(
    app: App, caller: Caller
) -> StartedSession | CallerUnknown | ChangeNotAllowed | ProjectNotOptedIn:
    """Start a session for a client or a user: the one that the caller is in, or a new one.

    A known conversation without a session gets one of its own, as from its hook.
    """
    root = integrity.governed_root(app.home, caller.workspace)
    if root is None:
        known = session_meant(app, caller)
        if isinstance(known, str):
            return StartedSession(known, is_new=False, state=state_of(app, known))
        if caller.surface == "mcp" and (known == NO_SESSION or isinstance(known, SeveralSessions)):
            # As `start_workflow` does. No conversation is bound: no gate watches over it there.
            return record_start(app, caller.workspace, None, None)
        return ProjectNotOptedIn(str(caller.workspace)) if known == NO_SESSION else known
    _let_gate_know_others(app, root)
    conversation = own_conversation(app, caller)
    named_session = caller.session or caller.environment.get(SESSION_VARIABLE)
    if conversation and not named_session:
        own = session_of(app, conversation) or session_of_connection(app, caller)
        return _start(app, root, conversation, own)
    result = session_meant(app, caller)
    if isinstance(result, SeveralSessions) or result == NO_SESSION:
        return _start(app, root, conversation, None)
    return join(app, root, conversation, result) if isinstance(result, str) else result


def _let_gate_know_others(app: App, root: Path) -> None:
    if app.reader.project_end(project_of(app, root)[0])[0] == 0:
        return  # nobody works with others there
    from interlock.app.coordination.project_desk import publish_standing_reservations  # noqa: PLC0415 (10 ms)

    publish_standing_reservations(app, root)


def join(
    app: App, root: Path, conversation: Conversation | None, session: SessionId
) -> StartedSession | ChangeNotAllowed:
    """Bind the conversation to `session`, if that is in the project at `root`.

    The mode of the session holds then, so an agent may join only if it could enter that mode.
    """
    head = app.reader.head(session)
    action = f"joining session {session}"
    if project.root_of(Path(head.workspace)) != root:
        return ChangeNotAllowed(action, f"it belongs to {head.workspace}")
    policy, attended = effective_policy_in(app, root).policy, head.attended
    if conversation and attended and not is_bound(app, conversation, session):
        own = _attended_head_of(app, conversation) or Attendance(policy.first_mode)
        mode = policy.first_mode if attended.was_ended else attended.mode
        objection = mode_change_objection(
            own.mode,
            mode,
            policy,
            has_task=bool(attended.task),
            may_code=own.may_code,
        )
        if own.mode != mode and objection:
            change = f"{action}, which is in mode {mode},"
            return gated_session.refuse_mode(change, objection)
    return _start(app, root, conversation, session)


def go_on_working(app: App, caller: Caller, session: SessionId, *, is_submitting: bool) -> str:
    """Let later calls find the session of a run; return what the caller has to know of it.

    A session that was ended takes no call: the caller stays in its own open one. Without one, the
    first step that it submits opens the session again, in the mode in which sessions begin.
    """
    connection = caller.connection
    is_known = connection.session == session and session not in connection.ended_sessions
    attended = None if is_known else attended_head(app, session)
    if not attended or not attended.was_ended:
        connection.remember_work(session)
        return ""
    own = session_meant(app, msgspec.structs.replace(caller, session=None, token=None))
    if isinstance(own, str):
        return f"Session {session} of this run has ended; your other calls belong to session {own}."
    if not is_submitting:
        return f"Session {session} of this run has ended. Submitting the step opens it again."
    workspace = Path(app.reader.head(session).workspace)
    root = integrity.governed_root(app.home, workspace)
    conversation = own_conversation(app, caller) if root else None
    joined = join(app, root, conversation, session) if root else None
    if isinstance(joined, ChangeNotAllowed):
        return f"Session {session} of this run has ended."
    mode = (joined or record_start(app, workspace, None, session)).state.current_mode
    connection.remember_work(session)
    return f"Session {session} had ended; it is open again, in mode {mode}."


def move_conversation(
    app: App, caller: Caller, session: SessionId
) -> StartedSession | ChangeNotAllowed:
    """Move the caller's conversation, and so the gate, to an older session that it continues.

    It is one of those that it would have to move to.
    """
    root, conversation = project.root_of(caller.workspace), own_conversation(app, caller)
    assert root is not None, "a move is within a project"
    return join(app, root, conversation, session)


def sessions_to_move_to(
    app: App, caller: Caller, sessions: Mapping[SessionId, str], bound: SessionId | None
) -> set[SessionId]:
    """The ones of `sessions` that the caller's conversation would have to move to.

    They come with their directories. `bound`: the session that it belongs to now.
    """
    workspace = caller.workspace
    root = project.root_of(workspace) if os.path.isdir(workspace) else None
    if root is None or own_conversation(app, caller) is None:
        return set()
    return {
        session
        for session, directory in sessions.items()
        if session != bound and project.root_of(Path(directory)) == root
    }


def change_mode(
    app: App,
    session: SessionId,
    mode: Mode,
    *,
    by: Actor,
    task: str | None = None,
    is_agreed: bool = False,
) -> SessionState | gated_session.AttendanceRefusal:
    """Change the mode. A mode that the user sets also ends an override of the gate."""
    if by == "user" and mode != "disabled":
        overrides.end_override(app.home)
    effective = effective_policy_of(app, session)
    return _record_change(
        app,
        session,
        effective,
        lambda stream: gated_session.change_mode(
            stream,
            mode,
            effective.policy,
            by=by,
            task=task,
            at_ms=app.clock.now_ms(),
            is_agreed=is_agreed,
        ),
    )


def change_mode_as_asked(
    app: App, session: SessionId, mode: Mode, task: str | None, *, is_agreed: bool = False
) -> SessionState | gated_session.AttendanceRefusal:
    """Change the mode for an agent; if the user must agree, its host must have asked.

    An agent's word for it would not do: the question is one that a hook has recorded, and a call
    comes here only after it was answered with yes. It is used up.
    `is_agreed`: the server that calls has put the question itself.
    """
    outcome = change_mode(app, session, mode, by="agent", task=task)
    is_askable = isinstance(outcome, ChangeNotAllowed) and outcome.is_askable
    if is_askable and (is_agreed or _consume_question(app, session)):
        return change_mode(app, session, mode, by="agent", task=task, is_agreed=True)
    return outcome


def _consume_question(app: App, session: SessionId) -> bool:
    """Whether the user was asked in a conversation of this session just now."""
    attended = attended_head(app, session)
    now_ms = app.clock.now_ms()
    return any(
        user_questions.consume(app.home, host, name, user_questions.CODING, now_ms=now_ms)
        for host, name in (attended.hosts if attended else ())
        if app.reader.session_of_conversation(host, name) == session
    )


def change_work(
    app: App, session: SessionId, work: WorkUpdate
) -> SessionState | gated_session.AttendanceRefusal:
    return _record_change(
        app,
        session,
        effective_policy_of(app, session),
        lambda stream: gated_session.change_work(stream, work, at_ms=app.clock.now_ms()),
    )


def waive_requirement(
    app: App, session: SessionId, requirement: str, reason: str, *, place: str
) -> SessionState | gated_session.AttendanceRefusal:
    """Record that the user waives a requirement of the session's protocol."""
    who = f"{user_name()}, {place}"
    return _record_change(
        app,
        session,
        effective_policy_of(app, session),
        lambda stream: gated_session.waive(
            stream, requirement, reason, who, at_ms=app.clock.now_ms()
        ),
        # A driver records the start of its sessions itself, and they have no mode.
        starts=app.reader.head(session).unattended is None,
    )


def change_status(
    app: App, session: SessionId, status: SessionStatus, reason: str
) -> SessionState | gated_session.AttendanceRefusal:
    outcome = _record_change(
        app,
        session,
        effective_policy_of(app, session),
        lambda stream: gated_session.change_status(
            stream, status, reason, at_ms=app.clock.now_ms()
        ),
    )
    if isinstance(outcome, SessionState) and status != "active":
        with suppress(SettingsBroken):  # the status is recorded, and the logbook can wait
            refresh_logbook(app, session)
    return outcome


def _continued_session(app: App, root: Path, conversation: Conversation) -> SessionId | None:
    """The session that a conversation continues; None if it needs one of its own."""
    bound = app.reader.session_of_conversation(conversation.host, conversation.id)
    previous = None if bound else _previous_name(app, conversation)
    if previous is None:
        return bound
    session = app.reader.session_of_conversation(previous.host, previous.id)
    stream = app.reader.stream(session) if session else None
    if stream is None or stream.head is None or stream.head.workspace != str(root):
        return None
    # Whoever clears a conversation after its session was ended begins something else.
    attended = stream.head.attended
    return None if attended and attended.was_ended else session


def _previous_name(app: App, conversation: Conversation) -> Conversation | None:
    """The name of a conversation before it was cleared: the process that held it still does.

    Where a process holds several conversations, it does not tell which one that was.
    """
    if conversation.source != RENAMING_SOURCE or not host_named(conversation.host).holds_one:
        return None
    previous = own_conversation(app, local_caller(app, Path()))
    return previous if previous and previous.id != conversation.id else None


def _attended_head_of(app: App, conversation: Conversation) -> Attendance | None:
    bound = app.reader.session_of_conversation(conversation.host, conversation.id)
    return attended_head(app, bound) if bound else None


def _record_change(
    app: App,
    session: SessionId,
    effective: EffectivePolicy,
    decide: Callable[[Stream], Plan | gated_session.AttendanceRefusal | None],
    *,
    starts: bool = True,
) -> SessionState | gated_session.AttendanceRefusal:
    if starts:
        ensure_attended(app, session)

    def decide_on_stream() -> Plan | gated_session.AttendanceRefusal | None:
        stream = app.log.known_stream(session)
        return decide(stream)

    return append_plan(app, decide_on_stream) or publish_state(app, session, effective)


def _start(
    app: App, root: Path, conversation: Conversation | None, session: SessionId | None
) -> StartedSession:
    started = record_start(app, root, conversation, session)
    publish_note(app, started.session, effective_policy_in(app, root))
    return started


def publish_state(
    app: App, session: SessionId, effective: EffectivePolicy | None = None
) -> SessionState:
    """Let the gate and the notes know what a session has become."""
    effective = effective or effective_policy_of(app, session)
    publish_to_gate(app, session, effective)
    publish_note(app, session, effective)
    session_state = state_of(app, session)
    if session_state.status == "ended":
        from interlock.app.coordination.participants import end_participation  # noqa: PLC0415 (10 ms)

        end_participation(app, session, Path(session_state.worktree), "its session has ended")
    return session_state


def publish_note(app: App, session: SessionId, effective: EffectivePolicy) -> None:
    if effective.policy.profile != "light":
        from interlock.app.protocol.publish import publish_session  # noqa: PLC0415 (10 ms)

        # If it fails, the next start of a session publishes it, and reports what fails then. The
        # change itself is recorded already.
        with suppress(StoreFailure):
            publish_session(app, session)
