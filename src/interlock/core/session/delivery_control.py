"""What is recorded of a delivery, each thing once. Whether one may begin: `unattended_control`."""

import msgspec

from interlock.core import ids
from interlock.core.session.announcements import message_key
from interlock.core.session.delivery_events import (
    DeliveryEnded,
    DeliveryRecorded,
    DeliveryRequested,
    request_key,
)
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.core.unattended.delivery import DeliveryOutcome, DeliveryRecord

JOB = "deliver"


def draft_request(stream: Stream, *, seq: int, who: str, accepts_secrets: bool) -> EventDraft:
    """The request that starts a job as the event of this number."""
    job = ids.job_id(JOB, message_key("unattended/deliver", stream.session, seq))
    return EventDraft(request_key(job), DeliveryRequested(job, who, accepts_secrets))


def plan_record(stream: Stream, job: str, record: DeliveryRecord, *, at_ms: int) -> Plan:
    event = DeliveryRecorded(job, **msgspec.structs.asdict(record))
    return plan(stream, [EventDraft(record_key(job, record), event)], blobs={}, at_ms=at_ms)


def plan_end(
    stream: Stream, job: str, outcome: DeliveryOutcome, detail: str, *, at_ms: int
) -> Plan:
    event = DeliveryEnded(job, outcome, detail)
    return plan(stream, [EventDraft(end_key(job, outcome), event)], blobs={}, at_ms=at_ms)


def record_key(job: str, record: DeliveryRecord) -> str:
    return f"{request_key(job)}:{record.part}:{record.repository}"


def end_key(job: str, outcome: DeliveryOutcome) -> str:
    """One that failed can be retried, and then has another end."""
    return f"{request_key(job)}:{'failure' if outcome == 'failed' else 'end'}"
