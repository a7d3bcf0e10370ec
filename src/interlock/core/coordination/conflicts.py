"""Conflicts: where what an agent wants meets what somebody else has."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from interlock.core.coordination.board import Board
from interlock.core.coordination.path_patterns import PathSet, overlap
from interlock.core.coordination.records import Identity, Reservation
from interlock.core.coordination.refusals import PathConflict, ago_text, span_text


class TrackConflict(msgspec.Struct, frozen=True):
    id: str
    display: str
    track: str
    last_seen: str
    next_action: str


class FilesConflict(msgspec.Struct, frozen=True):
    id: str
    display: str
    pattern: str
    requested: str
    overlap: str
    """A path that both have."""
    seconds_left: int
    next_action: str


class BeadConflict(msgspec.Struct, frozen=True):
    id: str
    display: str
    bead_id: str
    since: str
    next_action: str


class Conflicts(msgspec.Struct, frozen=True):
    has_conflicts: bool = False
    track_conflicts: tuple[TrackConflict, ...] = ()
    file_conflicts: tuple[FilesConflict, ...] = ()
    bead_conflicts: tuple[BeadConflict, ...] = ()


class ReservationOverlap(msgspec.Struct, frozen=True, rename="camel"):
    """Two reservations of different agents that have a path in common; one of them is exclusive."""

    reservations: tuple[Reservation, Reservation]
    displays: tuple[str, str]
    """The names of the holders, as people are shown them."""
    witness: str
    """A path that both have."""


class SharedTrack(msgspec.Struct, frozen=True, rename="camel"):
    """A track on which several agents are active."""

    track: str
    identities: tuple[str, ...]
    displays: tuple[str, ...]


class WorkScope(msgspec.Struct, frozen=True):
    """The track, paths and items that an agent is about to work on."""

    track: str = ""
    paths: PathSet | None = None
    items: tuple[str, ...] = ()


def find_conflicts(
    board: Board, own: str, scope: WorkScope, *, folds_case: bool = False
) -> Conflicts:
    """The conflicts with those who are active. Who is stale is asked about, not warned of."""
    tracks = tuple(
        TrackConflict(
            other.id,
            board.display(other.id),
            other.track,
            ago_text(board.presence_of(other).silent_ms),
            "Work on other files and items, or on another track.",
        )
        for other in same_track(board, own, scope.track)
    )
    files = tuple(
        FilesConflict(
            conflict.holder,
            conflict.display,
            conflict.pattern,
            conflict.requested,
            conflict.witness,
            conflict.left_ms // 1_000,
            f"Leave `{conflict.pattern}` alone for {span_text(conflict.left_ms)}, or write to"
            f" {conflict.display}.",
        )
        for conflict in (
            path_conflicts(board, own, scope.paths, is_exclusive=True, folds_case=folds_case)
            if scope.paths
            else ()
        )
        if not conflict.is_stale
    )
    beads = tuple(_bead_conflicts(board, own, scope.items))
    return Conflicts(bool(tracks or files or beads), tracks, files, beads)


def same_track(board: Board, own: str, track: str) -> list[Identity]:
    """The others who are active on this track. No track is nobody's."""
    return [
        one.value
        for one in board.identities.values()
        if track
        and one.value.id != own
        and one.value.track == track
        and board.presence_of(one.value).status == "active"
    ]


def path_conflicts(
    board: Board,
    own: str,
    paths: PathSet,
    *,
    is_exclusive: bool,
    folds_case: bool = False,
) -> list[PathConflict]:
    """The reservations of others that overlap, where one of the two is exclusive.

    Who renews what it holds is not asked again about those with whom it has it already.
    """
    held = {one.pattern: one for one in board.live_reservations() if one.holder == own}
    is_renewal = held.keys() >= set(paths.patterns)
    known = {name for pattern in paths.patterns if is_renewal for name in held[pattern].despite}
    return [
        conflict
        for reservation in board.live_reservations()
        if reservation.holder != own and (is_exclusive or reservation.is_exclusive)
        if not (is_renewal and (own in reservation.despite or reservation.holder in known))
        if (conflict := _path_conflict(board, reservation, paths, folds_case=folds_case))
    ]


def _path_conflict(
    board: Board, reservation: Reservation, paths: PathSet, *, folds_case: bool
) -> PathConflict | None:
    for pattern in paths.patterns:
        requested = PathSet((pattern,), paths.excluded)
        witness = overlap(requested, reservation.path_set, folds_case=folds_case)
        if witness is not None:
            holder = board.identities[reservation.holder].value
            return PathConflict(
                reservation.holder,
                board.display(reservation.holder),
                reservation.pattern,
                pattern,
                witness,
                reservation.until_ms - board.now_ms,
                reservation.is_exclusive,
                is_stale=board.presence_of(holder).status != "active",
                worktree=reservation.worktree,
                reason=reservation.reason,
            )
    return None


def reservation_overlaps(board: Board, *, folds_case: bool = False) -> list[ReservationOverlap]:
    """The reservations that overlap because somebody went on all the same, each with the other."""
    live = board.live_reservations()
    return [
        ReservationOverlap(
            (other, one),
            (board.display(other.holder), board.display(one.holder)),
            witness,
        )
        for one in live
        for other in live
        if other.holder in one.despite
        and (one.is_exclusive or other.is_exclusive)
        and not (one.holder in other.despite and one.key < other.key)
        and (witness := overlap(one.path_set, other.path_set, folds_case=folds_case)) is not None
    ]


def shared_tracks(board: Board) -> list[SharedTrack]:
    """The tracks on which more than one is active, by name."""
    active: defaultdict[str, list[str]] = defaultdict(list)
    for recorded in board.identities.values():
        identity = recorded.value
        if identity.track and board.presence_of(identity).status == "active":
            active[identity.track].append(identity.id)
    return [
        SharedTrack(track, tuple(names), tuple(board.display(name) for name in names))
        for track, names in sorted(active.items())
        if len(names) > 1
    ]


def _bead_conflicts(board: Board, own: str, items: Sequence[str]) -> Iterable[BeadConflict]:
    for item_id in items:
        recorded = board.work.get(item_id)
        item = recorded.value if recorded else None
        holder = board.identities.get(item.assignee) if item else None
        if item is None or holder is None or holder.value.id == own:
            continue
        if item.status == "in_progress" and board.presence_of(holder.value).status == "active":
            since = ago_text(board.now_ms - item.claimed_ms)
            action = "Take another item: `interlock work ready` lists what is free."
            yield BeadConflict(
                holder.value.id, board.display(holder.value.id), item_id, since, action
            )
