"""Reserve and release paths, claim and change work items, for whoever calls."""

from collections.abc import Sequence

import msgspec

from interlock.app.context import App
from interlock.app.coordination.local_facts import with_local_activity
from interlock.app.coordination.participants import Participant, act_as
from interlock.app.coordination.project_desk import (
    PlannedChange,
    ProjectDesk,
    append_change,
    read_board,
)
from interlock.core.coordination import holdings, work_items
from interlock.core.coordination.board import Board
from interlock.core.coordination.holdings import ReservationRequest
from interlock.core.coordination.path_patterns import PathSet, PatternFault, parse_path_set
from interlock.core.coordination.records import (
    DONE_WORK,
    OVERSEER,
    Identity,
    PathsReleased,
    PathsReserved,
    ProjectChange,
    Reservation,
    WorkItem,
)
from interlock.core.coordination.refusals import (
    IdentityLost,
    NothingReserved,
    PathsHeld,
    PatternRefused,
    UnknownIdentity,
    UnknownWork,
    WorkHeld,
    WorkNotFree,
    WorkRefused,
)
from interlock.core.coordination.registration import loss_of, similar_identities
from interlock.core.coordination.work_items import WorkDraft, WorkItemUpdate
from interlock.core.refusal import Refusal
from interlock.core.visible_text import is_blank, one_line

REASON_CHARS_MAX = 500
_SALT_BYTES = 4


class ReserveRequest(msgspec.Struct, frozen=True):
    """A request to reserve paths, as it is written by its caller."""

    paths: tuple[str, ...]
    ttl_ms: int | None = None
    is_shared: bool = False
    reason: str = ""
    proceeds: bool = False


class ReservedPaths(msgspec.Struct, frozen=True):
    holder: Identity
    reservations: tuple[Reservation, ...]
    now_ms: int


def parse_paths(desk: ProjectDesk, paths: Sequence[str]) -> PathSet | PatternRefused:
    outcome = parse_path_set(paths, str(desk.root))
    if isinstance(outcome, PatternFault):
        return PatternRefused(outcome.pattern, outcome.reason)
    return outcome


def reserve_paths(
    app: App, desk: ProjectDesk, who: Participant, request: ReserveRequest
) -> ReservedPaths | PathsHeld | PatternRefused | IdentityLost:
    paths = parse_paths(desk, request.paths)
    if isinstance(paths, PatternRefused):
        return paths
    wish = ReservationRequest(
        paths,
        request.ttl_ms or desk.thresholds.reservation_ms,
        is_exclusive=not request.is_shared,
        reason="" if is_blank(request.reason) else one_line(request.reason)[:REASON_CHARS_MAX],
        proceeds=request.proceeds,
    )

    def act(board: Board, holder: Identity) -> PlannedChange[ReservedPaths] | PathsHeld:
        outcome = holdings.reserve(board, holder, wish, desk.path_rules, at_ms=app.clock.now_ms())
        if isinstance(outcome, PathsHeld):
            return outcome
        return PlannedChange(outcome, _holdings_with(board, holder, outcome))

    outcome = act_as(app, desk, who, act)
    return outcome if isinstance(outcome, Refusal) else outcome[1]


def release_paths(
    app: App, desk: ProjectDesk, who: Participant, patterns: Sequence[str]
) -> ReservedPaths | NothingReserved | PatternRefused | IdentityLost:
    """Release these, or all. What is left is returned."""
    paths = parse_paths(desk, patterns) if patterns else PathSet(())
    if isinstance(paths, PatternRefused):
        return paths

    def act(board: Board, holder: Identity) -> PlannedChange[ReservedPaths] | NothingReserved:
        outcome = holdings.release(board, holder, paths.patterns)
        if isinstance(outcome, NothingReserved):
            return outcome
        return PlannedChange(outcome, _holdings_with(board, holder, outcome))

    outcome = act_as(app, desk, who, act)
    return outcome if isinstance(outcome, Refusal) else outcome[1]


class ReleasedPaths(msgspec.Struct, frozen=True, rename="camel"):
    identity: str
    display: str
    released: tuple[str, ...]
    """The patterns that are free now; none if somebody else was faster."""


def release_as_overseer(
    app: App, desk: ProjectDesk, identity: str, patterns: Sequence[str] = ()
) -> ReleasedPaths | UnknownIdentity:
    """Release what an agent has reserved, as the person who watches over it. The agent is told."""

    def decide(board: Board) -> PlannedChange[ReleasedPaths] | UnknownIdentity:
        recorded = board.identities.get(identity)
        if recorded is None:
            return UnknownIdentity(identity, similar_identities(board, identity))
        change = holdings.release_as_overseer(
            board, recorded.value, patterns, at_ms=app.clock.now_ms()
        )
        events = change.events if change else ()
        released = tuple(one.pattern for one in events if isinstance(one, PathsReleased))
        return PlannedChange(change, ReleasedPaths(identity, board.display(identity), released))

    return append_change(app, desk, decide)


def _holdings_with(board: Board, holder: Identity, change: ProjectChange | None) -> ReservedPaths:
    """The reservations of somebody once a change of theirs is written, by their keys."""
    held = {one.key: one for one in board.reservations_of(holder.id)}
    for event in change.events if change else ():
        if isinstance(event, PathsReserved):
            held[event.reservation.key] = event.reservation
        elif isinstance(event, PathsReleased):
            held.pop(event.key, None)
    reservations = tuple(held[key] for key in sorted(held))
    return ReservedPaths(holder, reservations, board.now_ms)


ClaimRefusal = UnknownWork | WorkHeld | WorkNotFree | IdentityLost


def claim_work(
    app: App, desk: ProjectDesk, who: Participant, item_id: str
) -> WorkItem | ClaimRefusal:
    """Claim an item; who has it already keeps it."""

    def act(
        board: Board, holder: Identity
    ) -> PlannedChange[None] | UnknownWork | WorkHeld | WorkNotFree:
        outcome = holdings.claim(with_local_activity(app, board), holder, item_id)
        return (
            PlannedChange(outcome, None) if isinstance(outcome, ProjectChange | None) else outcome
        )

    outcome = act_as(app, desk, who, act)
    if isinstance(outcome, UnknownWork):
        return _if_done(app, desk, outcome)
    if isinstance(outcome, Refusal):
        return outcome
    return read_board(app, desk, app.log).work[item_id].value


def _if_done(app: App, desk: ProjectDesk, unknown: UnknownWork) -> UnknownWork | WorkNotFree:
    is_done = any(item.id == unknown.item for item in done_work(app, desk))
    return WorkNotFree(unknown.item, "done") if is_done else unknown


def add_work(
    app: App, desk: ProjectDesk, who: Participant, draft: WorkDraft
) -> WorkItem | WorkRefused | UnknownWork | IdentityLost:
    if draft.request_id:
        named = find_work(app, desk, work_items.named_id(who.key, draft.request_id))
        if isinstance(named, WorkItem):
            return named

    def decide(board: Board) -> PlannedChange[WorkItem] | WorkRefused | UnknownWork | IdentityLost:
        known = board.identity_of(who.key)
        if lost := loss_of(board, who.key):
            return lost
        by = known.id if known else OVERSEER if who.is_person else who.key
        is_waiting = any(name not in board.work for name in draft.depends_on)
        finished = done_work(app, desk) if is_waiting else ()
        done = frozenset(item.id for item in finished)
        salt = app.entropy(_SALT_BYTES).hex()
        outcome = work_items.add(board, draft, by, done, caller=who.key, salt=salt)
        return PlannedChange(*outcome) if isinstance(outcome, tuple) else outcome

    return append_change(app, desk, decide)


def update_work(
    app: App, desk: ProjectDesk, who: Participant, item_id: str, change: WorkItemUpdate
) -> WorkItem | UnknownWork | WorkHeld | WorkRefused | IdentityLost:
    """Change an item: its owner, anybody where it has none, and a person always."""
    wish = msgspec.structs.replace(change, is_forced=who.is_person)

    def decide(
        board: Board,
    ) -> PlannedChange[None] | UnknownWork | WorkHeld | WorkRefused | IdentityLost:
        known = board.identity_of(who.key)
        if lost := loss_of(board, who.key):
            return lost
        outcome = work_items.update(board, item_id, wish, known)
        return (
            PlannedChange(outcome, None) if isinstance(outcome, ProjectChange | None) else outcome
        )

    outcome = append_change(app, desk, decide)
    if outcome is not None:
        return outcome
    return find_work(app, desk, item_id)


def why_not_owned(
    app: App, desk: ProjectDesk, who: Participant, item_id: str
) -> WorkHeld | IdentityLost | None:
    """The refusal of a change to what somebody else works on, or by who was taken over."""
    board = read_board(app, desk, app.log)
    if lost := loss_of(board, who.key):
        return lost
    item, own = board.work.get(item_id), board.identity_of(who.key)
    owner = item.value.assignee if item and item.value.status == "in_progress" else ""
    if who.is_person or owner not in board.identities or (own and own.id == owner):
        return None
    since_ms = board.now_ms - item.value.claimed_ms if item else 0
    return WorkHeld(item_id, owner, board.display(owner), since_ms)


def find_work(app: App, desk: ProjectDesk, item_id: str) -> WorkItem | UnknownWork:
    board = read_board(app, desk, app.log)
    if recorded := board.work.get(item_id):
        return recorded.value
    found = (item for item in done_work(app, desk) if item.id == item_id)
    return next(found, None) or UnknownWork(item_id, holdings.similar_items(board, item_id))


def done_work(app: App, desk: ProjectDesk) -> list[WorkItem]:
    rows = app.log.project_rows(desk.project, (DONE_WORK,)).rows
    return [msgspec.json.decode(row.content, type=WorkItem) for row in rows]
