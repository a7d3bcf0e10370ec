"""What has changed in the store, whoever changed it."""

import msgspec

from interlock.app.context import App
from interlock.core.ids import SessionId


class Seen(msgspec.Struct, frozen=True):
    """How far somebody has looked."""

    mark: int = -1
    position: int = 0


class News(msgspec.Struct, frozen=True):
    seen: Seen
    is_any: bool = False
    sessions: dict[SessionId, int] = {}
    """Where there are new events, and the position of the newest. None, though there is news:
    something was removed."""
    gone: frozenset[SessionId] = frozenset()
    """Those of the watched sessions that are not there."""


def seen(app: App) -> Seen:
    with app.reader.snapshot():
        return Seen(app.reader.mark(), app.reader.position())


def news(app: App, before: Seen, watched: frozenset[SessionId]) -> News:
    """What there is since `before`, and which of the `watched` sessions are gone."""
    if app.reader.mark() == before.mark:
        return News(before)
    with app.reader.snapshot():
        now = Seen(app.reader.mark(), app.reader.position())
        changed = app.reader.changed_since(before.position)
        gone = frozenset(session for session in watched if app.reader.stream(session) is None)
    return News(now, is_any=True, sessions=changed, gone=gone)


def missed(app: App, session: SessionId | None, position: int | None) -> News:
    """What somebody has missed who looked last at `position`, at one session or at all.

    Whoever has not looked at all has missed nothing.
    """
    with app.reader.snapshot():
        now = Seen(app.reader.mark(), app.reader.position())
        if position is None:
            return News(now)
        changed = app.reader.changed_since(position)
        is_gone = session is not None and app.reader.stream(session) is None
    # Where the newest events were removed, nobody knows what else was.
    is_any = bool(changed) if session is None else session in changed
    return News(now, is_any=is_any or is_gone or position > now.position, sessions=changed)
