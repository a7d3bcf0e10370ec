"""The stream of a project: what all who work on it record together.

A session has one writer at a time, so an append names the version that it was decided on. Here many
write at once about different things: an entry names the rows that its decision rests on, and is
written only if those are as they were. A row is a fact as it stands, a fold of the entries (who
holds a claim, which paths are reserved); its `seq` is the number of the entry that wrote it, so a
row that was removed and made again is not mistaken for the one before.

`LeaseCondition` and `OutboxMessage` belong to whatever is recorded, here or in a session.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from interlock.core.ids import ProjectId

GENESIS = bytes(32)


class ProjectRow(msgspec.Struct, frozen=True):
    kind: str
    key: str
    seq: int
    """The number of the entry that wrote it."""
    content: bytes


class RowChange(msgspec.Struct, frozen=True):
    kind: str
    key: str
    content: bytes | None
    """The new content; None if the row is removed."""


class RowCondition(msgspec.Struct, frozen=True):
    """A row that must be as it was: written by entry `seq`, or missing (0)."""

    kind: str
    key: str | None
    """None: no row of this kind was written after entry `seq`. A removal is no change."""
    seq: int


class LeaseCondition(msgspec.Struct, frozen=True):
    """Nobody else has acquired the lease since it had this epoch."""

    name: str
    epoch: int


class OutboxMessage(msgspec.Struct, frozen=True):
    """Work for whoever runs jobs. It is there exactly if what it was recorded with is there."""

    key: str
    """Names it in the whole store: the same message again is the same work."""
    topic: str
    """Who is to read it."""
    content: bytes


class ProjectPlan(msgspec.Struct, frozen=True):
    """The changes of one call to a project. All are written or none."""

    project: ProjectId
    key: str
    """What may happen only once in the project."""
    body: bytes
    """The events, in canonical form."""
    at_ms: int
    changes: tuple[RowChange, ...] = ()
    conditions: tuple[RowCondition, ...] = ()
    lease: LeaseCondition | None = None
    outbox: tuple[OutboxMessage, ...] = ()

    def __post_init__(self) -> None:
        changed = {(change.kind, change.key) for change in self.changes}
        assert len(changed) == len(self.changes), "a plan changes a row once"


class ProjectEntry(msgspec.Struct, frozen=True):
    seq: int
    """From 1."""
    key: str
    body: bytes
    digest: bytes
    """Ties it to all entries before it."""


class ProjectRows(msgspec.Struct, frozen=True):
    """Rows of a project, read at one moment."""

    seq: int
    """The number of the last entry; 0 if there is none."""
    rows: tuple[ProjectRow, ...]


def entry_digest(previous: bytes, body: bytes) -> bytes:
    return hashlib.sha256(previous + body).digest()


def find_damage(entries: Iterable[ProjectEntry], *, version: int, end: bytes) -> str:
    """Walk a stream from its start, and return what is wrong with it, or nothing."""
    previous, expected = GENESIS, 1
    for entry in entries:
        if entry.seq != expected:
            return f"entry {expected} is missing"
        if entry_digest(previous, entry.body) != entry.digest:
            return f"entry {expected} does not match its digest"
        previous, expected = entry.digest, expected + 1
    if expected != version + 1:
        return f"{version + 1 - expected} entries are missing at the end"
    return "" if previous == end else "the last digest is not the recorded one"
