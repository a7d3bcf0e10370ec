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
    sessions: frozenset[SessionId] = frozenset()
    """Where there are new events. None, though there is news: something was removed."""


def seen(app: App) -> Seen:
    return Seen(app.reader.mark(), app.reader.position())


def news(app: App, before: Seen) -> News:
    mark = app.reader.mark()
    if mark == before.mark:
        return News(before)
    now = Seen(mark, app.reader.position())
    return News(now, is_any=True, sessions=frozenset(app.reader.changed_since(before.position)))


def since(app: App, position: int) -> frozenset[SessionId] | None:
    """The sessions with events after `position`; None where that cannot be told any more."""
    if position > app.reader.position():
        return None
    return frozenset(app.reader.changed_since(position))
