"""Find the changes in the store since somebody last looked, whoever made them."""

import msgspec

from interlock.app.context import App
from interlock.core.ids import SessionId


class StoreCursor(msgspec.Struct, frozen=True):
    """The state of the store that somebody has seen."""

    marker: int = -1
    position: int = 0
    session_count: int = 0


class StoreChanges(msgspec.Struct, frozen=True):
    cursor: StoreCursor
    has_changes: bool = False
    sessions: dict[SessionId, int] = {}
    """The sessions with new events, each with the position of its newest. Something else than
    events was written if it is empty though `has_changes` is true: a lease, for one."""
    is_removal: bool = False
    """Whether sessions were removed."""
    missing_sessions: frozenset[SessionId] = frozenset()
    """The watched sessions that no longer exist."""


def current_cursor(app: App) -> StoreCursor:
    with app.reader.snapshot():
        return _cursor(app)


def changes_since(app: App, previous: StoreCursor, watched: frozenset[SessionId]) -> StoreChanges:
    """Return the changes since `previous`, and which of the `watched` sessions are gone."""
    if app.reader.change_marker() == previous.marker:
        return StoreChanges(previous)
    with app.reader.snapshot():
        cursor = _cursor(app)
        changed = app.reader.sessions_changed_since(previous.position)
        missing = frozenset(session for session in watched if app.reader.stream(session) is None)
    # Sessions that were begun meanwhile are among the changed ones.
    is_removal = cursor.session_count < previous.session_count
    is_removal = is_removal or cursor.position < previous.position
    return StoreChanges(
        cursor,
        has_changes=True,
        sessions=changed,
        is_removal=is_removal,
        missing_sessions=missing,
    )


def missed_changes(app: App, session: SessionId | None, position: int | None) -> StoreChanges:
    """Return the changes that somebody has missed who looked last at `position`.

    They looked at `session`, or at all sessions. Whoever has not looked at all missed nothing.
    """
    with app.reader.snapshot():
        cursor = _cursor(app)
        if position is None:
            return StoreChanges(cursor)
        changed = app.reader.sessions_changed_since(position)
        is_missing = session is not None and app.reader.stream(session) is None
    is_changed = bool(changed) if session is None else session in changed
    # If the newest events were removed, nobody knows what else was.
    is_truncated = position > cursor.position
    return StoreChanges(
        cursor, has_changes=is_changed or is_missing or is_truncated, sessions=changed
    )


def _cursor(app: App) -> StoreCursor:
    reader = app.reader
    return StoreCursor(reader.change_marker(), reader.position(), reader.session_count())
