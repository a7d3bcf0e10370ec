"""Write a session up as a hand-off, for people who want a file."""

from interlock.app import attend
from interlock.app.context import App
from interlock.app.user import open_gaps
from interlock.core.ids import SessionId
from interlock.core.notes.handoff import Handoff
from interlock.core.session.state import SessionState
from interlock.core.views.handoff_page import handoff_of


def hand_off(app: App, session: SessionId) -> Handoff:
    """Where the session stands. It is known to be there."""
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    state = attend.state_of(app, session)
    gaps = [found.gap for found in open_gaps(app, session)]
    return handoff_of(
        session, stream.head, state if isinstance(state, SessionState) else None, gaps
    )
