"""Announcements: messages for whoever runs jobs, made from the events that they are about.

They are written to the outbox in the transaction of their events, so that none is lost and none is
about something that did not happen. Other events of a session are read from the log as it changes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from interlock.core import canonical
from interlock.core.ids import SessionId
from interlock.core.project_stream import OutboxMessage
from interlock.core.session.approval_events import SessionApprovalRequested, SessionApprovalResolved
from interlock.core.session.delivery_events import DeliveryEnded, DeliveryRequested
from interlock.core.session.events import ApprovalRequested, ApprovalResolved, Envelope
from interlock.core.session.protocol_events import ProtocolEndRequested, SessionCompleted
from interlock.core.session.review_events import FeatureReviewRequested
from interlock.core.session.unattended_events import UnattendedMoved

Topic = Literal[
    "session/protocol.end",
    "session/complete",
    "retention/due",
    "approval/requested",
    "approval/granted",
    "approval/denied",
    "feature/completion.requested",
    "unattended/parked",
    "unattended/limit-near",
    "unattended/stuck",
    "unattended/done",
    "unattended/deliver",
    "unattended/undelivered",
]


class Announcement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    topic: Topic
    session_id: SessionId
    subject: str
    """The id of what it is about: a job, an approval, a review."""
    text: str = ""
    machine: str = ""
    """The machine on which it was caused, and is to be done."""
    commit_sha: str | None = None


decode_announcement = msgspec.json.Decoder(Announcement).decode


def messages_about(envelopes: Iterable[Envelope]) -> tuple[OutboxMessage, ...]:
    return tuple(
        OutboxMessage(
            message_key(made.topic, envelope.session, envelope.seq),
            made.topic,
            canonical.encode(made),
        )
        for envelope in envelopes
        for made in _announcements_of(envelope)
    )


def address_messages(messages: Sequence[OutboxMessage], machine: str) -> tuple[OutboxMessage, ...]:
    """Address messages to the machine on which they were caused: its executor alone reads them."""
    return tuple(
        OutboxMessage(
            message.key,
            machine,
            canonical.encode(
                msgspec.structs.replace(decode_announcement(message.content), machine=machine)
            ),
        )
        for message in messages
    )


def message_key(topic: Topic, session: SessionId, seq: int) -> str:
    """The name of what is announced because of one event."""
    return f"{topic}:{session}:{seq}"


def _announcements_of(envelope: Envelope) -> Iterator[Announcement]:
    session = envelope.session
    match envelope.event:
        case ProtocolEndRequested() as event:
            yield Announcement("session/protocol.end", session, event.job, event.summary)
        case SessionCompleted() as event:
            commit = event.commit or None
            yield Announcement("session/complete", session, event.job, commit_sha=commit)
        case ApprovalRequested() as event:
            yield Announcement("approval/requested", session, event.approval, event.question)
        case SessionApprovalRequested() as event:
            yield Announcement("approval/requested", session, event.approval, event.title)
        case ApprovalResolved() | SessionApprovalResolved() as event:
            topic: Topic = "approval/granted" if event.verdict == "granted" else "approval/denied"
            yield Announcement(topic, session, event.approval, event.reason)
        case FeatureReviewRequested() as event:
            yield Announcement("feature/completion.requested", session, event.review, event.feature)
        case UnattendedMoved(status="parked", reason=reason) if reason != "approval":
            text = f"{reason}: {envelope.event.detail}"
            yield Announcement("unattended/parked", session, reason or "", text)
        case UnattendedMoved(status="done") as event:
            text = event.detail or event.summary
            yield Announcement("unattended/done", session, event.outcome or "", text)
        case UnattendedMoved(status="working", reason="stuck", detail=detail):
            yield Announcement("unattended/stuck", session, "stuck", f"stuck: {detail}")
        case UnattendedMoved(status="working", detail=detail) if detail:
            yield Announcement("unattended/limit-near", session, "limit", detail)
        case DeliveryRequested() as event:
            yield Announcement("unattended/deliver", session, event.delivery)
        case DeliveryEnded(outcome="refused" | "failed") as event:
            yield Announcement("unattended/undelivered", session, event.outcome, event.detail)
        case _:
            return
