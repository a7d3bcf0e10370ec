"""Delete a session from the store and the gate, with its published note."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.protocol.publish import unpublish_session
from interlock.app.refusals import NoSuchSession
from interlock.app.sessions.lookup import find_session
from interlock.core.ids import SessionId
from interlock.store import gate_rows
from interlock.store.driver_journal import forget_journal


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
