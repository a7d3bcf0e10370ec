"""The record of which notes a session has written: its own note links to them."""

from contextlib import suppress

from interlock.app.append_loop import append_plan
from interlock.app.callers.caller import Caller, session_meant
from interlock.app.context import App
from interlock.app.notes.results import NoteChangeResult
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal
from interlock.core.session.events import NoteWritten
from interlock.core.session.plan import EventDraft, Plan, plan
from interlock.store.failures import StoreFailure


def calling_session(app: App, caller: Caller) -> SessionId | None:
    """The session in which a note is written; None if it is not known.

    A store that is missing or unusable does not prevent a note from being written: it is a file.
    """
    with suppress(StoreFailure):
        session = session_meant(app, caller)
        return session if isinstance(session, str) else None
    return None


def record_written_note(
    app: App, session: SessionId | None, result: NoteChangeResult | Refusal
) -> None:
    """Record that an attended session has written or edited a note; of each note once."""
    if session is None or not isinstance(result, NoteChangeResult) or result.result == "unchanged":
        return
    key = f"note-written:{result.permalink}"

    def decide() -> Plan | None:
        with app.log.snapshot():
            stream = app.log.stream(session)
            attended = stream.head.attended if stream and stream.head else None
            is_open = attended is not None and attended.status != "ended"
            if stream is None or not is_open or app.log.event_with_key(session, key):
                return None
        draft = EventDraft(key, NoteWritten(result.permalink))
        return plan(stream, [draft], blobs={}, at_ms=app.clock.now_ms())

    with suppress(StoreFailure):  # the note is written, and says itself where it comes from
        append_plan(app, decide)
