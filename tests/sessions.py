"""Sessions as they are once something of them was worth recording."""

from pathlib import Path

from interlock.app.callers.session_record import StartedSession, session_of
from interlock.app.context import App
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation


def begin_recorded(app: App, root: Path, conversation: Conversation) -> StartedSession:
    """Begin a session as its hook does, and record it."""
    gated_sessions.begin(app, root, conversation)
    session_of(app, conversation)
    return gated_sessions.begin(app, root, conversation)
