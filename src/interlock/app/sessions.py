"""Look at sessions: which there are, what happened in one, and whether the store is sound."""

from collections.abc import Iterator

import msgspec

from interlock.app.context import App
from interlock.app.refusals import NoSuchSession
from interlock.core.ids import SessionId
from interlock.core.session import chain
from interlock.core.session.chain import Health
from interlock.core.session.events import Envelope, NodeCreated, decode_envelope
from interlock.core.session.head import Head
from interlock.store.failures import StoreFailure
from interlock.store.log import LogReader, SessionRow

SESSIONS_MAX = 1_000_000


class SessionView(msgspec.Struct, frozen=True):
    """A session and its events, as far as they are sound."""

    session: SessionId
    head: Head
    health: Health
    events: tuple[Envelope, ...]


def list_sessions(app: App, *, limit: int) -> list[SessionRow]:
    return app.reader.sessions(limit=limit)


def show_session(app: App, asked: str) -> SessionView | NoSuchSession:
    """The session whose id is `asked` or begins so."""
    found = app.reader.find_session(asked)
    if asked in found:
        found = [SessionId(asked)]
    if len(found) != 1 or not asked:
        return NoSuchSession(asked, tuple(found))
    session = found[0]
    stream = app.reader.stream(session)
    assert stream is not None, "it was found a moment ago"
    assert stream.head is not None, "a stored stream has a head"
    health = check_stream(app.reader, session)
    sound = (link for link in app.reader.links(session) if link.seq < health.valid)
    events = tuple(decode_envelope(link.body) for link in sound)
    return SessionView(session, stream.head, health, events)


def verify_all(app: App) -> Iterator[tuple[SessionId, Health]]:
    """Every session with its health, one by one, so that a caller can show how far it is."""
    for row in app.reader.sessions(limit=SESSIONS_MAX):
        yield row.session, check_stream(app.reader, row.session)


def check_stream(reader: LogReader, session: SessionId) -> Health:
    """Walk the chain, then ask for every blob that its events name."""
    stream = reader.stream(session)
    assert stream is not None, f"{session} is listed"
    health = chain.verify(session, reader.links(session), version=stream.version, end=stream.end)
    if health.state != "healthy":
        return health
    for link in reader.links(session):
        envelope = decode_envelope(link.body)
        if isinstance(envelope.event, NodeCreated) and (reason := _missing(reader, envelope.event)):
            return Health("corrupt_tail" if link.seq else "corrupt_head", link.seq, reason)
    return health


def _missing(reader: LogReader, created: NodeCreated) -> str:
    for ref in (created.answer, created.prompt):
        try:
            if ref:
                reader.blob(ref)
        except StoreFailure as failure:
            return str(failure)
    return ""
