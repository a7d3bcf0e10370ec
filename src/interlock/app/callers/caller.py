"""Find the session that a call belongs to, in the same order for every surface.

The session that the call names; that of its token; that of its conversation, or the one that the
environment names; that of the client whose process led to ours; the only open one in the
worktree. A session that is named and does not exist is refused, never replaced by another.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.hosts.registry import all_hosts, host_named
from interlock.app.callers.agent_detection import client_among
from interlock.app.callers.session_record import announced_conversations, session_of, stream_of
from interlock.app.context import App
from interlock.app.refusals import (
    BadToken,
    NodeGone,
    NoSuchSession,
    OpenSession,
    SeveralSessions,
)
from interlock.app.sessions.held_token import HeldToken, find_held_token
from interlock.app.sessions.lookup import find_session
from interlock.core.gate.state import GateRow
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.head import Attendance
from interlock.store import gate_rows
from interlock.workspace.machine import clients, processes
from interlock.workspace.machine.clients import Client
from interlock.workspace.projects import project

SESSION_VARIABLE = "INTERLOCK_SESSION"
HOST_VARIABLES = {
    host.session_variable: (host.name, host.program)
    for host in all_hosts()
    if host.session_variable
}
"""Variables in which clients (host, program) name the conversation to processes that they start. It
may be an older one: a server is not restarted when the conversation is cleared. So the process of
the client is looked up first."""
CALL_SESSION_KEYS = {
    host.call_session_key: host.name for host in all_hosts() if host.call_session_key
}
"""Keys under which clients name their conversation in the metadata of a call."""
NO_SESSION = NoSuchSession("", ())
"""No session was named, and none is open here."""
RECENT_RUNS_MAX = 200  # runs that are searched for those of a directory
LISTED_SESSIONS_MAX = 5


class CallerClues(msgspec.Struct, frozen=True):
    """Everything in a call that identifies its session."""

    workspace: Path
    session: str | None = None
    """As the call names it: the start of an id will do if only one session begins so."""
    token: str | None = None
    conversation: Conversation | None = None


CallerUnknown = NoSuchSession | SeveralSessions | BadToken | NodeGone


def resolve_caller(app: App, caller: CallerClues) -> SessionId | CallerUnknown:
    session = _resolve(app, caller)
    if isinstance(session, str):
        app.coordination.caller = session
    return session


def _resolve(app: App, caller: CallerClues) -> SessionId | CallerUnknown:
    if caller.session:
        return _session_named(app, caller.session)
    if caller.token:
        return _session_of_token(app, caller.token)
    if caller.conversation:
        # Without a session of its own, it must not change the session of another conversation.
        return session_of(app, caller.conversation) or NO_SESSION
    if id_or_prefix := app.environment.get(SESSION_VARIABLE):
        result = _session_named(app, id_or_prefix)
        is_missing = isinstance(result, NoSuchSession)
        return msgspec.structs.replace(result, variable=SESSION_VARIABLE) if is_missing else result
    return _session_of_client(app, caller.workspace) or _session_in_worktree(app, caller.workspace)


def _session_named(app: App, id_or_prefix: str) -> SessionId | NoSuchSession:
    found = find_session(app.reader, id_or_prefix)
    if isinstance(found, NoSuchSession) and not found.candidates:
        announced = announced_conversations(app)
        names = [session for session in announced if session.startswith(id_or_prefix)]
        if len(names) == 1:
            conversation, _ = announced[names[0]]
            return session_of(app, conversation) or found
    return found


def session_to_show(app: App, caller: CallerClues) -> SessionId | CallerUnknown:
    """The caller's session; without one, the only session with an open run in the directory."""
    result = resolve_caller(app, caller)
    if result != NO_SESSION:
        return result
    rows = app.reader.newest_runs(limit=RECENT_RUNS_MAX)
    here = [row for row in rows if row.workspace == str(caller.workspace)]
    still_open = [row for row in here if row.status in ("open", "waiting")]
    titles = {row.session: row.title for row in still_open or here[:1]}
    return _only_session([OpenSession(session, title=title) for session, title in titles.items()])


def as_named_caller(app: App, metadata: Mapping[str, Any]) -> tuple[App, Path | None]:
    """The app for a call whose metadata may name its conversation, and the project of that.

    A conversation that is named and not known is nobody's: the process around is not asked then,
    because it may hold others.
    """
    for key, host_name in CALL_SESSION_KEYS.items():
        name = metadata.get(key)
        if not isinstance(name, str) or not name:
            continue
        row = gate_rows.read_state(app.home, host_name, name)
        root = Path(row.root) if isinstance(row, GateRow) else None
        if root or app.reader.session_of_conversation(host_name, name):
            named = Conversation(host_name, name)
            return msgspec.structs.replace(app, conversation=named), root
        others = {k: v for k, v in app.environment.items() if k not in HOST_VARIABLES}
        return msgspec.structs.replace(app, process=0, environment=others), None
    return app, None


def ancestor_conversation(app: App) -> Conversation | None:
    """The conversation of the client that started this process, directly or not.

    A client that another one started, and that no hook reported, works for that other one.
    """
    if app.conversation:
        return app.conversation
    for process in processes.ancestors(app.process):
        if held := clients.recall(app.home, process):
            return _only_conversation(held)
    return next((conversation for conversation, _ in _environment_conversations(app)), None)


def own_conversation(app: App) -> Conversation | None:
    """The conversation of the client that started this process directly.

    Only that one moves from session to session: a client that works for another must not move it.
    """
    if app.conversation:
        return app.conversation
    process = client_among(processes.ancestors(app.process))
    if process and (held := clients.recall(app.home, process)):
        return _only_conversation(held)
    own_conversations = (
        conversation
        for conversation, program in _environment_conversations(app)
        if not process or process.name == program
    )
    return next(own_conversations, None)


def _only_conversation(held: list[Client]) -> Conversation | None:
    """The conversation of a process; None if it holds several, and nothing tells which is meant."""
    newest = held[0]
    is_told = len(held) == 1 or host_named(newest.host).holds_one
    return Conversation(newest.host, newest.conversation) if is_told else None


def _environment_conversations(app: App) -> Iterator[tuple[Conversation, str]]:
    for variable, (host, program) in HOST_VARIABLES.items():
        if name := app.environment.get(variable):
            yield Conversation(host, name), program


def remember_client(app: App, conversation: Conversation) -> None:
    """In a hook: the client that runs it holds this conversation from now on."""
    client = client_among(processes.ancestors(app.process))
    if client is None or not conversation.id:
        return
    try:
        clients.remember(
            *(app.home, client, conversation.host, conversation.id),
            now_ms=app.clock.now_ms(),
            holds_one=host_named(conversation.host).holds_one,
        )
    except OSError:
        return  # the session is only found less easily then


def _session_of_token(app: App, token: str) -> SessionId | BadToken | NodeGone:
    held = find_held_token(app.reader, app.keyring, token)
    return held.located.stream.session if isinstance(held, HeldToken) else held


def _session_of_client(app: App, workspace: Path) -> SessionId | None:
    conversation = ancestor_conversation(app)
    stream = stream_of(app, conversation) if conversation else None
    if stream is None or stream.head is None or stream.head.attended is None:
        return None
    return stream.session if _is_work_in(workspace, Path(stream.head.workspace)) else None


def _is_work_in(workspace: Path, other: Path) -> bool:
    """Whether work in `workspace` is work in the worktree of `other`."""
    if str(workspace) == _current_directory():
        return True  # it tells nothing: some clients start their servers anywhere
    return workspace.is_relative_to(other) or _project_root(workspace) == _project_root(other)


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # the directory was removed under us


def _session_in_worktree(app: App, workspace: Path) -> SessionId | NoSuchSession | SeveralSessions:
    root = str(_project_root(workspace))
    attended_heads = {
        found.session: found.head.attended
        for found in app.reader.attended_sessions_in(root)
        if found.head.attended
    }
    # Of a conversation that has only read, nothing is recorded yet.
    announced = {
        session: conversation
        for session, (conversation, its_root) in announced_conversations(app).items()
        if str(its_root) == root
    }
    for session, conversation in announced.items():
        hosts = ((conversation.host, conversation.id),)
        attended_heads.setdefault(session, Attendance("analysis", hosts=hosts))
    active = {
        session: attended
        for session, attended in attended_heads.items()
        if attended.status == "active"
    } or attended_heads
    if len(active) > 1:
        running = set(clients.look_for_clients(app.home).held)
        in_use = {
            session: attended
            for session, attended in active.items()
            if _may_be_in_use(app, session, attended, running)
        }
        active = in_use or active
    found = _only_session(
        [
            OpenSession(
                session,
                attended.mode,
                attended.task,
                hosts=tuple(dict.fromkeys(host for host, _ in attended.hosts)),
            )
            for session, attended in active.items()
        ]
    )
    if isinstance(found, str) and found in announced:
        session_of(app, announced[found])
    return found


def _may_be_in_use(
    app: App, session: SessionId, attended: Attendance, running: set[tuple[str, str]]
) -> bool:
    """Whether a client still works in a session, or no client is known to have worked in it."""
    if not attended.hosts:
        return True
    return any(
        pair in running and app.reader.session_of_conversation(*pair) in (session, None)
        for pair in attended.hosts
    )


def _only_session(sessions: list[OpenSession]) -> SessionId | NoSuchSession | SeveralSessions:
    if not sessions:
        return NO_SESSION
    return (
        sessions[0].session
        if len(sessions) == 1
        else SeveralSessions(tuple(sessions[:LISTED_SESSIONS_MAX]))
    )


def _project_root(directory: Path) -> Path:
    return project.root_of(directory) or directory
