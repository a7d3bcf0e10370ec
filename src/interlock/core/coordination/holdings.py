"""Reserving paths and claiming work: who is first has it, and the others are told who that is."""

import hashlib
from collections.abc import Iterator, Sequence

import msgspec

from interlock.core.coordination.board import MINUTE_MS, Board
from interlock.core.coordination.conflicts import path_conflicts
from interlock.core.coordination.messages import notice
from interlock.core.coordination.path_patterns import PathSet
from interlock.core.coordination.records import (
    OVERSEER,
    RESERVATION,
    WORK,
    CoordinationEvent,
    Identity,
    PathsReleased,
    PathsReserved,
    ProjectChange,
    Reservation,
    WorkItem,
    WorkItemChanged,
)
from interlock.core.coordination.refusals import (
    NothingReserved,
    PathConflict,
    PathsHeld,
    UnknownWork,
    WorkHeld,
    WorkNotFree,
)
from interlock.core.project_stream import RowCondition

TTL_MS_MIN, TTL_MS_MAX = MINUTE_MS, 24 * 60 * MINUTE_MS


class ReservationRequest(msgspec.Struct, frozen=True):
    paths: PathSet
    ttl_ms: int
    is_exclusive: bool = True
    reason: str = ""
    proceeds: bool = False
    """Whether paths that others hold are reserved all the same."""


class PathRules(msgspec.Struct, frozen=True):
    """The rules of a project and its file system about paths."""

    folds_case: bool = False
    is_enforced: bool = False
    """Whether nobody goes on where others have reserved."""


def reserve(
    board: Board,
    holder: Identity,
    request: ReservationRequest,
    rules: PathRules,
    *,
    at_ms: int,
) -> ProjectChange | PathsHeld:
    """Plan to reserve all of the paths, or none. One's own are renewed."""

    def conflicts_of(paths: PathSet) -> list[PathConflict]:
        return path_conflicts(
            board,
            holder.id,
            paths,
            is_exclusive=request.is_exclusive,
            folds_case=rules.folds_case,
        )

    patterns, excluded = request.paths.patterns, request.paths.excluded
    conflicts = conflicts_of(request.paths)
    if conflicts and (rules.is_enforced or not request.proceeds):
        free = tuple(one for one in patterns if not conflicts_of(PathSet((one,), excluded)))
        return PathsHeld(tuple(conflicts), free, rules.is_enforced)
    despite = tuple(dict.fromkeys(conflict.holder for conflict in conflicts))
    reserved = [_reservation(board, holder, request, pattern, despite) for pattern in patterns]
    events: list[CoordinationEvent] = [PathsReserved(one) for one in reserved]
    for conflict in conflicts:
        subject = f"[CONFLICT] {board.display(holder.id)} has reserved `{conflict.requested}` too"
        body = f"You hold `{conflict.pattern}`; both have `{conflict.witness}`. It went on anyway."
        events.append(notice(board, conflict.holder, subject, body, at_ms=at_ms))
    # Whoever reserves at the same moment has not seen this: then one of the two decides again.
    nobody_since = RowCondition(RESERVATION, None, board.seq)
    renewed = frozenset(one.key for one in reserved)
    expired = expired_events(board, at_ms=at_ms, without=renewed)
    return ProjectChange((*events, *expired), (board.fence(holder.id), nobody_since))


def _reservation(
    board: Board,
    holder: Identity,
    request: ReservationRequest,
    pattern: str,
    despite: tuple[str, ...],
) -> Reservation:
    key = f"{holder.id}:{hashlib.sha256(pattern.encode()).hexdigest()[:10]}"
    earlier = board.reservations.get(key)
    is_renewal = earlier is not None and board.now_ms < earlier.value.until_ms
    if earlier and is_renewal:
        despite = tuple(dict.fromkeys((*earlier.value.despite, *despite)))
    return Reservation(
        key,
        holder.id,
        pattern,
        until_ms=board.now_ms + min(max(request.ttl_ms, TTL_MS_MIN), TTL_MS_MAX),
        since_ms=earlier.value.since_ms if earlier and is_renewal else board.now_ms,
        excluded=request.paths.excluded,
        is_exclusive=request.is_exclusive,
        reason=request.reason,
        worktree=holder.worktree,
        despite=despite,
    )


def release(
    board: Board, holder: Identity, patterns: Sequence[str]
) -> ProjectChange | NothingReserved | None:
    """Plan to give back what somebody has reserved: these patterns, or all if none is named."""
    own = [one.value for one in board.reservations.values() if one.value.holder == holder.id]
    chosen = [one for one in own if not patterns or one.pattern in patterns]
    if patterns and not chosen:
        return NothingReserved(tuple(patterns), tuple(one.pattern for one in own))
    events = tuple(PathsReleased(one.key, holder.id, one.pattern, by=holder.id) for one in chosen)
    return ProjectChange(events, (board.fence(holder.id),)) if events else None


def release_as_overseer(
    board: Board, holder: Identity, patterns: Sequence[str], *, at_ms: int
) -> ProjectChange | None:
    """Plan to release what somebody else has reserved, and tell them; None if it is nothing.

    These patterns, or all if none is named.
    """
    events: list[CoordinationEvent] = []
    for recorded in board.reservations.values():
        reservation = recorded.value
        if reservation.holder != holder.id or (patterns and reservation.pattern not in patterns):
            continue
        pattern = reservation.pattern
        events.append(PathsReleased(reservation.key, holder.id, pattern, by=OVERSEER))
        subject = f"[LEASE LOST] {board.display(OVERSEER)} has released your `{pattern}`"
        body = "Leave those files alone, or reserve them again if you still need them."
        events.append(notice(board, holder.id, subject, body, at_ms=at_ms))
    return ProjectChange(tuple(events), (board.fence(holder.id),)) if events else None


def expired_keys(board: Board) -> list[str]:
    """The reservations whose time is over."""
    return [key for key, one in board.reservations.items() if one.value.until_ms <= board.now_ms]


def expired_events(
    board: Board, *, at_ms: int, without: frozenset[str] = frozenset()
) -> Iterator[CoordinationEvent]:
    """Forget the reservations whose time is over, but for some. Who is still there is told."""
    for key in expired_keys(board):
        reservation = board.reservations[key].value
        if key in without:
            continue
        yield PathsReleased(key, reservation.holder, reservation.pattern, "expired")
        if reservation.holder in board.identities:
            subject = f"[LEASE LOST] your reservation of `{reservation.pattern}` has ended"
            body = "Reserve it again if you still work there."
            yield notice(board, reservation.holder, subject, body, at_ms=at_ms)


def claim(
    board: Board, holder: Identity, item_id: str
) -> ProjectChange | UnknownWork | WorkHeld | WorkNotFree | None:
    """Plan to claim a work item; None if it is the holder's already."""
    item = _item_or_none(board, item_id)
    if item is None:
        return UnknownWork(item_id, similar_items(board, item_id))
    if item.status == "in_progress":
        if item.assignee == holder.id:
            return None
        if refusal := _why_held(board, item):
            return refusal
    elif item.status != "open":
        return WorkNotFree(item_id, item.status)
    if waits_for := open_dependencies(board, item):
        return WorkNotFree(item_id, item.status, waits_for)
    claimed = msgspec.structs.replace(
        item,
        status="in_progress",
        assignee=holder.id,
        claimed_ms=board.now_ms,
        updated_ms=board.now_ms,
        reason="",
    )
    conditions = (board.fence(holder.id), board.row_condition(WORK, item_id))
    return ProjectChange((WorkItemChanged(claimed, "claimed", holder.id),), conditions)


def _why_held(board: Board, item: WorkItem) -> WorkHeld | None:
    """The refusal of an item that somebody works on; None if they are not heard of any more."""
    owner = board.identities.get(item.assignee)
    if owner is None:
        return None
    presence = board.presence_of(owner.value)
    silent_ms = None if presence.work else presence.silent_ms
    if silent_ms is not None and silent_ms > board.thresholds.claim_ms:
        return None
    return WorkHeld(
        item.id,
        item.assignee,
        board.display(item.assignee),
        board.now_ms - item.claimed_ms,
        is_stale=presence.status != "active",
    )


def open_dependencies(board: Board, item: WorkItem) -> tuple[str, ...]:
    return tuple(name for name in item.depends_on if name in board.work)


def ready_items(board: Board) -> list[WorkItem]:
    """The items that can be begun now: the most urgent first, then the oldest."""
    items = [
        one.value
        for one in board.work.values()
        if one.value.status == "open" and not open_dependencies(board, one.value)
    ]
    return sorted(items, key=lambda item: (item.priority, item.created_ms, item.id))


def similar_items(board: Board, item_id: str) -> tuple[str, ...]:
    return tuple(name for name in board.work if item_id and item_id in name)[:5]


def _item_or_none(board: Board, item_id: str) -> WorkItem | None:
    recorded = board.work.get(item_id)
    return recorded.value if recorded else None
