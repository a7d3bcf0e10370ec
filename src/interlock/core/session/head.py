"""The head of a session: what its events add up to, apart from those of its runs."""

from typing import assert_never

import msgspec

from interlock.core.gate.state import Mode
from interlock.core.ids import RunId
from interlock.core.preferences import Autonomy
from interlock.core.session.approval_events import (
    OpenApproval,
    SessionApprovalEvent,
    open_approvals_after,
)
from interlock.core.session.delegation_events import (
    AgentCompleted,
    AgentInvoked,
    DecisionRecorded,
    DelegationEvent,
    HandoffPassedOn,
    HandoffReceived,
)
from interlock.core.session.delivery_events import DeliveryEvent, apply_delivery
from interlock.core.session.events import (
    DEPARTED,
    Envelope,
    HostBound,
    ModeChanged,
    NodeCreated,
    ObservationRecorded,
    Phase,
    PreferencesChanged,
    ProtocolStarted,
    RunStarted,
    SessionArchived,
    SessionCreated,
    SessionStatus,
    StatusChanged,
    WorkChanged,
)
from interlock.core.session.progress_events import ProgressEvent
from interlock.core.session.protocol_events import (
    ProtocolEndRefused,
    ProtocolEndRequested,
    RequirementWaived,
    SessionCompleted,
)
from interlock.core.session.review_events import (
    FeatureReviewed,
    FeatureReviewRequested,
    ReviewEvent,
)
from interlock.core.session.start_evidence import open_at_start
from interlock.core.session.unattended_events import UnattendedEvent, apply_unattended
from interlock.core.unattended.order import UnattendedState


class Attendance(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state that binds the agent of a session: its mode and its work."""

    mode: Mode
    status: SessionStatus = "active"
    is_departed: bool = False
    """Whether it has ended because its client did, and so goes on with it."""
    is_resumed: bool = False
    """Whether an agent has worked in one of its runs since it ended."""
    is_started: bool = False
    open_start: tuple[str, ...] = ()
    """The requirements of the start that must be met and are not."""
    feature: str = ""
    task: str = ""
    phase: Phase = "planning"
    may_code: bool = False
    """Whether the user has let this conversation go on to coding, and not gone back since."""
    delegation_count: int = 0
    """How many delegations and decisions were recorded."""
    has_progress: bool = False
    """Whether a plan, a task list or a subagent was recorded."""
    ending_job: str = ""
    """The job that is to end it, until that has an outcome."""
    ending_since_ms: int = 0
    ended_by: str = ""
    """The job that has ended it by its protocol."""
    awaited_agents: tuple[str, ...] = ()
    """The agents that hand-offs wait for, one for each hand-off."""
    passed_to: tuple[str, ...] = ()
    """The sessions that have taken up hand-offs of this one."""
    open_reviews: tuple[tuple[str, int], ...] = ()
    """The reviews of features that wait for verdicts, each with its deadline in milliseconds."""
    autonomy: Autonomy | None = None
    """The user's choice for the session; None for the default."""
    hosts: tuple[tuple[str, str], ...] = ()
    """The conversations of agent clients that ever belonged to it: host, and its id there."""

    @property
    def was_ended(self) -> bool:
        """Whether the user or the agent ended it; the exit of its client is no such end."""
        return self.status == "ended" and not self.is_departed


class Head(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    workspace: str
    created_ms: int
    updated_ms: int
    attended: Attendance | None = None
    """Of a session that a gate watches over."""
    run_count: int = 0
    latest_run: RunId | None = None
    """The run that was started last."""
    git_branch: str | None = None
    git_head: str | None = None
    is_archived: bool = False
    imported_from: str = ""
    """The session that it is a copy of; empty if it began here."""
    approvals: tuple[OpenApproval, ...] = ()
    """The session's own that are open; those of its runs are in their heads."""
    unattended: UnattendedState | None = None
    """Of a session in which a driver works, or has worked."""

    @property
    def is_over(self) -> bool:
        """Whether it was ended by more than the exit of its client."""
        attended = self.attended
        return attended is not None and attended.was_ended and not attended.is_resumed

    @property
    def waiting_count(self) -> int:
        """The number of its own unanswered approvals; 0 after it has ended."""
        return 0 if self.is_over else sum(not one.is_granted for one in self.approvals)


decode_head = msgspec.json.Decoder(Head).decode


def apply_event(head: Head | None, envelope: Envelope) -> Head:
    """The head after one more event, be it of the session or of one of its runs."""
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
    change = msgspec.structs.replace
    head = change(head, updated_ms=envelope.at_ms)
    if isinstance(event, SessionApprovalEvent):
        return change(head, approvals=open_approvals_after(head.approvals, event, envelope.at_ms))
    if isinstance(event, UnattendedEvent):
        return change(head, unattended=apply_unattended(head.unattended, event, envelope.at_ms))
    if isinstance(event, DeliveryEvent):
        assert head.unattended is not None, "only unattended work is delivered"
        return change(head, unattended=apply_delivery(head.unattended, event, envelope.at_ms))
    if isinstance(event, ProgressEvent):
        assert head.attended is not None, "a hook recorded it"
        return change(head, attended=change(head.attended, has_progress=True))
    match event:
        case ObservationRecorded():
            return change(head, git_branch=event.git_branch, git_head=event.git_head)
        case SessionArchived():
            return change(head, is_archived=event.is_archived)
        case PreferencesChanged(preferences=preferences) if head.attended and not envelope.run:
            attended = change(head.attended, autonomy=preferences.autonomy)
            return change(head, attended=attended)
        case RunStarted():
            return change(head, run_count=head.run_count + 1, latest_run=envelope.run)
        case ProtocolStarted() | RequirementWaived() if head.attended is None:
            return head  # of a driver, which reads the evidence itself
        case HostBound() | ModeChanged() | WorkChanged() | ProtocolStarted() | StatusChanged():
            return change(head, attended=_apply_to_attended(head.attended, event))
        case ProtocolEndRequested() | ProtocolEndRefused() | SessionCompleted():
            assert head.attended is not None, "only an attended session has a protocol"
            is_request = isinstance(event, ProtocolEndRequested)
            attended = change(
                head.attended,
                ending_job=event.job if is_request else "",
                ending_since_ms=envelope.at_ms if is_request else 0,
                ended_by=event.job if isinstance(event, SessionCompleted) else "",
            )
            return change(head, attended=attended)
        case RequirementWaived():
            assert head.attended is not None, "only an attended session has a protocol"
            still_open = tuple(one for one in head.attended.open_start if one != event.requirement)
            return change(head, attended=change(head.attended, open_start=still_open))
        case (
            AgentInvoked()
            | DecisionRecorded()
            | AgentCompleted()
            | HandoffReceived()
            | HandoffPassedOn()
            | FeatureReviewRequested()
            | FeatureReviewed()
        ):
            assert head.attended is not None, "work is handed on in an attended session"
            return change(head, attended=_with_delegated_work(head.attended, event))
        case NodeCreated() if head.attended and head.attended.status == "ended":
            return change(head, attended=change(head.attended, is_resumed=True))
        case _:
            return head  # it is about a run


def _with_delegated_work(attended: Attendance, event: DelegationEvent | ReviewEvent) -> Attendance:
    change, awaited = msgspec.structs.replace, attended.awaited_agents
    match event:
        case AgentInvoked() | DecisionRecorded():
            if isinstance(event, AgentInvoked) and event.by != "review":
                awaited = tuple(agent for agent in awaited if agent != event.agent)
            count = attended.delegation_count + 1
            return change(attended, delegation_count=count, awaited_agents=awaited)
        case AgentCompleted(handoff_to=agent) | HandoffReceived(to_agent=agent):
            return change(attended, awaited_agents=(*awaited, agent)) if agent else attended
        case HandoffPassedOn():
            others = list(awaited)
            if event.to_agent in others:
                others.remove(event.to_agent)
            passed_to = tuple(dict.fromkeys((*attended.passed_to, event.session)))
            return change(attended, awaited_agents=tuple(others), passed_to=passed_to)
        case FeatureReviewRequested() | FeatureReviewed():
            reviews = tuple(one for one in attended.open_reviews if one[0] != event.review)
            if isinstance(event, FeatureReviewRequested):
                reviews = (*reviews, (event.review, event.deadline_ms))
            return change(attended, open_reviews=reviews)
        case _:
            return attended


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
        elif event.by == "start":
            may_code = False  # the session was ended, and with it the user's agreement
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
        case ProtocolStarted(evidence=evidence):
            open_ids = tuple(one.id for one in open_at_start(evidence, event.recorded_profile))
            return change(before, is_started=True, open_start=open_ids)
        case StatusChanged():
            is_departed = (event.status, event.reason) == ("ended", DEPARTED)
            return change(before, status=event.status, is_departed=is_departed, is_resumed=False)
        case _:
            assert_never(event)
