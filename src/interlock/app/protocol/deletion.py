"""Delete a session from the store and the gate, with its published note; or all empty ones."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.protocol.presence import end_departed_sessions
from interlock.app.protocol.publish import unpublish_session
from interlock.app.refusals import NoSuchSession
from interlock.app.sessions.logbook_file import delete_untouched_logbook, load_session_log
from interlock.app.sessions.lookup import find_session
from interlock.app.sessions.statuses import Observer
from interlock.core.ids import SessionId
from interlock.core.session.head import Head
from interlock.store import gate_rows
from interlock.store.driver_journal import forget_journal
from interlock.store.records import SessionFilter


class SessionDeletion(msgspec.Struct, frozen=True):
    session: SessionId
    leftovers: tuple[str, ...] = ()
    """Files that are still in the project, each in a sentence with the reason."""


def delete(app: App, id_or_prefix: str) -> SessionDeletion | NoSuchSession:
    """Remove a session and everything that only it names. It cannot be undone.

    Its note in the project goes too, unless a person has written into it.
    """
    session = find_session(app.reader, id_or_prefix)
    if isinstance(session, NoSuchSession):
        return session
    stream = app.reader.stream(session)
    app.log.delete(session)
    gate_rows.withdraw_session(app.home, session)
    forget_journal(app.home, session)
    if stream is None or stream.head is None:
        return SessionDeletion(session)
    return SessionDeletion(session, unpublish_session(app, session, Path(stream.head.workspace)))


_ALL = 1_000_000


class PrunedSession(msgspec.Struct, frozen=True):
    session: SessionId
    workspace: str
    leftovers: tuple[str, ...] = ()
    """Files that are still in the project, each in a sentence with the reason."""


def prune(app: App, *, is_dry: bool) -> list[PrunedSession]:
    """Delete ended and disconnected sessions without work; return them."""
    end_departed_sessions(app)
    observer = Observer(app)
    pruned: list[PrunedSession] = []
    every_session = SessionFilter(is_archived=None)
    for listed in app.reader.list_sessions(every_session, before=None, limit=_ALL).sessions:
        head, session = listed.head, listed.session
        if not _is_empty(head):
            continue
        if observer.status(session, head, None).main.word not in ("disconnected", "ended"):
            continue
        leftovers = () if is_dry else _delete(app, session)
        pruned.append(PrunedSession(session, head.workspace, leftovers))
    return pruned


def _is_empty(head: Head) -> bool:
    """Whether nothing was recorded but that it began, and perhaps its mode."""
    attended = head.attended
    if attended is None or head.run_count or head.imported_from:
        return False
    has_work = attended.task or attended.feature or attended.delegation_count
    has_work = has_work or attended.has_progress
    return attended.status != "paused" and not has_work


def _delete(app: App, session: SessionId) -> tuple[str, ...]:
    log = load_session_log(app.reader, session)
    outcome = delete(app, session)
    delete_untouched_logbook(log)
    return outcome.leftovers if isinstance(outcome, SessionDeletion) else ()
