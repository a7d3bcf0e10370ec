"""The head of a run: what its events add up to, small enough to be read at every call."""

from typing import Literal, TypeAlias, assert_never

import msgspec

from interlock.core.ids import ApprovalId, GapId, NodeId, RunId, WorkflowHash, WorkflowId
from interlock.core.preferences import Preferences
from interlock.core.session.events import (
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
    NodeCreated,
    NodeKind,
    ObservationRecorded,
    OutputAppended,
    PreferencesChanged,
    RunAbandoned,
    RunCompleted,
    RunEvent,
    RunStarted,
    RunUnblocked,
    TraceAppended,
    ValidationPerformed,
)
from interlock.core.session.past import Past, presumed_past

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
    """The number of steps of the definition that were submitted on the way to the tip."""
    steps_skipped: int = 0
    """The number of steps that lie before the pending one and were not."""
    pending_title: str | None = None
    gaps_open: int = 0
    gaps_critical: int = 0
    open_gaps: tuple[GapId, ...] = ()
    """The gaps on the path to the tip; those of other branches do not count."""
    self_attested: tuple[str, ...] = ()
    """Commands of which only the agent says that they passed."""
    capabilities: dict[str, str] = {}
    single_gaps: tuple[str, ...] = ()
    """The capabilities and context keys that a gap was recorded for: once on a line is enough."""
    closed_gaps: tuple[GapId, ...] = ()
    blocked_in_row: int = 0
    """Attempts that were not accepted since a step was last accepted or the user unblocked."""
    approvals: tuple[ApprovalId, ...] = ()
    """Those that wait for an answer."""
    recap: str = ""
    """The start of the newest notes."""
    recap_step: str = ""
    """The title of their step; empty if another branch had continued."""
    asks_user: bool = False
    """Whether the agent must ask the user before it submits the pending step."""
    updated_ms: int = 0
    """The time of its last event."""
    git_branch: str | None = None
    git_head: str | None = None
    """The branch and the commit as they were last seen during the run."""

    @property
    def is_waiting(self) -> bool:
        """Whether the run waits for the user after too many blocked attempts."""
        return self.blocked_in_row >= BLOCKED_IN_ROW_MAX

    @property
    def waiting_count(self) -> int:
        """The number of things in it that wait for the user."""
        if self.status == "abandoned":
            return 0
        is_stopped = self.status == "waiting" and self.is_waiting
        is_asking = self.status == "open" and self.asks_user and not self.blocked_in_row
        return len(self.approvals) + self.gaps_critical + is_stopped + is_asking


decode_run_head = msgspec.json.Decoder(RunHead).decode


def new_run_head(
    envelope: Envelope, event: RunStarted, *, git_branch: str | None, git_head: str | None
) -> RunHead:
    """The head of a run that begins, where this was last seen of git."""
    return RunHead(
        _run_of(envelope),
        event.workflow_id,
        event.workflow_version,
        event.workflow_hash,
        event.step_count,
        event.goal,
        updated_ms=envelope.at_ms,
        git_branch=git_branch,
        git_head=git_head,
    )


def apply_run_event(run: RunHead, envelope: Envelope) -> RunHead:
    """The head after one more event of the run, which has been started."""
    change, event = msgspec.structs.replace, envelope.event
    run = change(run, updated_ms=envelope.at_ms)
    if not isinstance(event, RunEvent | ObservationRecorded):
        return run  # it is about the session
    match event:
        case ObservationRecorded():
            return change(run, git_branch=event.git_branch, git_head=event.git_head)
        case OutputAppended():
            recap = event.notes.strip()[:RECAP_CHARS_MAX]
            if not recap:
                return run
            title = run.pending_title if envelope.node == run.tip else None
            return change(run, recap=recap, recap_step=title or "")
        case AdvanceRecorded() | ContextSet() | DivergenceRecorded() | TraceAppended():
            return run
        case AssessmentRecorded() | ValidationPerformed() | RunStarted():
            return run
        case EvidenceRecorded():
            return _with_evidence(run, event)
        case NodeCreated(node_kind="checkpoint") | NodeCreated(is_aside=True):
            return run
        case NodeCreated():
            return _with_new_node(run, envelope, event)
        case RunUnblocked():
            return change(run, status="open", blocked_in_row=0)
        case RunAbandoned():
            # Nothing is pending any more, and nothing waits for an answer.
            return change(
                run, status="abandoned", pending_title=None, approvals=(), blocked_in_row=0
            )
        case _:
            return with_fact(run, event)


def _with_new_node(run: RunHead, envelope: Envelope, event: NodeCreated) -> RunHead:
    past = event.past or presumed_past(event.number)
    run = on_line(with_blocked_count(run, event.node_kind), past)
    return msgspec.structs.replace(
        run,
        tip=envelope.node,
        steps_done=past.done_count,
        steps_skipped=past.skipped_count(event.number),
        pending_title=event.step_title,
        asks_user=event.asks_user,
        status="waiting" if run.is_waiting or event.node_kind == "approval" else "open",
    )


def on_line(run: RunHead, past: Past) -> RunHead:
    """The run with the gaps of the line of nodes that leads to a node with this past.

    A closed gap is closed on every branch.
    """
    if past.open_gaps is None:
        return run
    gaps = {gap: severity for gap, severity in past.open_gaps if gap not in run.closed_gaps}
    return msgspec.structs.replace(
        run,
        gaps_open=len(gaps),
        gaps_critical=list(gaps.values()).count("critical"),
        open_gaps=tuple(gaps),
        single_gaps=past.gap_subjects,
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
            run = change(run, closed_gaps=(*run.closed_gaps, event.gap))
            if event.gap not in run.open_gaps:
                return run  # it is on another branch
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
    if event.gap in run.open_gaps:
        return run  # the node's own event is already applied
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
