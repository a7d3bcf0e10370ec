"""Whose session a call belongs to when it brings no token."""

from collections.abc import Mapping

from interlock.app.refusals import NoSuchSession
from interlock.app.sessions import find_session
from interlock.core.ids import SessionId
from interlock.store.log import LogReader

LOOK_BACK = 200  # runs among which the current one is looked for


def resolve_session(
    reader: LogReader, explicit: str | None, environment: Mapping[str, str]
) -> SessionId | NoSuchSession | None:
    """The session that was named, by the call or by the environment; None means a new one.

    The start of an id will do if only one session begins so.
    """
    named = explicit or environment.get("INTERLOCK_SESSION")
    if not named:
        return None
    return find_session(reader, named)


def current_session(
    reader: LogReader, explicit: str | None, environment: Mapping[str, str], workspace: str
) -> SessionId | NoSuchSession:
    """The session that was named; else the only one that is still open in `workspace`.

    Where several are open, the refusal lists them.
    """
    named = resolve_session(reader, explicit, environment)
    if named is not None:
        return named
    rows = [row for row in reader.newest_runs(limit=LOOK_BACK) if row.workspace == workspace]
    still_open = {row.session: None for row in rows if row.status in ("open", "waiting")}
    chosen = tuple(still_open) or tuple(row.session for row in rows[:1])
    return chosen[0] if len(chosen) == 1 else NoSuchSession("", chosen[:5])
