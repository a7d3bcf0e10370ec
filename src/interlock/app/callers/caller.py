"""Whose session a call belongs to. One order, for every surface.

The session that the call names; that of its token; that of its conversation, or the one that the
environment names; that of the client whose process led to ours; the only one that goes on in the
worktree. What is named and not there is refused, and never replaced by something else.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from interlock.app.callers.agent_detection import client_among
from interlock.app.context import App
from interlock.app.refusals import (
    BadToken,
    NodeGone,
    NoSuchSession,
    OpenSession,
    SeveralSessions,
)
from interlock.app.sessions.lookup import find_session
from interlock.core import tokens
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.head import Attended
from interlock.core.tokens import TokenFault
from interlock.workspace.machine import clients, processes
from interlock.workspace.projects import project

SESSION_VARIABLE = "INTERLOCK_SESSION"
HOST_VARIABLES = {"CLAUDE_CODE_SESSION_ID": ("claude-code", "claude")}
"""Where clients (host, and its program) tell what they start of the conversation. It may be an
older one: a server is not started anew when the conversation is cleared. So the process of the
client is asked first."""
NO_SESSION = NoSuchSession("", ())
"""Nothing was named, and nothing goes on here."""
RECENT_RUNS_MAX = 200  # runs among which those of a directory are looked for
LISTED_SESSIONS_MAX = 5


class CallerClues(msgspec.Struct, frozen=True):
    """All that a call says about who makes it."""

    workspace: Path
    session: str | None = None
    """As the call names it: the start of an id will do if only one session begins so."""
    token: str | None = None
    conversation: Conversation | None = None


CallerUnknown = NoSuchSession | SeveralSessions | BadToken | NodeGone


def resolve_caller(app: App, caller: CallerClues) -> SessionId | CallerUnknown:
    if caller.session:
        return find_session(app.reader, caller.session)
    if caller.token:
        return _session_of_token(app, caller.token)
    if caller.conversation:
        # One that no session has is nobody's. What the user types there must not change another's.
        return _session_of_conversation(app, caller.conversation) or NO_SESSION
    if named := app.environment.get(SESSION_VARIABLE):
        found = find_session(app.reader, named)
        is_missing = isinstance(found, NoSuchSession)
        return msgspec.structs.replace(found, variable=SESSION_VARIABLE) if is_missing else found
    return _session_of_client(app, caller.workspace) or _session_in_worktree(app, caller.workspace)


def session_to_show(app: App, caller: CallerClues) -> SessionId | CallerUnknown:
    """The caller's; where there is none, the only one with an open run in the directory."""
    found = resolve_caller(app, caller)
    if found != NO_SESSION:
        return found
    rows = app.reader.newest_runs(limit=RECENT_RUNS_MAX)
    here = [row for row in rows if row.workspace == str(caller.workspace)]
    still_open = [row for row in here if row.status in ("open", "waiting")]
    titles = {row.session: row.title for row in still_open or here[:1]}
    return _only_session([OpenSession(session, title=title) for session, title in titles.items()])


def ancestor_conversation(app: App) -> Conversation | None:
    """The conversation of the client that started this process, at once or in the end.

    A client that another one started, and of which no hook told, works for that other one.
    """
    for process in processes.ancestors(app.process):
        if client := clients.recall(app.home, process):
            return Conversation(client.host, client.conversation)
    return next((said for said, _ in _environment_conversations(app)), None)


def own_conversation(app: App) -> Conversation | None:
    """The conversation of the client that started this process itself.

    Only that one is moved from session to session: what works for another must not move it.
    """
    client = client_among(processes.ancestors(app.process))
    if client and (held := clients.recall(app.home, client)):
        return Conversation(held.host, held.conversation)
    is_own = (
        said
        for said, program in _environment_conversations(app)
        if not client or client.name == program
    )
    return next(is_own, None)


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
            app.home, client, conversation.host, conversation.id, now_ms=app.clock.now_ms()
        )
    except OSError:
        return  # then it is found less easily, and nothing else is lost


def _session_of_token(app: App, token: str) -> SessionId | BadToken | NodeGone:
    named = tokens.read_token(token, app.keyring.keys())
    if isinstance(named, TokenFault):
        return BadToken(named)
    located = app.reader.locate(named.node)
    return located.stream.session if located else NodeGone()


def _session_of_conversation(app: App, conversation: Conversation) -> SessionId | None:
    return app.reader.session_of_conversation(conversation.host, conversation.id)


def _session_of_client(app: App, workspace: Path) -> SessionId | None:
    conversation = ancestor_conversation(app)
    session = _session_of_conversation(app, conversation) if conversation else None
    stream = app.reader.stream(session) if session else None
    if stream is None or stream.head is None:
        return None
    attended = stream.head.attended
    if attended is None or attended.status == "ended":
        return None
    return session if _is_work_in(workspace, Path(stream.head.workspace)) else None


def _is_work_in(workspace: Path, other: Path) -> bool:
    """Whether work in `workspace` is work in the worktree of `other`."""
    if str(workspace) == _current_directory():
        return True  # that says nothing: some clients start their servers anywhere
    return workspace.is_relative_to(other) or _project_root(workspace) == _project_root(other)


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # the directory was removed under us


def _session_in_worktree(app: App, workspace: Path) -> SessionId | NoSuchSession | SeveralSessions:
    found: dict[SessionId, Attended] = {}
    for session in app.reader.attended_sessions_in(str(_project_root(workspace))):
        stream = app.reader.stream(session)
        if stream and stream.head and stream.head.attended:
            found[session] = stream.head.attended
    active = {name: at for name, at in found.items() if at.status == "active"} or found
    if len(active) > 1:
        running = {
            (client.host, client.conversation) for client in clients.running_clients(app.home)
        }
        going_on = {s: at for s, at in active.items() if _may_be_in_use(app, s, at, running)}
        active = going_on or active
    return _only_session(
        [
            OpenSession(
                session, at.mode, at.task, hosts=tuple(dict.fromkeys(host for host, _ in at.hosts))
            )
            for session, at in active.items()
        ]
    )


def _may_be_in_use(
    app: App, session: SessionId, attended: Attended, running: set[tuple[str, str]]
) -> bool:
    """Whether a client still works in a session, or nobody knows of any that ever did."""
    if not attended.hosts:
        return True
    return any(
        pair in running and app.reader.session_of_conversation(*pair) == session
        for pair in attended.hosts
    )


def _only_session(found: list[OpenSession]) -> SessionId | NoSuchSession | SeveralSessions:
    if not found:
        return NO_SESSION
    return (
        found[0].session if len(found) == 1 else SeveralSessions(tuple(found[:LISTED_SESSIONS_MAX]))
    )


def _project_root(directory: Path) -> Path:
    return project.root_of(directory) or directory
