"""How the delivery of a result stands, in words."""

from interlock.core.ids import SessionId
from interlock.core.unattended.delivery import DeliveryRecord, DeliveryState


def delivery_line(delivery: DeliveryState) -> str:
    """One line: that it goes on, where the result is now, or why it is not there."""
    done = "; ".join(record_text(one) for one in _effects(delivery) if one.outcome == "done")
    match delivery.outcome:
        case None:
            return f"being delivered{f': {done}' if done else ''} ({delivery.job})"
        case "delivered":
            left_out = f" (left out: {delivery.detail})" if delivery.detail else ""
            return f"delivered: {done}{left_out}"
        case "skipped":
            return f"nothing to deliver: {delivery.detail}"
        case "refused" | "failed":
            so_far = f" Done before: {done}." if done else ""
            return f"not delivered ({delivery.outcome}): {delivery.detail}.{so_far}"


def record_text(record: DeliveryRecord) -> str:
    name = f" of {record.repository}" if record.repository else ""
    return f"{record.part}{name} {record.url or record.detail}"


def way_on(session: SessionId) -> str:
    """The command by which a delivery goes on that did not come to its end."""
    return f"interlock driver deliver {session}"


def _effects(delivery: DeliveryState) -> list[DeliveryRecord]:
    return [one for one in delivery.records if one.part != "check"]
