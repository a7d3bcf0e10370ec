"""Work items as Beads (`bd --json`) writes them, in both directions."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlock.core.coordination.iso_times import iso_milliseconds, iso_text
from interlock.core.coordination.records import WorkItem, WorkStatus

# A status that we do not know is somebody's own: nobody should begin with such an item.
_OUR_STATUSES: Final[dict[str, WorkStatus]] = {
    "open": "open",
    "in_progress": "in_progress",
    "closed": "done",
    "tombstone": "done",
}
# Not `parent-child`: a child waits for what its parent waits for, not for the parent itself.
_BLOCKING_TYPES: Final = frozenset({"blocks", "conditional-blocks", "waits-for"})


class _Dependency(msgspec.Struct, frozen=True):
    """A link as `list` has it (`depends_on_id`), or the other item as `show` has it (`id`)."""

    id: str = ""
    depends_on_id: str = ""
    type: str = ""
    dependency_type: str = ""


class _Bead(msgspec.Struct, frozen=True):
    id: str
    title: str
    status: str = "open"
    priority: int = 2
    description: str = ""
    assignee: str | None = None
    created_at: str = ""
    updated_at: str = ""
    started_at: str | None = None
    close_reason: str | None = None
    notes: str | None = None
    dependencies: tuple[_Dependency, ...] | None = None


def from_beads_json(bead: Mapping[str, Any]) -> WorkItem:
    """Return the work item of one object that `bd` has printed.

    Raises:
        ValueError: it is not a bead.
    """
    read = msgspec.convert(bead, _Bead)
    status = _OUR_STATUSES.get(read.status, "blocked")
    reasons = {"done": read.close_reason, "blocked": read.notes}
    blocking = (
        link.depends_on_id or link.id
        for link in read.dependencies or ()
        if (link.dependency_type or link.type or "blocks") in _BLOCKING_TYPES
    )
    return WorkItem(
        read.id,
        read.title,
        created_ms=iso_milliseconds(read.created_at),
        updated_ms=iso_milliseconds(read.updated_at),
        status=status,
        priority=min(max(read.priority, 0), 4),
        description=read.description,
        assignee=read.assignee or "",
        claimed_ms=iso_milliseconds(read.started_at),
        depends_on=tuple(filter(None, blocking)),
        reason=reasons.get(status) or "",
    )


def to_beads_json(item: WorkItem, display: str = "") -> dict[str, Any]:
    """Return a work item as `bd` would print it, with the display name of who has claimed it."""
    bead: dict[str, Any] = {
        "id": item.id,
        "title": item.title,
        "description": item.description,
        "status": beads_status(item.status),
        "priority": item.priority,
        "issue_type": "task",
        "created_at": iso_text(item.created_ms),
        "updated_at": iso_text(item.updated_ms),
        "dependency_count": len(item.depends_on),
    }
    if item.assignee:
        bead["assignee"] = item.assignee
        bead["assignee_display"] = display or item.assignee
    if item.claimed_ms:
        bead["started_at"] = iso_text(item.claimed_ms)
    if item.status == "done":
        bead["closed_at"] = bead["updated_at"]
    if item.reason:
        bead["close_reason" if item.status == "done" else "notes"] = item.reason
    if item.depends_on:
        bead["dependencies"] = [
            {"issue_id": item.id, "depends_on_id": name, "type": "blocks"}
            for name in item.depends_on
        ]
    return bead


def beads_status(status: WorkStatus) -> str:
    """Return Beads' word for a status."""
    return "closed" if status == "done" else status
