"""The head of a session: what its events add up to, small enough to be read at every call."""

from typing import Literal, TypeAlias, assert_never

import msgspec

from interlock.core.gate.state import Mode
from interlock.core.ids import ApprovalId, GapId, NodeId, RunId, WorkflowHash, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.session.events import (
    DEPARTED,
    AdvanceRecorded,
    ApprovalRequested,
    ApprovalResolved,
    AssessmentRecorded,
    CapabilityObserved,
    ContextSet,
    DivergenceRecorded,
    Envelope,
    EvidenceRecorded,
    GapRecorded,
    GapResolved,
    HostBound,
    ModeChanged,
    NodeCreated,
    NodeKind,
    ObservationRecorded,
    OutputAppended,
    Phase,
    PreferencesChanged,
    ProtocolStarted,
    RunAbandoned,
    RunCompleted,
    RunStarted,
    RunUnblocked,
    SessionArchived,
    SessionCreated,
    SessionStatus,
    StatusChanged,
    TraceAppended,
    ValidationPerformed,
    WorkChanged,
)
from interlock.core.session.past import presumed_past

RECAP_CHARS_MAX = 800  # what resume searches and shows; the whole notes are in the events
BLOCKED_IN_ROW_MAX = 10  # after so many blocked attempts the run waits for the user

RunFact: TypeAlias = (
    PreferencesChanged
    | CapabilityObserved
    | GapRecorded
    | GapResolved
    | RunCompleted
    | ApprovalRequested
    | ApprovalResolved
)
RunStatus = Literal["open", "waiting", "complete", "complete_with_gaps", "abandoned"]


class RunHead(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    run: RunId
    workflow_id: WorkflowId
    workflow_version: str
    workflow_hash: WorkflowHash
    step_count: int
    goal: str
    preferences: Preferences = Preferences()
    status: RunStatus = "open"
    tip: NodeId | None = None
    """The step or blocked node made last: where work goes on unless somebody says otherwise."""
    steps_done: int = 0
    """The number of steps of the definition that were handed in on the way to the tip."""
    steps_skipped: int = 0
    """The number of steps that lie before the pending one and were not."""
    pending_title: str | None = None
    gaps_open: int = 0
    gaps_critical: int = 0
    open_gaps: tuple[GapId, ...] = ()
    self_attested: tuple[str, ...] = ()
    """Commands of which only the agent says that they passed."""
    capabilities: dict[str, str] = {}
    single_gaps: tuple[str, ...] = ()
    """The capabilities and context keys that a gap was recorded for: once in a run is enough."""
    blocked_in_row: int = 0
    """Attempts that were not accepted since a step was last accepted or the user unblocked."""
    approvals: tuple[ApprovalId, ...] = ()
    """Those that wait for an answer."""
    recap: str = ""
    """The start of the newest notes."""
    recap_step: str = ""
    """The title of the step they were handed in for; empty if work had gone on elsewhere."""

    @property
    def is_waiting(self) -> bool:
        """Whether the run waits for the user after too many blocked attempts."""
        return self.blocked_in_row >= BLOCKED_IN_ROW_MAX


class Attendance(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state that binds the agent of a session: its mode and its work."""

    mode: Mode
    status: SessionStatus = "active"
    is_departed: bool = False
    """Whether it has ended because its client did, and so goes on with it."""
    is_started: bool = False
    feature: str = ""
    task: str = ""
    phase: Phase = "planning"
    may_code: bool = False
    """Whether the user has let this conversation go on to coding, and not gone back since."""
    hosts: tuple[tuple[str, str], ...] = ()
    """The conversations of agent clients that ever belonged to it: host, and its id there."""


class Head(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    workspace: str
    created_ms: int
    updated_ms: int
    attended: Attendance | None = None
    """Of a session that a gate watches over."""
    runs: tuple[RunHead, ...] = ()
    git_branch: str | None = None
    git_head: str | None = None
    is_archived: bool = False
    imported_from: str = ""
    """The session that it is a copy of; empty if it began here."""

    def run(self, run: RunId) -> RunHead:
        return next(found for found in self.runs if found.run == run)


decode_head = msgspec.json.Decoder(Head).decode


def apply_event(head: Head | None, envelope: Envelope) -> Head:
    """The head after one more event."""
    event = envelope.event
    if isinstance(event, SessionCreated):
        assert head is None, "a session is created once"
        return Head(
            event.workspace,
            created_ms=envelope.at_ms,
            updated_ms=envelope.at_ms,
            imported_from=event.imported_from,
        )
    assert head is not None, "a session begins with its creation"
    head = msgspec.structs.replace(head, updated_ms=envelope.at_ms)
    match event:
        case ObservationRecorded():
            return msgspec.structs.replace(
                head, git_branch=event.git_branch, git_head=event.git_head
            )
        case OutputAppended():
            run = head.run(_run_of(envelope))
            recap = event.notes.strip()[:RECAP_CHARS_MAX]
            if not recap:
                return head
            title = run.pending_title if envelope.node == run.tip else None
            run = msgspec.structs.replace(run, recap=recap, recap_step=title or "")
            return _with_run(head, run)
        case SessionArchived():
            return msgspec.structs.replace(head, is_archived=event.is_archived)
        case RunStarted():
            return msgspec.structs.replace(head, runs=(*head.runs, _new_run_head(envelope, event)))
        case AdvanceRecorded() | ContextSet() | DivergenceRecorded() | TraceAppended():
            return head
        case AssessmentRecorded():
            return head
        case EvidenceRecorded():
            return _with_run(head, _with_evidence(head.run(_run_of(envelope)), event))
        case NodeCreated(node_kind="checkpoint") | NodeCreated(is_aside=True):
            return head
        case ValidationPerformed():
            return head
        case NodeCreated():
            return _with_run(head, _with_new_node(head.run(_run_of(envelope)), envelope, event))
        case HostBound() | ModeChanged() | WorkChanged() | ProtocolStarted() | StatusChanged():
            attended = _apply_to_attended(head.attended, event)
            return msgspec.structs.replace(head, attended=attended)
        case RunUnblocked():
            run = head.run(_run_of(envelope))
            run = msgspec.structs.replace(run, status="open", blocked_in_row=0)
            return _with_run(head, run)
        case RunAbandoned():
            run = head.run(_run_of(envelope))
            # Nothing is pending any more, and nothing waits for an answer.
            run = msgspec.structs.replace(
                run, status="abandoned", pending_title=None, approvals=(), blocked_in_row=0
            )
            return _with_run(head, run)
        case _:
            return _with_run(head, with_fact(head.run(_run_of(envelope)), event))


def _apply_to_attended(
    before: Attendance | None,
    event: HostBound | ModeChanged | WorkChanged | ProtocolStarted | StatusChanged,
) -> Attendance:
    if isinstance(event, ModeChanged):
        if before is None:
            return Attendance(event.mode)
        may_code = before.may_code or event.is_agreed
        if event.by == "user":
            # A user who goes back to reading does not want to find the agent coding again.
            may_code = event.mode in ("coding", "disabled")
        return msgspec.structs.replace(before, mode=event.mode, may_code=may_code)
    assert before is not None, "a session is attended from its first mode on"
    change = msgspec.structs.replace
    match event:
        case HostBound():
            pair = (event.host, event.host_session)
            hosts = (*(p for p in before.hosts if p != pair), pair)
            # The user has agreed to it in another conversation, unless this is the same, renamed.
            may_code = before.may_code and event.source in ("clear", "compact")
            return change(before, hosts=hosts, may_code=may_code)
        case WorkChanged():
            return change(before, feature=event.feature, task=event.task, phase=event.phase)
        case ProtocolStarted():
            return change(before, is_started=True)
        case StatusChanged():
            is_departed = (event.status, event.reason) == ("ended", DEPARTED)
            return change(before, status=event.status, is_departed=is_departed)
        case _:
            assert_never(event)


def _with_run(head: Head, run: RunHead) -> Head:
    runs = tuple(run if found.run == run.run else found for found in head.runs)
    return msgspec.structs.replace(head, runs=runs)


def _new_run_head(envelope: Envelope, event: RunStarted) -> RunHead:
    return RunHead(
        _run_of(envelope),
        event.workflow_id,
        event.workflow_version,
        event.workflow_hash,
        event.step_count,
        event.goal,
    )


def _with_new_node(run: RunHead, envelope: Envelope, event: NodeCreated) -> RunHead:
    run = with_blocked_count(run, event.node_kind)
    past = event.past or presumed_past(event.number)
    return msgspec.structs.replace(
        run,
        tip=envelope.node,
        steps_done=past.done_count,
        steps_skipped=past.skipped_count(event.number),
        pending_title=event.step_title,
        status="waiting" if run.is_waiting or event.node_kind == "approval" else "open",
    )


def with_blocked_count(run: RunHead, kind: NodeKind) -> RunHead:
    """The run with one more blocked attempt, or with none since a step was accepted."""
    count = run.blocked_in_row + 1 if kind == "blocked" else 0
    return msgspec.structs.replace(run, blocked_in_row=count)


def with_fact(run: RunHead, event: RunFact) -> RunHead:
    """The run after something became known about it that does not move it."""
    change = msgspec.structs.replace
    match event:
        case PreferencesChanged():
            return change(run, preferences=event.preferences)
        case CapabilityObserved():
            capabilities = {**run.capabilities, event.capability: event.status}
            return change(run, capabilities=dict(sorted(capabilities.items())))
        case GapRecorded():
            return _with_gap(run, event)
        case GapResolved():
            critical = run.gaps_critical - (event.severity == "critical")
            left = tuple(gap for gap in run.open_gaps if gap != event.gap)
            run = change(run, gaps_open=run.gaps_open - 1, gaps_critical=critical, open_gaps=left)
            is_mended = run.status == "complete_with_gaps" and not critical
            return change(run, status="complete") if is_mended else run
        case RunCompleted():
            return change(run, status="complete_with_gaps" if run.gaps_critical else "complete")
        case ApprovalRequested():
            return change(run, approvals=(*run.approvals, event.approval))
        case ApprovalResolved():
            left = tuple(found for found in run.approvals if found != event.approval)
            return change(run, approvals=left)
        case _:
            assert_never(event)


def _with_gap(run: RunHead, event: GapRecorded) -> RunHead:
    subject = event.capability or event.context_key
    return msgspec.structs.replace(
        run,
        gaps_open=run.gaps_open + 1,
        gaps_critical=run.gaps_critical + (event.severity == "critical"),
        open_gaps=(*run.open_gaps, event.gap),
        single_gaps=(*run.single_gaps, *((subject,) if subject else ())),
    )


def _with_evidence(run: RunHead, event: EvidenceRecorded) -> RunHead:
    commands = tuple(command for command in run.self_attested if command != event.command)
    if event.basis == "self_attested":
        commands = (*commands, event.command)
    return msgspec.structs.replace(run, self_attested=commands)


def _run_of(envelope: Envelope) -> RunId:
    assert envelope.run is not None, f"{envelope.key} belongs to a run"
    return envelope.run
