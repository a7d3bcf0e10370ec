"""The sessions on the page Now: bands by status, and the order within them."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import SessionId
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.unattended.order import Spent
from interlock.core.unattended.phases import WorkActivity
from interlock.core.views.status import SessionStatus, is_unattended
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.positions import Position

IDLE_AT_MOST_MS = 7 * 86_400_000  # older sessions appear only in the list of sessions
FINISHED_WITHIN_MS = 86_400_000  # where midnight is for the reader is not known here

Band = Literal["running", "idle", "finished"]


class SessionActivity(msgspec.Struct, frozen=True):
    """A session by its newest run, with what is known of whoever works in it."""

    session: SessionId
    head: Head
    run: RunHead | None
    last_ms: int
    """When its agent last did something that was recorded, in the store or by a hook."""
    status: SessionStatus
    client_name: str = ""
    """Its client's name, from hooks or MCP; empty if unknown."""

    @property
    def is_unattended(self) -> bool:
        """Whether its work is unattended. An agent may have continued after that work ended."""
        return is_unattended(self.head, self.run)

    @property
    def title(self) -> str:
        state, attended = self.head.unattended, self.head.attended
        if self.run:
            return self.run.goal or self.run.workflow_id
        if state:
            return state.order.goal
        task = (attended.task or attended.feature) if attended else ""
        return task or "Session without a run"


class UnattendedLine(msgspec.Struct, frozen=True):
    """The unattended work of a session as it goes on, besides what its log says."""

    activity: WorkActivity | None
    spent: Spent
    waits_because: str = ""


class AgentLine(msgspec.Struct, frozen=True):
    """The line of a session, with what is known of its newest run."""

    activity: SessionActivity
    step_number: int = 0
    """The number of the pending step in the definition, from 1; 0 if none is pending."""
    pass_text: str = ""
    step_since_ms: int = 0
    """When the pending step was first shown, whatever was submitted for it since."""
    sentence: str = ""
    """The last sentence of the newest notes."""
    work: UnattendedLine | None = None


def band_of(activity: SessionActivity, *, now_ms: int) -> Band | None:
    """Return None for work that waits for the user (in the inbox) and for old work."""
    status, run, work = activity.status, activity.run, activity.head.unattended
    words = {one.word for one in (status.main, status.beside) if one}
    if status.main.is_finished:
        ended_ms = run.updated_ms if run else activity.head.updated_ms
        ended_ms = work.since_ms if work and activity.is_unattended else ended_ms
        return "finished" if now_ms - ended_ms <= FINISHED_WITHIN_MS else None
    if run is None and not (activity.head.attended or activity.is_unattended):
        return None  # it has no work
    if words & {"waiting", "parked"} or activity.head.waiting_count:
        return None
    if words & {"idle", "disconnected", "paused", "queued"}:
        return "idle" if now_ms - activity.last_ms <= IDLE_AT_MOST_MS else None
    return "running"


def blocked_first(line: AgentLine) -> tuple[int, int, int]:
    """The order of those who work: most refused attempts first, then longest on its step.

    Unattended work comes before them.
    """
    run, state = line.activity.run, line.activity.head.unattended
    if state and line.activity.is_unattended:
        return 0, 0, state.requested_ms
    return 1, -(run.blocked_in_row if run else 0), line.step_since_ms or line.activity.last_ms


def pass_text(workflow: CompiledWorkflow, position: Position, context: Mapping[str, Json]) -> str:
    """The pass of the innermost loop around a position, as `pass 312 of 480`; empty outside."""
    loops = positions.enclosing_loops(workflow, position)
    for depth, enclosing in reversed([*enumerate(loops)]):
        loop = enclosing.loop
        if loop.kind == "group":
            continue
        if loop.takes_decisions:
            return f"pass {enclosing.iteration} of at most {loop.passes_max}"
        outside = positions.scope(workflow, position[: depth + 1], context)
        total = positions.planned_passes(loop, outside)
        return f"pass {enclosing.iteration}" + (f" of {total}" if isinstance(total, int) else "")
    return ""
