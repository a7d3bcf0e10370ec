"""The head of a session: what its events add up to, small enough to be read at every call."""

from typing import Literal, assert_never

import msgspec

from interlock.core.ids import NodeId, RunId, WorkflowHash, WorkflowId
from interlock.core.session.events import (
    AdvanceRecorded,
    Envelope,
    NodeCreated,
    OutputAppended,
    RunCompleted,
    RunStarted,
    SessionCreated,
)

RECAP_CHARS_MAX = 400  # a line or two in a list; the whole notes are in the events


class RunHead(msgspec.Struct, frozen=True, rename="camel"):
    run: RunId
    workflow_id: WorkflowId
    workflow_version: str
    workflow_hash: WorkflowHash
    step_count: int
    goal: str
    status: Literal["open", "complete"] = "open"
    tip: NodeId | None = None
    """The node created last: where work goes on unless somebody says otherwise."""
    steps_done: int = 0
    pending_title: str | None = None


class Head(msgspec.Struct, frozen=True, rename="camel"):
    workspace: str
    created_ms: int
    updated_ms: int
    runs: tuple[RunHead, ...] = ()
    recap: str = ""
    """The start of the newest notes."""

    def run(self, run: RunId) -> RunHead:
        return next(found for found in self.runs if found.run == run)


decode_head = msgspec.json.Decoder(Head).decode


def apply(head: Head | None, envelope: Envelope) -> Head:
    """The head after one more event."""
    event = envelope.event
    if isinstance(event, SessionCreated):
        assert head is None, "a session is created once"
        return Head(event.workspace, created_ms=envelope.at_ms, updated_ms=envelope.at_ms)
    assert head is not None, "a session begins with its creation"
    head = msgspec.structs.replace(head, updated_ms=envelope.at_ms)
    match event:
        case RunStarted():
            started = RunHead(
                _run_of(envelope),
                event.workflow_id,
                event.workflow_version,
                event.workflow_hash,
                event.step_count,
                event.goal,
            )
            return msgspec.structs.replace(head, runs=(*head.runs, started))
        case NodeCreated():
            return _change_run(
                head,
                envelope,
                tip=envelope.node,
                steps_done=event.cursor,
                pending_title=event.step_title,
                status="open",
            )
        case OutputAppended():
            return msgspec.structs.replace(head, recap=event.notes.strip()[:RECAP_CHARS_MAX])
        case RunCompleted():
            return _change_run(head, envelope, status="complete")
        case AdvanceRecorded():
            return head
        case _:
            assert_never(event)


def _change_run(head: Head, envelope: Envelope, **changes: object) -> Head:
    run = _run_of(envelope)
    return msgspec.structs.replace(
        head,
        runs=tuple(
            msgspec.structs.replace(found, **changes) if found.run == run else found
            for found in head.runs
        ),
    )


def _run_of(envelope: Envelope) -> RunId:
    assert envelope.run is not None, f"{envelope.key} belongs to a run"
    return envelope.run
