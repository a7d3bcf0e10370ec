"""The open sessions of a worktree: without other evidence, a single one is the caller's."""

from pathlib import Path

from interlock.app.callers.session_record import announced_conversations, session_of
from interlock.app.context import App
from interlock.app.refusals import NoSuchSession, OpenSession, SeveralSessions
from interlock.core.ids import SessionId
from interlock.core.session.head import Attendance
from interlock.workspace.machine import clients
from interlock.workspace.projects import project

NO_SESSION = NoSuchSession("", ())
"""No session was named, and none is open in this directory."""
LISTED_SESSIONS_MAX = 5


def session_in_worktree(app: App, workspace: Path) -> SessionId | NoSuchSession | SeveralSessions:
    root = str(project_root(workspace))
    attended_heads = {
        found.session: found.head.attended
        for found in app.reader.attended_sessions_in(root)
        # A run started without a client belongs to the connection that started it.
        if found.head.attended and (found.head.attended.hosts or not found.head.run_count)
    }
    # A conversation that has only read has no record yet.
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
    found = only_session(
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
    """Whether a client works in a session, or no client was ever seen in it."""
    if not attended.hosts:
        return True
    return any(
        pair in running and app.reader.session_of_conversation(*pair) in (session, None)
        for pair in attended.hosts
    )


def only_session(sessions: list[OpenSession]) -> SessionId | NoSuchSession | SeveralSessions:
    if not sessions:
        return NO_SESSION
    return (
        sessions[0].session
        if len(sessions) == 1
        else SeveralSessions(tuple(sessions[:LISTED_SESSIONS_MAX]))
    )


def project_root(directory: Path) -> Path:
    return project.root_of(directory) or directory
