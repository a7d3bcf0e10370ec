"""Write a session up as a hand-off, for people who want a file."""

from pathlib import Path

from interlock.app.context import App
from interlock.app.protocol import gated_sessions
from interlock.app.runs.user_actions import open_gaps
from interlock.core.handoff.page import handoff_of, merge_handoffs
from interlock.core.handoff.parse import HandoffContent
from interlock.core.ids import SessionId
from interlock.core.session.state import SessionState


def session_handoff(app: App, session: SessionId) -> HandoffContent:
    """Where the session stands. It is known to be there."""
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    state = gated_sessions.state_of(app, session)
    # Here and not above: the notes cost more to import than all the rest of this.
    from interlock.app.handoff.session_notes import handoff_from_notes  # noqa: PLC0415

    gaps = [found.gap for found in open_gaps(app, session)]
    known = state if isinstance(state, SessionState) else None
    feature = (known.active_feature if known else None) or ""
    noted = handoff_from_notes(app, Path(stream.head.workspace), session, feature=feature)
    return merge_handoffs(handoff_of(session, stream.head, known, gaps), noted)
