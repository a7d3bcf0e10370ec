"""The events of a session for programs: as they are recorded, page by page."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlock.app.context import App
from interlock.app.refusals import UnhealthySession
from interlock.app.sessions.lookup import check_stream
from interlock.core.ids import SessionId
from interlock.core.session import chain
from interlock.core.session.chain import GENESIS
from interlock.core.session.events import Envelope, decode_envelope

SCANNED_EVENTS_MAX = 5_000  # events that a filter may pass over before a page comes back
CHUNK = 500

T = TypeVar("T")


class EventPage(msgspec.Struct, frozen=True):
    events: tuple[Envelope, ...]
    """Newest first. With a filter there may be fewer than requested, and yet more pages."""
    next: int | None
    """The `before` of the next page; null on the last one."""


def events(
    app: App, session: SessionId, *, before: int | None, limit: int, kind: str | None
) -> EventPage | UnhealthySession:
    """Return a page of events. Each is checked against the digest before it; only sound ones are
    shown.
    """
    stream = app.reader.known_stream(session)
    at = stream.version if before is None else min(before, stream.version)
    page: list[Envelope] = []
    scanned = 0
    while at > 0 and len(page) < limit and scanned < SCANNED_EVENTS_MAX:
        # One more than is scanned: the last scanned event is checked against its digest.
        links = app.reader.links_before(session, at, limit=CHUNK + 1)
        if not links or links[0].seq != at - 1:
            return UnhealthySession(session, check_stream(app.reader, session))
        for link, older in zip(links[:CHUNK], [*links[1:], None], strict=False):
            digest = older.digest if older else GENESIS
            health = chain.verify_one(session, link, before=digest)
            if health.state != "healthy":
                return UnhealthySession(session, health)
            envelope = decode_envelope(link.body)
            at, scanned = link.seq, scanned + 1
            if kind is None or type(envelope.event).__struct_config__.tag == kind:
                page.append(envelope)
                if len(page) == limit:
                    break
    return EventPage(tuple(page), at or None)


def read_if_sound(app: App, session: SessionId, read: Callable[[], T]) -> T | UnhealthySession:
    """Return what `read` returns, or the damage that keeps the session's events from decoding."""
    try:
        return read()
    except msgspec.DecodeError:
        health = check_stream(app.reader, session)
        if health.state == "healthy":
            raise
        return UnhealthySession(session, health)
