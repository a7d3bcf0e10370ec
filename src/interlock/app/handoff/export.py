"""Export a session as a hand-off, for people who want a file."""

from pathlib import Path

from interlock.app.callers import session_record
from interlock.app.context import App
from interlock.app.runs.user_actions import open_gaps
from interlock.core.handoff.page import handoff_of, merge_handoffs
from interlock.core.handoff.parse import HandoffContent
from interlock.core.ids import SessionId


def session_handoff(app: App, session: SessionId) -> HandoffContent:
    """Return the state of the session as a hand-off. The session must exist."""
    head = app.reader.head(session)
    state = session_record.state_of(app, session)
    # Imported here: the notes take longer to import than everything else in this module.
    from interlock.app.handoff.session_notes import handoff_from_notes  # noqa: PLC0415

    gaps = [open_gap.gap for open_gap in open_gaps(app, session)]
    feature = state.active_feature or ""
    from_notes = handoff_from_notes(app, Path(head.workspace), session, feature=feature)
    own = handoff_of(session, head, app.reader.runs(session), state, gaps)
    return merge_handoffs(own, from_notes)
