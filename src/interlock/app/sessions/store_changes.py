"""What has changed in the store, whoever changed it."""

import msgspec

from interlock.app.context import App
from interlock.core.ids import SessionId


class StoreCursor(msgspec.Struct, frozen=True):
    """How far somebody has looked."""

    marker: int = -1
    position: int = 0


class StoreChanges(msgspec.Struct, frozen=True):
    cursor: StoreCursor
    has_changes: bool = False
    sessions: dict[SessionId, int] = {}
    """Where there are new events, and the position of the newest. None, though there is news:
    something was removed."""
    missing_sessions: frozenset[SessionId] = frozenset()
    """Those of the watched sessions that are not there."""


def current_cursor(app: App) -> StoreCursor:
    with app.reader.snapshot():
        return StoreCursor(app.reader.change_marker(), app.reader.position())


def changes_since(app: App, before: StoreCursor, watched: frozenset[SessionId]) -> StoreChanges:
    """What there is since `before`, and which of the `watched` sessions are gone."""
    if app.reader.change_marker() == before.marker:
        return StoreChanges(before)
    with app.reader.snapshot():
        now = StoreCursor(app.reader.change_marker(), app.reader.position())
        changed = app.reader.sessions_changed_since(before.position)
        gone = frozenset(session for session in watched if app.reader.stream(session) is None)
    return StoreChanges(now, has_changes=True, sessions=changed, missing_sessions=gone)


def missed_changes(app: App, session: SessionId | None, position: int | None) -> StoreChanges:
    """What somebody has missed who looked last at `position`, at one session or at all.

    Whoever has not looked at all has missed nothing.
    """
    with app.reader.snapshot():
        now = StoreCursor(app.reader.change_marker(), app.reader.position())
        if position is None:
            return StoreChanges(now)
        changed = app.reader.sessions_changed_since(position)
        is_gone = session is not None and app.reader.stream(session) is None
    # Where the newest events were removed, nobody knows what else was.
    is_any = bool(changed) if session is None else session in changed
    return StoreChanges(
        now, has_changes=is_any or is_gone or position > now.position, sessions=changed
    )
