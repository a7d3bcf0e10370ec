"""The end of a session by its protocol: wanted once, carried out by a job, recorded once."""

from collections.abc import Mapping, Sequence

from interlock.core import ids
from interlock.core.protocol.gated_session import SessionEnded, attendance
from interlock.core.session.announcements import message_key
from interlock.core.session.events import StatusChanged
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.session.protocol_events import (
    ProtocolEnded,
    ProtocolEndRefused,
    ProtocolEndRequested,
    SessionCompleted,
    completion_key,
    refusal_key,
)

JOB = "protocol-end"
ENDED = "its protocol has ended"
GIVEN_UP_MS = 10 * 60_000
"""After that time nobody waits for a job of which nothing was heard: it may be lost."""


def request_end(stream: Stream, *, summary: str, at_ms: int) -> Plan | SessionEnded | None:
    """Plan the request; None if it was made before, and its job may still do it, or has done it.

    A session that only its client has left can still end; one that the user has ended cannot.
    """
    attended = attendance(stream)
    is_given_up = at_ms - attended.ending_since_ms > GIVEN_UP_MS
    if attended.ending_job and not is_given_up:
        return None
    if attended.ended_by and attended.status == "ended":
        return None
    if attended.was_ended:
        return SessionEnded(stream.session)
    job = job_of(stream, is_new=True)
    event = ProtocolEndRequested(job, summary)
    return plan(stream, [EventDraft(f"end:{job}", event)], blobs={}, at_ms=at_ms)


def job_of(stream: Stream, *, is_new: bool) -> str:
    """The id of the job that a new request starts, or of the one that ends the session already."""
    if is_new:
        seed = message_key("session/protocol.end", stream.session, stream.version)
        return ids.job_id(JOB, seed)
    attended = attendance(stream)
    return attended.ending_job or attended.ended_by


def refuse_end(stream: Stream, job: str, blockers: Sequence[str], *, at_ms: int) -> Plan:
    event = ProtocolEndRefused(job, tuple(blockers))
    return plan(stream, [EventDraft(refusal_key(job), event)], blobs={}, at_ms=at_ms)


def record_evidence(stream: Stream, job: str, evidence: Mapping[str, str], *, at_ms: int) -> Plan:
    event = ProtocolEnded(job, dict(evidence))
    return plan(stream, [EventDraft(evidence_key(job), event)], blobs={}, at_ms=at_ms)


def complete(stream: Stream, job: str, commit: str, commit_fault: str, *, at_ms: int) -> Plan:
    """Plan the end. A session that has ended already, because its client has, ends for good."""
    drafts = [
        EventDraft(completion_key(job), SessionCompleted(job, commit, commit_fault)),
        EventDraft(f"ended:{job}", StatusChanged("ended", ENDED)),
    ]
    return plan(stream, drafts, blobs={}, at_ms=at_ms)


def evidence_key(job: str) -> str:
    return f"end-evidence:{job}"
