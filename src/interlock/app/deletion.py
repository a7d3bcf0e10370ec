"""Delete a session: from the store, from the gate, and what was published of it."""

from pathlib import Path

from interlock.app.context import App
from interlock.app.notes.publish import unpublish
from interlock.app.refusals import NoSuchSession
from interlock.app.sessions import find_session
from interlock.core.ids import SessionId
from interlock.store import gate


def delete(app: App, asked: str) -> SessionId | NoSuchSession:
    """Remove a session and everything that only it names. There is no way back.

    Its note in the project goes too, unless a person has written into it.
    """
    session = find_session(app.reader, asked)
    if isinstance(session, NoSuchSession):
        return session
    stream = app.reader.stream(session)
    app.log.delete(session)
    gate.withdraw(app.home, session)
    if stream and stream.head:
        unpublish(app, session, Path(stream.head.workspace))
    return session
