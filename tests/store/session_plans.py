"""Plans of sessions that are looked for."""

from interlock.core import ids
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.events import (
    ObservationRecorded,
    OutputAppended,
    RunStarted,
    SessionCreated,
)
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from tests.scenes import ROOT, pinned, run_in


def titled(session: SessionId, title: str, notes: str) -> Plan:
    started = RunStarted(WorkflowId("line"), "1.0.0", pinned().hash, 3, title)
    drafts = (
        EventDraft(f"session:{session}", SessionCreated("/work")),
        EventDraft(f"run:{session}", started, run_in(session)),
        EventDraft(f"seen:{session}", ObservationRecorded("main", "c0ffee"), run_in(session)),
        EventDraft(
            f"note:{session}", OutputAppended(ids.first_attempt(ROOT), notes), run_in(session), ROOT
        ),
    )
    return plan(Stream(session), drafts, blobs={}, at_ms=1_000)
