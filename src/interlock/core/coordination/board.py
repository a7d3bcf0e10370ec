"""The board: everything that is recorded of those who work on a project, read at one moment.

Who is active is decided here, from the time at which somebody was last seen and nothing else: an
agent that was silent for more than `stale_ms` is stale, and for more than `window_ms` is gone.
Times are those of the store's clock, which all who share the store have in common. Unattended work
is the exception: it stays active however long it waits, and its identity ends with the work.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, Literal, TypeVar

import msgspec

from interlock.core.coordination.identities import display_name
from interlock.core.coordination.records import (
    ENDED_IDENTITY,
    IDENTITY,
    OVERSEER,
    RESERVATION,
    SEEN,
    WORK,
    Identity,
    IdentityEnd,
    Reservation,
    WorkItem,
)
from interlock.core.project_stream import ProjectRow, RowCondition

T = TypeVar("T")
AgentStatus = Literal["active", "stale", "gone"]
StaleReason = Literal["", "no_heartbeat", "heartbeat_timeout", "invalid_timestamp", "clock_skew"]

BOARD_KINDS = (IDENTITY, ENDED_IDENTITY, RESERVATION, WORK, SEEN)
SECOND_MS, MINUTE_MS = 1_000, 60_000


class Thresholds(msgspec.Struct, frozen=True):
    """How long something may take. The defaults are those of the orchestrator's protocol."""

    heartbeat_ms: int = 300 * SECOND_MS
    stale_ms: int = 600 * SECOND_MS
    """Silent for longer: stale."""
    window_ms: int = 1_800 * SECOND_MS
    """Silent for longer: gone, and what it held is released."""
    wait_ms: int = 300 * SECOND_MS
    claim_ms: int = 900 * SECOND_MS
    """A claim whose owner is silent for longer can be claimed by another."""
    reservation_ms: int = 3_600 * SECOND_MS
    skew_ms: int = 120 * SECOND_MS
    """A time that is no further ahead than this is taken for now."""
    keep_ms: int = 7 * 86_400 * SECOND_MS
    """Messages and ended identities are forgotten after that."""


class BoardRow(msgspec.Struct, Generic[T], frozen=True):
    """A row, and the number of the entry that wrote it."""

    value: T
    seq: int


class AgentPresence(msgspec.Struct, frozen=True):
    status: AgentStatus
    silent_ms: int | None
    """None: it is not known since when."""
    reason: StaleReason = ""
    work: str = ""
    """As in `unattended, parked`, for work that only the user ends; empty for all others."""


class Board(msgspec.Struct, frozen=True):
    seq: int
    """The number of the last entry that it contains."""
    now_ms: int
    """When it was read, by the store's clock."""
    identities: Mapping[str, BoardRow[Identity]] = {}
    ended: Mapping[str, BoardRow[Identity]] = {}
    reservations: Mapping[str, BoardRow[Reservation]] = {}
    work: Mapping[str, BoardRow[WorkItem]] = {}
    """What is not done."""
    seen_ms: Mapping[str, int] = {}
    thresholds: Thresholds = Thresholds()
    utc_offset_s: int = 0
    """The zone in which names are shown."""
    unattended: Mapping[str, str] = {}
    """As in `unattended, parked`: the work that is not over, by session."""
    finished: Mapping[str, BoardRow[Identity]] = {}
    """Rows of identities that count as ended because their work is over. Cleaning up ends them."""

    def display(self, name: str) -> str:
        """The name of an identity, as people are shown it."""
        if name == OVERSEER:
            return "the overseer (a person)"
        return display_name(name, utc_offset_s=self.utc_offset_s)

    def identity_of(self, session: str) -> Identity | None:
        """The identity of a session that has not ended."""
        found = (one.value for one in self.identities.values() if one.value.session == session)
        return max(found, key=lambda identity: identity.epoch, default=None)

    def identities_of(self, session: str) -> list[Identity]:
        """Return every identity of a session that is still recorded, the newest last."""
        known = (one.value for one in (*self.identities.values(), *self.ended.values()))
        return sorted((one for one in known if one.session == session), key=lambda one: one.epoch)

    def last_identity_of(self, session: str) -> Identity | None:
        """Return the newest identity that a session ever had."""
        return next(reversed(self.identities_of(session)), None)

    def mail_passed_on_at(self, session: str) -> int:
        """Return the last entry that passed the mail of a session on to another agent, or 0."""
        ended = [one for one in self.ended.values() if one.value.session == session]
        ends = [(one.seq, one.value.end) for one in ended if one.value.end]
        return max((seq for seq, end in ends if end.by not in ("", OVERSEER)), default=0)

    def unended_of(self, session: str) -> Identity | None:
        """The identity of a session whose end is not recorded, even if its work is over."""
        finished = (one.value for one in self.finished.values() if one.value.session == session)
        return self.identity_of(session) or next(finished, None)

    def presence_of(self, identity: Identity) -> AgentPresence:
        seen_ms = self.seen_ms.get(identity.id, identity.registered_ms)
        presence = presence_at(seen_ms, self.now_ms, self.thresholds)
        if work := self.unattended.get(identity.session):
            return AgentPresence("active", presence.silent_ms, work=work)
        return presence

    def reservations_of(self, holder: str) -> list[Reservation]:
        if holder not in self.identities:
            return []
        return [
            one.value
            for one in self.reservations.values()
            if one.value.holder == holder and self.now_ms < one.value.until_ms
        ]

    def live_reservations(self) -> list[Reservation]:
        """The reservations that have not ended, of whoever is there."""
        return [
            one.value
            for one in self.reservations.values()
            if self.now_ms < one.value.until_ms and one.value.holder in self.identities
        ]

    def claims_of(self, holder: str) -> list[WorkItem]:
        return [
            one.value
            for one in self.work.values()
            if one.value.assignee == holder and one.value.status == "in_progress"
        ]

    def fence(self, identity: str) -> RowCondition:
        """The condition that an identity is still the one that was read."""
        recorded = self.identities.get(identity) or self.finished.get(identity)
        return RowCondition(IDENTITY, identity, recorded.seq if recorded else 0)

    def row_condition(self, kind: str, key: str) -> RowCondition:
        rows: Mapping[str, BoardRow[Reservation] | BoardRow[WorkItem]]
        rows = self.work if kind == WORK else self.reservations
        return RowCondition(kind, key, rows[key].seq if key in rows else 0)


def presence_at(seen_ms: int | None, now_ms: int, thresholds: Thresholds) -> AgentPresence:
    """Whether somebody who was last seen then is there. Exactly `stale_ms` ago is still active."""
    if seen_ms is None:
        return AgentPresence("stale", None, "no_heartbeat")
    if seen_ms <= 0:
        return AgentPresence("stale", None, "invalid_timestamp")
    silent_ms = now_ms - seen_ms
    if silent_ms < -thresholds.skew_ms:
        return AgentPresence("stale", None, "clock_skew")
    silent_ms = max(0, silent_ms)
    if silent_ms > thresholds.window_ms:
        return AgentPresence("gone", silent_ms, "heartbeat_timeout")
    if silent_ms > thresholds.stale_ms:
        return AgentPresence("stale", silent_ms, "heartbeat_timeout")
    return AgentPresence("active", silent_ms)


_identity = msgspec.json.Decoder(Identity).decode
_reservation = msgspec.json.Decoder(Reservation).decode
_work_item = msgspec.json.Decoder(WorkItem).decode
decode_time = msgspec.json.Decoder(int).decode


def board_of(
    rows: Iterable[ProjectRow],
    *,
    seq: int,
    now_ms: int,
    thresholds: Thresholds,
    utc_offset_s: int = 0,
) -> Board:
    """The board that rows of `BOARD_KINDS` make."""
    identities: dict[str, BoardRow[Identity]] = {}
    ended: dict[str, BoardRow[Identity]] = {}
    reservations: dict[str, BoardRow[Reservation]] = {}
    work: dict[str, BoardRow[WorkItem]] = {}
    seen: dict[str, int] = {}
    for row in rows:
        match row.kind:
            case "identity":
                identities[row.key] = BoardRow(_identity(row.content), row.seq)
            case "identity/ended":
                ended[row.key] = BoardRow(_identity(row.content), row.seq)
            case "reservation":
                reservations[row.key] = BoardRow(_reservation(row.content), row.seq)
            case "work":
                work[row.key] = BoardRow(_work_item(row.content), row.seq)
            case "seen":
                seen[row.key] = decode_time(row.content)
            case _:
                continue
    return Board(seq, now_ms, identities, ended, reservations, work, seen, thresholds, utc_offset_s)


def with_unattended_work(board: Board, works: Mapping[str, IdentityEnd | str]) -> Board:
    """The board with the unattended work of sessions: its end, or its status.

    Sessions and projects are separate streams. So the end of the work counts as the end of its
    identity, even if a process was killed before it recorded that.
    """
    identities, ended = dict(board.identities), dict(board.ended)
    finished: dict[str, BoardRow[Identity]] = {}
    for name, row in board.identities.items():
        end = works.get(row.value.session)
        # An agent that registered later has continued the session after its work.
        if isinstance(end, IdentityEnd) and row.value.created_ms <= end.at_ms:
            finished[name] = identities.pop(name)
            ended[name] = BoardRow(msgspec.structs.replace(row.value, end=end), row.seq)
    statuses = {session: work for session, work in works.items() if isinstance(work, str)}
    return msgspec.structs.replace(
        board, identities=identities, ended=ended, finished=finished, unattended=statuses
    )
