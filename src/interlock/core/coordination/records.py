"""What is recorded of those who work on a project: rows as they stand, and the events behind them.

An event carries the row that it leaves, so that rows are a fold of the events. The one exception
are rows that nobody will ask about later, and that are replaced without a trace: when an agent was
last seen, and how far its mail was told to it.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import msgspec

from interlock.core import canonical
from interlock.core.coordination.path_patterns import PathSet
from interlock.core.ids import ProjectId
from interlock.core.project_stream import ProjectPlan, RowChange, RowCondition

IDENTITY, ENDED_IDENTITY = "identity", "identity/ended"
RESERVATION = "reservation"
WORK, DONE_WORK = "work", "work/done"
SEEN, CURSOR = "seen", "cursor"
MAILBOX, ACKNOWLEDGED = "mail/", "acknowledged/"
"""The beginnings of kinds: the rest is whose they are."""

EVERYBODY, OVERSEER, INTERLOCK = "all", "overseer", "interlock"
TRACK_MAILBOX = "track:"

EndReason = Literal["ended", "taken_over", "orphaned"]
WorkStatus = Literal["open", "in_progress", "blocked", "done"]
WORK_STATUSES: tuple[WorkStatus, ...] = get_args(WorkStatus)


class IdentityEnd(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    reason: EndReason
    at_ms: int
    by: str = ""
    """Who has taken over, or ended it."""
    why: str = ""


class Identity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One who works on the project. A session has one at a time."""

    id: str
    base: str
    session: str
    """The session that it stands for; for a person at a terminal, their name."""
    epoch: int
    """Grows with each identity of the same session: what an older one writes is refused."""
    created_ms: int
    """Of the machine's clock, as in the id."""
    registered_ms: int
    """Of the store's clock, by which times are compared."""
    track: str = ""
    worktree: str = ""
    machine: str = ""
    host: str = ""
    end: IdentityEnd | None = None


class Reservation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str
    holder: str
    pattern: str
    until_ms: int
    since_ms: int
    excluded: tuple[str, ...] = ()
    is_exclusive: bool = True
    reason: str = ""
    worktree: str = ""
    despite: tuple[str, ...] = ()
    """The holders whose paths overlap: the agent has gone on all the same."""

    @property
    def path_set(self) -> PathSet:
        return PathSet((self.pattern,), self.excluded)


class WorkItem(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: str
    title: str
    created_ms: int
    updated_ms: int
    status: WorkStatus = "open"
    priority: int = 2
    """From 0, the most urgent, to 4."""
    description: str = ""
    assignee: str = ""
    claimed_ms: int = 0
    depends_on: tuple[str, ...] = ()
    reason: str = ""
    """Why it is done or blocked."""


class Message(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: str
    sender: str
    to: tuple[str, ...]
    subject: str
    at_ms: int
    sent_ms: int
    """Of the store's clock."""
    body: str = ""
    thread: str = ""
    needs_answer: bool = False
    """Whether the sender wants it acknowledged."""
    place: int = 0
    """Its place among the messages of the same entry."""
    first_to: tuple[str, ...] = ()
    """The first recipients, if a takeover passed it on."""


class _CoordinationEvent(msgspec.Struct, frozen=True, rename="camel", tag_field="kind"):
    """Tags are written out: a class may be renamed, history may not."""


class IdentityChanged(_CoordinationEvent, frozen=True, omit_defaults=True, tag="identity_changed"):
    identity: Identity
    cause: Literal["registered", "track", "ended", "taken_over", "orphaned"]


class PathsReserved(_CoordinationEvent, frozen=True, omit_defaults=True, tag="paths_reserved"):
    reservation: Reservation


class PathsReleased(_CoordinationEvent, frozen=True, omit_defaults=True, tag="paths_released"):
    key: str
    holder: str
    pattern: str
    cause: Literal["released", "ended", "taken_over", "orphaned", "expired"] = "released"
    by: str = ""


class WorkItemChanged(_CoordinationEvent, frozen=True, omit_defaults=True, tag="work_changed"):
    item: WorkItem
    cause: Literal["added", "claimed", "released", "changed", "done", "reset"]
    by: str = ""


class MessageSent(_CoordinationEvent, frozen=True, tag="message_sent"):
    message: Message


class MessageAcknowledged(_CoordinationEvent, frozen=True, tag="message_acknowledged"):
    message: str
    by: str
    at_ms: int


class PreflightSkipped(_CoordinationEvent, frozen=True, tag="preflight_skipped"):
    session: str
    why: str


class RowsForgotten(_CoordinationEvent, frozen=True, tag="rows_forgotten"):
    """Rows of messages and ended identities whose time is over, by kind and key."""

    rows: tuple[tuple[str, str], ...]


CoordinationEvent: TypeAlias = (
    IdentityChanged
    | PathsReserved
    | PathsReleased
    | WorkItemChanged
    | MessageSent
    | MessageAcknowledged
    | PreflightSkipped
    | RowsForgotten
)


class EntryBody(msgspec.Struct, frozen=True, rename="camel"):
    at_ms: int
    events: tuple[CoordinationEvent, ...]


decode_entry = msgspec.json.Decoder(EntryBody).decode


class ProjectChange(msgspec.Struct, frozen=True):
    """The events that a call wants to record, and the rows that its decision rests on."""

    events: tuple[CoordinationEvent, ...]
    conditions: tuple[RowCondition, ...] = ()


def row_changes(event: CoordinationEvent) -> Iterator[RowChange]:
    """The rows that an event leaves behind, or removes."""
    match event:
        case IdentityChanged(identity=identity):
            content = canonical.encode(identity)
            is_over = identity.end is not None
            yield RowChange(IDENTITY, identity.id, None if is_over else content)
            if is_over:
                yield RowChange(ENDED_IDENTITY, identity.id, content)
                yield RowChange(SEEN, identity.id, None)
        case PathsReserved(reservation=reservation):
            yield RowChange(RESERVATION, reservation.key, canonical.encode(reservation))
        case PathsReleased():
            yield RowChange(RESERVATION, event.key, None)
        case WorkItemChanged(item=item):
            content, is_done = canonical.encode(item), item.status == "done"
            yield RowChange(WORK, item.id, None if is_done else content)
            if event.cause != "added":
                yield RowChange(DONE_WORK, item.id, content if is_done else None)
        case MessageSent(message=message):
            content = canonical.encode(message)
            yield from (RowChange(f"{MAILBOX}{to}", message.id, content) for to in message.to)
        case MessageAcknowledged():
            content = canonical.encode(event)
            yield RowChange(f"{ACKNOWLEDGED}{event.by}", event.message, content)
        case RowsForgotten():
            yield from (RowChange(kind, key, None) for kind, key in event.rows)
        case PreflightSkipped():
            return


def plan_change(project: ProjectId, change: ProjectChange, *, key: str, at_ms: int) -> ProjectPlan:
    """The plan of a change. Of several events about one row, the last one counts."""
    rows = {(row.kind, row.key): row for event in change.events for row in row_changes(event)}
    conditions = {(one.kind, one.key): one for one in change.conditions}
    return ProjectPlan(
        project,
        key,
        canonical.encode(EntryBody(at_ms, change.events)),
        at_ms,
        changes=tuple(rows.values()),
        conditions=tuple(conditions.values()),
    )
