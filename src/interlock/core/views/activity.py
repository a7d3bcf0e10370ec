"""Who works now: sessions in bands, by what is recorded of them and by thresholds that are told.

Whether an agent thinks or hangs cannot be seen from here. So a line says when something of it was
last recorded and since when its step is pending; and it is quiet after a fixed time, or once its
client has ended. A run that goes on only with the user is in the inbox, and in no band. What the
user or a deadline decides is no sign of life of the agent, nor is what is recorded along with it.
Of unattended work its phase is known: it says for itself whether somebody works on it.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import SessionId
from interlock.core.session.approval_events import SessionApprovalResolved
from interlock.core.session.events import (
    ApprovalResolved,
    GapResolved,
    PreferencesChanged,
    RunUnblocked,
    SessionArchived,
    SessionEvent,
)
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.unattended.order import ParkReason, Spent, UnattendedState
from interlock.core.unattended.phases import WorkPhase
from interlock.core.views.status import Status, session_status
from interlock.core.workflow import positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.positions import Position

QUIET_AFTER_MS = 15 * 60_000
QUIET_AT_MOST_MS = 7 * 86_400_000  # what was left for longer is for the list of sessions
FINISHED_WITHIN_MS = 86_400_000  # where midnight is for the reader is not known here

Band = Literal["working", "quiet", "finished"]
ClientState = Literal["running", "ended", "unknown"]

STANDSTILLS: Mapping[ParkReason, tuple[str, str]] = {
    "approval": ("It waits for an approval", "Answer it in the inbox; it then goes on."),
    "question": ("A step asks you something", "Write it to the model; it then goes on."),
    "limit": ("A limit is reached", "Raise it, and the work goes on where it stands."),
    "credentials": (
        "The model cannot be used",
        "Fix the cause (the key, or the packages of the provider), then resume the work.",
    ),
    "provider": (
        "The provider does not answer",
        "Let it go on when the provider answers again.",
    ),
    "stuck": (
        "The model goes in circles",
        "Tell it what to do differently, then let it go on.",
    ),
    "sandbox": (
        "Its tools cannot be confined",
        "`interlock sandbox check` says what this machine can enforce, and why not more.",
    ),
    "workspace": (
        "Its worktree cannot be used",
        "`interlock worktrees list` shows where it is. Put it right, then let it go on.",
    ),
    "storage": (
        "Something could not be written",
        "Make room on the disk, or put it right; then let it go on.",
    ),
    "failed": ("Something failed", "Look at its last turns; then let it go on, or cancel it."),
}
"""Why unattended work stands still, and what there is to do about it."""

_OVER = ("done", "done_with_gaps", "abandoned", "ended")
_AT_WORK = ("open", "blocked", "attended")


class SessionActivity(msgspec.Struct, frozen=True):
    """A session by its newest run, with what is known of whoever works in it."""

    session: SessionId
    head: Head
    run: RunHead | None
    last_ms: int
    """When its agent last did something that was recorded, in the store or by a hook."""
    client: ClientState = "unknown"

    @property
    def status(self) -> Status:
        return session_status(self.head, self.run)

    @property
    def end_reason(self) -> str:
        """The reason why nobody works in it whatever the time; empty if there is none."""
        attended = self.head.attended
        if attended and attended.status == "ended" and not attended.is_departed:
            return "the session was ended"
        is_departed = attended is not None and attended.status == "ended"
        return "its client has ended" if is_departed or self.client == "ended" else ""

    @property
    def client_name(self) -> str:
        """The client of its newest conversation; empty if no hook has told of any."""
        attended = self.head.attended
        return attended.hosts[-1][0] if attended and attended.hosts else ""

    @property
    def is_unattended(self) -> bool:
        """Whether its work is unattended. After the end of that, somebody may have gone on."""
        return is_unattended(self.head, self.run)

    @property
    def title(self) -> str:
        state, attended = self.head.unattended, self.head.attended
        if self.run:
            return self.run.goal or self.run.workflow_id
        if state:
            return state.order.goal
        task = (attended.task or attended.feature) if attended else ""
        return task or "Attended session"


class UnattendedLine(msgspec.Struct, frozen=True):
    """The unattended work of a session as it goes on, besides what its log says."""

    phase: WorkPhase
    spent: Spent
    waits_because: str = ""


class AgentLine(msgspec.Struct, frozen=True):
    """The line of a session, with what is known of its newest run."""

    activity: SessionActivity
    step_number: int = 0
    """The number of the pending step in the definition, from 1; 0 if none is pending."""
    pass_text: str = ""
    step_since_ms: int = 0
    """When the pending step was first given, whatever was handed in for it since."""
    sentence: str = ""
    """The last sentence of the newest notes."""
    work: UnattendedLine | None = None


def is_unattended(head: Head, run: RunHead | None) -> bool:
    state = head.unattended
    if state is None:
        return False
    return not (state.is_over and run and run.updated_ms > state.since_ms)


def is_users(event: SessionEvent) -> bool:
    """Whether the user has caused it, or a deadline; what is recorded at that moment follows."""
    match event:
        case ApprovalResolved() | SessionApprovalResolved() | RunUnblocked() | SessionArchived():
            return True
        case GapResolved():
            return event.by == "user"
        case PreferencesChanged():
            return event.source == "user"
        case _:
            return False


def band_of(activity: SessionActivity, *, now_ms: int) -> Band | None:
    """None for what is put aside, was over or left long ago, or waits for the user."""
    status, silent_ms = activity.status, now_ms - activity.last_ms
    if status.code in _OVER:
        run = activity.run
        ended_ms = run.updated_ms if run else activity.head.updated_ms
        return "finished" if now_ms - ended_ms <= FINISHED_WITHIN_MS else None
    if status.code not in _AT_WORK:
        return None
    if not activity.end_reason and silent_ms <= QUIET_AFTER_MS:
        return "working"
    # An approval of its own explains the silence: it waits for the user.
    is_left = activity.head.waiting_count or silent_ms > QUIET_AT_MOST_MS
    return None if is_left else "quiet"


def unattended_band(state: UnattendedState, phase: WorkPhase, *, now_ms: int) -> Band | None:
    """The band of unattended work. What is parked waits for the user, and is in the inbox."""
    match phase.phase:
        case "done":
            return "finished" if now_ms - state.since_ms <= FINISHED_WITHIN_MS else None
        case "parked":
            return None
        case "paused" | "orphaned":
            return "quiet"
        case _:
            return "working"


def standstill_text(state: UnattendedState) -> str:
    """Why it stands still, in one sentence."""
    why, _ = STANDSTILLS[state.reason or "failed"]
    return f"{why}: {state.detail}" if state.detail else why


def stuck_first(line: AgentLine) -> tuple[int, int, int]:
    """The order of those who work: most refused attempts first, then longest on its step.

    Unattended work comes before them, and what is queued after them, in its order.
    """
    run, state = line.activity.run, line.activity.head.unattended
    if state and line.activity.is_unattended:
        return (2 if state.status == "queued" else 0), 0, state.requested_ms
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
