"""The events of a delivery: wanted, recorded part by part, ended."""

from typing import TypeAlias

import msgspec

from interlock.core.session.event_struct import EventStruct
from interlock.core.unattended.delivery import (
    DeliveryOutcome,
    DeliveryRecord,
    DeliveryState,
    PartOutcome,
    RecordedPart,
)
from interlock.core.unattended.order import UnattendedState


class DeliveryRequested(EventStruct, frozen=True, omit_defaults=True, tag="delivery_requested"):
    delivery: str
    """The job that it starts."""
    who: str = ""
    accepts_secrets: bool = False
    """The user has seen what looks like secrets, and wants it delivered all the same."""


class DeliveryRecorded(EventStruct, frozen=True, omit_defaults=True, tag="delivery_recorded"):
    """One part has come to its end, in whichever way."""

    delivery: str
    part: RecordedPart
    outcome: PartOutcome
    detail: str = ""
    url: str = ""
    commit: str = ""
    repository: str = ""


class DeliveryEnded(EventStruct, frozen=True, omit_defaults=True, tag="delivery_ended"):
    delivery: str
    outcome: DeliveryOutcome
    detail: str = ""


DeliveryEvent: TypeAlias = DeliveryRequested | DeliveryRecorded | DeliveryEnded


def request_key(delivery: str) -> str:
    return f"delivery:{delivery}"


def apply_delivery(before: UnattendedState, event: DeliveryEvent, at_ms: int) -> UnattendedState:
    """Return how unattended work stands after one more event about the delivery of its result."""
    change, delivery = msgspec.structs.replace, before.delivery
    if isinstance(event, DeliveryRequested):
        return change(before, delivery=DeliveryState(event.delivery, at_ms))
    if delivery is None or delivery.job != event.delivery:
        return before  # another one was wanted meanwhile, and only that counts
    if isinstance(event, DeliveryEnded):
        ended = change(delivery, outcome=event.outcome, detail=event.detail, since_ms=at_ms)
        return change(before, delivery=ended)
    record = DeliveryRecord(
        event.part, event.outcome, event.detail, event.url, event.commit, event.repository
    )
    place = (record.part, record.repository)
    others = tuple(one for one in delivery.records if (one.part, one.repository) != place)
    moved = change(delivery, records=(*others, record), since_ms=at_ms)
    return change(before, delivery=moved)
