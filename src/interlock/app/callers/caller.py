"""Find the session that a call belongs to, in the same order for every surface.

Each surface makes one `Caller` where a call arrives, and passes it on. The order: the session that
the call names; that of its token; that of its conversation; the one that the environment names;
that of the client whose process led to ours; the one that the same MCP connection worked in before;
the only open one in the worktree. A command may also mean the only session here with an open run.
A session that is named and does not exist is refused, never replaced by another.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.agents.hosts.registry import all_hosts, host_named
from interlock.app.callers.agent_detection import client_among
from interlock.app.callers.connection import Connection
from interlock.app.callers.session_record import announced_conversations, session_of, stream_of
from interlock.app.callers.worktree_sessions import (
    NO_SESSION,
    only_session,
    project_root,
    session_in_worktree,
)
from interlock.app.context import App
from interlock.app.refusals import NoSuchSession, OpenSession, SeveralSessions
from interlock.app.sessions.held_token import HeldToken, find_held_token
from interlock.app.sessions.lookup import find_session
from interlock.core.gate.state import GateRow
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import ChangeNotAllowed, Conversation
from interlock.core.tokens import BadToken
from interlock.store import gate_rows
from interlock.workspace.machine import clients, processes
from interlock.workspace.machine.clients import Client

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
RECENT_RUNS_MAX = 200  # runs that are searched for those of a directory


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a call, with all evidence of its session."""

    surface: Literal["mcp", "cli", "hook", "rest"]
    actor: Literal["agent", "user", "person"]
    """A person is a user at a terminal."""
    workspace: Path
    session: str | None = None
    """As the call names it: the start of an id will do if only one session begins so."""
    token: str | None = None
    conversation: Conversation | None = None
    """The conversation that the call names; if set, no process is inspected."""
    connection: Connection = msgspec.field(default_factory=Connection)
    process: int = 0
    """A process that the client started, directly or indirectly; 0 if unknown."""
    environment: Mapping[str, str] = {}
    """The variables that the client gave to that process."""


def local_caller(
    app: App,
    workspace: Path,
    *,
    surface: Literal["mcp", "cli", "hook"] = "cli",
    actor: Literal["agent", "user", "person"] = "user",
    session: str | None = None,
) -> Caller:
    """Return the caller that started this process, directly or indirectly."""
    return Caller(
        surface=surface,
        actor=actor,
        workspace=workspace,
        session=session,
        connection=Connection(str(os.getppid())),
        process=app.process,
        environment=app.environment,
    )


CallerUnknown = NoSuchSession | SeveralSessions | BadToken


def resolve_caller(app: App, caller: Caller) -> SessionId | CallerUnknown:
    """Return the session of the caller, recording or reopening it if needed."""
    session, connection = _resolve(app, caller), caller.connection
    if isinstance(session, str) and not caller.session:
        connection.own_sessions.add(session)
        connection.latest = session
    elif isinstance(session, str):
        connection.latest = connection.latest or session  # another agent's stays the other's
    return session


def _resolve(app: App, caller: Caller) -> SessionId | CallerUnknown:
    if caller.session:
        return _session_named(app, caller.session)
    if caller.token:
        return _session_of_token(app, caller.token)
    if caller.conversation and caller.surface == "hook":
        # Without a session of its own, it must not change the session of another conversation.
        return session_of(app, caller.conversation) or NO_SESSION
    if id_or_prefix := caller.environment.get(SESSION_VARIABLE):
        result = _session_named(app, id_or_prefix)
        is_missing = isinstance(result, NoSuchSession)
        return msgspec.structs.replace(result, variable=SESSION_VARIABLE) if is_missing else result
    return (
        _session_of_client(app, caller)
        or session_of_connection(app, caller)
        # Another agent's session must not replace an ended one.
        or (NO_SESSION if _has_ended(app, caller) else session_in_worktree(app, caller.workspace))
    )


def _session_named(app: App, id_or_prefix: str) -> SessionId | NoSuchSession:
    found = find_session(app.reader, id_or_prefix)
    if isinstance(found, NoSuchSession) and not found.candidates:
        announced = announced_conversations(app)
        names = [session for session in announced if session.startswith(id_or_prefix)]
        if len(names) == 1:
            conversation, _ = announced[names[0]]
            return session_of(app, conversation) or found
    return found


def session_meant(app: App, caller: Caller) -> SessionId | CallerUnknown:
    """Return the caller's session; for a command also the only session here with an open run.

    Not for an agent's tools: it would act for the agent that began the run.
    """
    result = resolve_caller(app, caller)
    if result != NO_SESSION or caller.surface != "cli":
        return result
    rows = app.reader.newest_runs(limit=RECENT_RUNS_MAX)
    directories = {str(caller.workspace), str(project_root(caller.workspace))}
    here = [row for row in rows if row.workspace in directories]
    still_open = [row for row in here if row.is_open]
    titles = {row.session: row.title for row in still_open or here[:1]}
    return only_session([OpenSession(session, title=title) for session, title in titles.items()])


def refuse_acting_as(app: App, caller: Caller, session: SessionId) -> ChangeNotAllowed | None:
    """Return the refusal to act as the named session if it belongs to another agent."""
    if not caller.session or session in caller.connection.own_sessions:
        return None
    unnamed = resolve_caller(app, msgspec.structs.replace(caller, session=None, token=None))
    # Over HTTP a call with a session names no directory, so there is no fallback.
    own = [found for found in (unnamed, caller.connection.session) if isinstance(found, str)]
    if not own or session in own:
        return None
    return ChangeNotAllowed(f"acting as session {session}", "it is another agent's")


def refuse_elsewhere(caller: Caller, session: SessionId, worktree: str) -> ChangeNotAllowed | None:
    """Return the refusal to change the named session if it belongs to another project."""
    roots = {project_root(directory) for directory in (caller.workspace, Path(worktree))}
    if not caller.session or len(roots) == 1:
        return None
    return ChangeNotAllowed(f"changing session {session}", f"it belongs to {worktree}")


def recorded_session(app: App, caller: Caller) -> SessionId | None:
    """Return the recorded session of the caller's conversation, without recording one."""
    conversation = ancestor_conversation(app, caller)
    if conversation is None:
        return None
    return app.reader.session_of_conversation(conversation.host, conversation.id)


def called_conversation(app: App, caller: Caller, metadata: Mapping[str, Any]) -> Caller:
    """Return the caller of a call whose metadata may name its conversation.

    A conversation that is named and not known is nobody's: the process around is not asked then,
    because it may hold others.
    """
    for key, host_name in CALL_SESSION_KEYS.items():
        name = metadata.get(key)
        if not isinstance(name, str) or not name:
            continue
        named = msgspec.structs.replace(caller, connection=caller.connection.of_conversation(name))
        if isinstance(gate_rows.read_state(app.home, host_name, name), GateRow) or (
            app.reader.session_of_conversation(host_name, name)
        ):
            return msgspec.structs.replace(named, conversation=Conversation(host_name, name))
        others = {k: v for k, v in caller.environment.items() if k not in HOST_VARIABLES}
        return msgspec.structs.replace(named, process=0, environment=others)
    return caller


def known_workspace(app: App, caller: Caller) -> Path | None:
    """The directory in which the caller works, for calls that name none."""
    if named := caller.conversation:
        row = gate_rows.read_state(app.home, named.host, named.id)
        return Path(row.root) if isinstance(row, GateRow) else None
    session = caller.connection.session
    return workspace_of_session(app, session) if session else None


def workspace_of_session(app: App, session: str) -> Path | None:
    """Return the directory of a session if it is on this machine."""
    stream = app.reader.stream(SessionId(session))
    workspace = Path(stream.head.workspace) if stream and stream.head else None
    return workspace if workspace and workspace.is_dir() else None


def ancestor_conversation(app: App, caller: Caller) -> Conversation | None:
    """Return the conversation of the client that started the caller's process or its parents.

    A client that another one started, and that no hook reported, works for that other one.
    """
    if caller.conversation:
        return caller.conversation
    for process in processes.ancestors(caller.process):
        if held := clients.recall(app.home, process):
            return _only_conversation(held)
    return next((conversation for conversation, _ in _environment_conversations(caller)), None)


def own_conversation(app: App, caller: Caller) -> Conversation | None:
    """The conversation of the client that started the caller's process directly.

    Only that one moves from session to session: a client that works for another must not move it.
    """
    if caller.conversation:
        return caller.conversation
    process = client_among(processes.ancestors(caller.process))
    if process and (held := clients.recall(app.home, process)):
        return _only_conversation(held)
    own_conversations = (
        conversation
        for conversation, program in _environment_conversations(caller)
        if not process or process.name == program
    )
    return next(own_conversations, None)


def _only_conversation(held: list[Client]) -> Conversation | None:
    """The conversation of a process; None if it holds several, and nothing tells which is meant."""
    newest = held[0]
    is_told = len(held) == 1 or host_named(newest.host).holds_one
    return Conversation(newest.host, newest.conversation) if is_told else None


def _environment_conversations(caller: Caller) -> Iterator[tuple[Conversation, str]]:
    for variable, (host, program) in HOST_VARIABLES.items():
        if name := caller.environment.get(variable):
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


def _session_of_token(app: App, token: str) -> SessionId | BadToken:
    held = find_held_token(app.reader, app.keyring, token)
    return held.located.stream.session if isinstance(held, HeldToken) else held


def _session_of_client(app: App, caller: Caller) -> SessionId | None:
    conversation = ancestor_conversation(app, caller)
    stream = stream_of(app, conversation) if conversation else None
    if stream is None or stream.head is None or stream.head.attended is None:
        return None
    return stream.session if _is_work_in(caller, Path(stream.head.workspace)) else None


def _has_ended(app: App, caller: Caller) -> bool:
    """Whether the session of the caller's conversation or connection here was ended."""
    for session in (recorded_session(app, caller), caller.connection.session):
        stream = app.reader.stream(session) if session else None
        attended = stream.head.attended if stream and stream.head else None
        if stream is None or stream.head is None or attended is None:
            continue
        if attended.status == "ended" and _is_work_in(caller, Path(stream.head.workspace)):
            return True
    return False


def session_of_connection(app: App, caller: Caller) -> SessionId | None:
    session = caller.connection.session
    stream = app.reader.stream(session) if session else None
    if stream is None or stream.head is None:
        return None  # it was deleted
    attended = stream.head.attended
    if attended and attended.was_ended:
        return None
    return stream.session if _is_work_in(caller, Path(stream.head.workspace)) else None


def _is_work_in(caller: Caller, other: Path) -> bool:
    """Whether work in the caller's directory is work in the worktree of `other`."""
    workspace = caller.workspace
    if caller.process and str(workspace) == _current_directory():
        return True  # it tells nothing: some clients start their servers anywhere
    return workspace.is_relative_to(other) or project_root(workspace) == project_root(other)


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # the directory was removed meanwhile
