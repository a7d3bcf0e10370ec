"""What was acknowledged before a kill -9, and what is there after it."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.sessions.lookup import SessionView, show_session
from interlock.core.session.events import AdvanceRecorded, NodeCreated, OutputAppended
from tests.effort import scale
from tests.scenes import linear

ROUNDS = scale(40, at_least=20)


def project_with_line(project: Path, *, steps: int) -> None:
    directory = project / ".interlock" / "workflows"
    directory.mkdir(parents=True)
    (directory / "line.json").write_bytes(msgspec.json.encode(linear(steps)))


def check(app: App, session: str, acknowledged: list[str]) -> None:
    """Everything acknowledged, once and in order; at most the last call was heard by nobody."""
    view = show_session(app, session)
    assert isinstance(view, SessionView)
    assert view.health.state == "healthy"
    events = [envelope.event for envelope in view.events]
    notes = [event.notes for event in events if isinstance(event, OutputAppended)]
    assert notes[: len(acknowledged)] == acknowledged
    assert len(notes) - len(acknowledged) <= 1
    nodes = [event.depth for event in events if isinstance(event, NodeCreated)]
    assert nodes == list(range(len(notes) + 1)), "no fork that nobody asked for"
    assert sum(isinstance(event, AdvanceRecorded) for event in events) == len(notes)
