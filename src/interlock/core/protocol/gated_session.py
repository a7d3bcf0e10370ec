"""Changes to an attended session, which a gate watches over: its start, mode, work and status."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from interlock.core import canonical
from interlock.core.explanation import Explanation
from interlock.core.gate.state import Mode, ModeObjection, Policy, mode_change_objection
from interlock.core.refusal import Refusal, TextRefusal
from interlock.core.session.events import (
    HostBound,
    ModeChanged,
    ObservationRecorded,
    Phase,
    ProtocolStarted,
    SessionCreated,
    SessionEvent,
    SessionStatus,
    StatusChanged,
    WorkChanged,
)
from interlock.core.session.head import Attendance
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.session.protocol_events import RequirementWaived
from interlock.core.visible_text import is_blank

Actor = Literal["user", "agent"]


class ChangeNotAllowed(Refusal, frozen=True):
    """The change is not the caller's to make."""

    change: str
    reason: str
    remedy: str = "Ask the user."
    is_askable: bool = False
    """Whether it is allowed once the user, asked by the host, has agreed."""
    needs_task: bool = False
    """Whether the same request with a task gets further."""

    def explain(self) -> Explanation:
        error = f"{self.change.capitalize()} is not allowed: {self.reason}"
        return Explanation("not_allowed", error, self.remedy)


class SessionEnded(TextRefusal, frozen=True):
    session: str

    code = "session_ended"
    error = "Session `{session}` has ended"
    hint = "Begin another one: start a workflow, or, in an opted-in project, a session."


AttendanceRefusal: TypeAlias = ChangeNotAllowed | SessionEnded


class Conversation(msgspec.Struct, frozen=True):
    """A conversation of an agent client."""

    host: str
    id: str
    source: str = "startup"


class WorkUpdate(msgspec.Struct, frozen=True):
    """A change of what a session is about; None keeps the value."""

    feature: str | None = None
    task: str | None = None
    phase: Phase | None = None


def begin(
    stream: Stream,
    workspace: str,
    mode: Mode,
    *,
    conversation: Conversation | None,
    is_bound: bool,
    evidence: dict[str, str],
    profile: str,
    observation: ObservationRecorded | None,
    at_ms: int,
) -> Plan | None:
    """Plan the start of an attended session; None where it has started and nothing is new.

    `is_bound`: the conversation belongs to this session, and to no other that came later.
    """
    attended = stream.head.attended if stream.head else None
    events: list[SessionEvent] = []
    if stream.version == 0:
        events.append(SessionCreated(workspace))
    if observation and stream.version == 0:
        events.append(observation)
    if attended is None or attended.was_ended:
        events.append(ModeChanged(mode, "start", "the session began"))
    if conversation and not is_bound:
        events.append(HostBound(conversation.host, conversation.id, conversation.source))
    if attended and attended.status != "active":
        events.append(StatusChanged("active", "it goes on"))
    if attended is None or not attended.is_started:
        events.append(ProtocolStarted(evidence, profile))
    return _plan_events(stream, events, at_ms) if events else None


def restart(stream: Stream, evidence: dict[str, str], profile: str, *, at_ms: int) -> Plan:
    """Plan the record of the start's current evidence."""
    return _plan_events(stream, [ProtocolStarted(evidence, profile)], at_ms)


def waive(
    stream: Stream, requirement: str, reason: str, who: str, *, at_ms: int
) -> Plan | AttendanceRefusal:
    """Plan the waiver of a requirement by a person."""
    is_attended = stream.head is not None and stream.head.attended is not None
    if is_attended and isinstance(refusal := _attended_or_refusal(stream), SessionEnded):
        return refusal
    return _plan_events(stream, [RequirementWaived(requirement, reason, who)], at_ms)


def change_mode(
    stream: Stream,
    mode: Mode,
    policy: Policy,
    *,
    by: Actor,
    task: str | None,
    at_ms: int,
    is_agreed: bool = False,
) -> Plan | AttendanceRefusal | None:
    """Plan a change of mode; None where nothing changes.

    `is_agreed`: the agent's host has asked the user, who agreed.
    """
    attended = _attended_or_refusal(stream)
    if not isinstance(attended, Attendance):
        return attended
    new_task = _work_name(task, attended.task)
    if by == "agent":
        objection = mode_change_objection(
            attended.mode,
            mode,
            policy,
            has_task=bool(new_task),
            may_code=attended.may_code or is_agreed,
        )
        if objection:
            return refuse_mode(f"going from {attended.mode} to {mode}", objection)
    events: list[SessionEvent] = []
    if new_task != attended.task:
        events.append(WorkChanged(attended.feature, new_task, attended.phase))
    if mode != attended.mode:
        events.append(ModeChanged(mode, by, "", is_agreed))
    return _plan_events(stream, events, at_ms) if events else None


def refuse_mode(change: str, objection: ModeObjection) -> ChangeNotAllowed:
    return ChangeNotAllowed(
        change=change,
        reason=objection.reason,
        remedy=objection.remedy,
        is_askable=objection.is_askable,
        needs_task=objection.needs_task,
    )


def change_work(stream: Stream, work: WorkUpdate, *, at_ms: int) -> Plan | AttendanceRefusal | None:
    """Plan a change of feature, task or phase; None where nothing changes."""
    attended = _attended_or_refusal(stream)
    if not isinstance(attended, Attendance):
        return attended
    feature = _work_name(work.feature, attended.feature)
    # Another feature has other tasks.
    task = _work_name(work.task, "" if feature != attended.feature else attended.task)
    phase = work.phase or attended.phase
    if (feature, task, phase) == (attended.feature, attended.task, attended.phase):
        return None
    return _plan_events(stream, [WorkChanged(feature, task, phase)], at_ms)


def change_status(
    stream: Stream, status: SessionStatus, reason: str, *, at_ms: int
) -> Plan | AttendanceRefusal | None:
    """Plan a change of status; None where nothing changes. An ended session is refused."""
    attended = attendance(stream)
    if attended.status == "ended" and status != "ended":
        return SessionEnded(stream.session)
    if attended.status == status:
        return None
    return _plan_events(stream, [StatusChanged(status, reason)], at_ms)


def _work_name(requested: str | None, current: str) -> str:
    """The name of a task or feature; one in which nothing is to be seen counts as none."""
    if requested is None:
        return current
    return "" if is_blank(requested) else requested.strip()


def attendance(stream: Stream) -> Attendance:
    """Return the attendance of a session whose start is recorded."""
    assert stream.head is not None, "a stored stream has a head"
    assert stream.head.attended is not None, "its start is recorded before a change"
    return stream.head.attended


def _attended_or_refusal(stream: Stream) -> Attendance | SessionEnded:
    attended = attendance(stream)
    # A session that ended because its client left accepts changes: the client may come back.
    return SessionEnded(stream.session) if attended.was_ended else attended


def _plan_events(stream: Stream, events: list[SessionEvent], at_ms: int) -> Plan:
    return plan(stream, change_drafts(stream, "attended", events), blobs={}, at_ms=at_ms)


def change_drafts(stream: Stream, prefix: str, events: Sequence[SessionEvent]) -> list[EventDraft]:
    """Return drafts of changes that can happen again.

    Their place in the stream keeps their keys apart, and their content: of two who change something
    at the same moment, the second must not take the first one's change for its own.
    """
    return [
        EventDraft(f"{prefix}:{stream.version + index}:{canonical.short_digest(event)}", event)
        for index, event in enumerate(events)
    ]
