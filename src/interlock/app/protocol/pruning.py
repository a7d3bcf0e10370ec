"""Delete the sessions in which nothing was ever done, with what they left in their projects."""

import msgspec

from interlock.app.context import App
from interlock.app.protocol import deletion
from interlock.app.protocol.presence import end_departed_sessions
from interlock.app.sessions.logbook_file import delete_untouched_logbook, load_session_log
from interlock.app.sessions.quiet import is_quiet
from interlock.core.ids import SessionId
from interlock.core.session.head import Head
from interlock.store.records import SessionFilter
from interlock.workspace.machine import clients

_ALL = 1_000_000


class PrunedSession(msgspec.Struct, frozen=True):
    session: SessionId
    workspace: str
    leftovers: tuple[str, ...] = ()
    """Files that are still in the project, each in a sentence with the reason."""


def prune(app: App, *, is_dry: bool) -> list[PrunedSession]:
    """Delete the sessions that are over, or quiet, and hold no work; return them."""
    end_departed_sessions(app)
    presence = clients.look_for_clients(app.home)
    pruned: list[PrunedSession] = []
    every_session = SessionFilter(is_archived=None)
    for listed in app.reader.list_sessions(every_session, before=None, limit=_ALL).sessions:
        head, session = listed.head, listed.session
        if not _is_empty(head):
            continue
        is_over = head.attended is not None and head.attended.status == "ended"
        if not is_over and not is_quiet(head, presence, now_ms=app.clock.now_ms()):
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
    return attended.status != "paused" and not has_work


def _delete(app: App, session: SessionId) -> tuple[str, ...]:
    log = load_session_log(app.reader, session)
    outcome = deletion.delete(app, session)
    if log:
        delete_untouched_logbook(log)
    return outcome.leftovers if isinstance(outcome, deletion.SessionDeletion) else ()
