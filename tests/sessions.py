"""Sessions as they are once something of them was worth recording."""

from pathlib import Path

from interlock.app.callers.session_record import StartedSession, session_of
from interlock.app.context import App
from interlock.app.protocol import gated_sessions, progress
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.progress import SubagentReport, TaskReport


def begin_recorded(app: App, root: Path, conversation: Conversation) -> StartedSession:
    """Begin a session as its hook does, and record it."""
    gated_sessions.begin(app, root, conversation)
    session_of(app, conversation)
    return gated_sessions.begin(app, root, conversation)


def record_progress(app: App, session: str) -> None:
    """Record a plan, a task and a subagent that ended."""
    name, talk = SessionId(session), Conversation("claude-code", "talk")
    progress.record_plan(app, name, "claude-code", text="# Plan", file="")
    progress.record_tasks(app, name, TaskReport([("", "Build it", "in_progress")]))
    progress.start_subagent(app, name, SubagentReport("a1", "Explore", "Look"), talk)
    report = SubagentReport("a1", outcome="completed", result="Found it")
    progress.report_subagent(app, name, report, talk)
