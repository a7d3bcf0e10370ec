"""Registering with a project, leaving it, and taking over from those who left without a word.

An identity ends once, in one change with all that it held: its reservations are released and its
claims are open again. What it writes afterwards rests on a row that is not there any more, so the
store refuses it, whatever the agent believes (`Board.fence`).
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from interlock.core.coordination.board import Board
from interlock.core.coordination.conflicts import same_track
from interlock.core.coordination.holdings import expired_events, expired_keys
from interlock.core.coordination.identities import choose_id, draw_base_name
from interlock.core.coordination.messages import mailboxes_of, notice
from interlock.core.coordination.records import (
    ENDED_IDENTITY,
    IDENTITY,
    RESERVATION,
    WORK,
    CoordinationEvent,
    EndReason,
    Identity,
    IdentityChanged,
    IdentityEnd,
    Message,
    MessageSent,
    PathsReleased,
    ProjectChange,
    RowsForgotten,
    WorkItemChanged,
)
from interlock.core.coordination.refusals import (
    AlreadyOver,
    IdentityLost,
    StillThere,
    UnknownIdentity,
)
from interlock.core.project_stream import RowCondition
from interlock.core.visible_text import one_line

FORGOTTEN_AT_ONCE_MAX = 500
WHY_CHARS_MAX = 300


class Newcomer(msgspec.Struct, frozen=True):
    """Somebody who wants to be known in a project."""

    session: str
    worktree: str
    at_ms: int
    """Of the machine's clock."""
    random: int
    """Chooses a name where none is given."""
    base: str = ""
    track: str | None = None
    """None: as it was."""
    machine: str = ""
    host: str = ""


def register(
    board: Board, newcomer: Newcomer, *, is_asked_for: bool
) -> tuple[ProjectChange | None, Identity] | IdentityLost:
    """Plan to register a session, or to change its track; no change if it is known as it is.

    `is_asked_for`: it has called for it. Otherwise, who was taken over is told so first.
    """
    known = board.identity_of(newcomer.session)
    if known:
        return _change_track(board, known, newcomer)
    if not is_asked_for and (lost := loss_of(board, newcomer.session)):
        return lost
    last = board.last_identity_of(newcomer.session)
    identity = _new_identity(board, newcomer, last)
    # Whoever registers at the same moment may take the same id, or speak for the same session.
    conditions = (
        RowCondition(IDENTITY, None, board.seq),
        RowCondition(ENDED_IDENTITY, identity.id, 0),
    )
    events = (
        IdentityChanged(identity, "registered"),
        *_track_notices(board, identity, at_ms=newcomer.at_ms),
    )
    return ProjectChange(events, conditions), identity


def loss_of(board: Board, session: str) -> IdentityLost | None:
    """The refusal of what a session writes that was taken over, and has not registered since."""
    last = board.last_identity_of(session)
    if last is None or last.end is None or last.end.reason != "taken_over":
        return None
    return IdentityLost(last.id, last.end, board.display(last.end.by))


def _new_identity(board: Board, newcomer: Newcomer, last: Identity | None) -> Identity:
    bases = frozenset(one.value.base for one in board.identities.values())
    base = newcomer.base or (last.base if last else "")
    base = base or draw_base_name(newcomer.random, bases)
    taken = frozenset((*board.identities, *board.ended))
    return Identity(
        choose_id(base, taken, now_ms=newcomer.at_ms),
        base,
        newcomer.session,
        epoch=last.epoch + 1 if last else 1,
        created_ms=newcomer.at_ms,
        registered_ms=board.now_ms,
        track=newcomer.track if newcomer.track is not None else (last.track if last else ""),
        worktree=newcomer.worktree,
        machine=newcomer.machine,
        host=newcomer.host,
    )


def _change_track(
    board: Board, known: Identity, newcomer: Newcomer
) -> tuple[ProjectChange | None, Identity]:
    if newcomer.track is None or newcomer.track == known.track:
        return None, known
    identity = replace(known, track=newcomer.track)
    notices = _track_notices(board, identity, at_ms=newcomer.at_ms)
    return ProjectChange(
        (IdentityChanged(identity, "track"), *notices), (board.fence(known.id),)
    ), identity


def _track_notices(board: Board, identity: Identity, *, at_ms: int) -> Iterator[CoordinationEvent]:
    for other in same_track(board, identity.id, identity.track):
        subject = f"[CONFLICT] {board.display(identity.id)} works on track {identity.track}, too"
        body = "Agree with it on files and items: reserve what you change, claim what you do."
        yield notice(board, other.id, subject, body, at_ms=at_ms)


def end(board: Board, identity: Identity, why: str, *, at_ms: int) -> ProjectChange:
    """Plan the end of an identity whose session has ended."""
    return _end(board, [identity], IdentityEnd("ended", at_ms, "", why))


class TakeoverRequest(msgspec.Struct, frozen=True):
    identity: str
    by: str
    """Who takes over: an identity, or the overseer."""
    why: str = ""
    is_forced: bool = False
    """A person insists, though it is not stale."""


def take_over(
    board: Board, request: TakeoverRequest, *, at_ms: int, waiting: Iterable[Message] = ()
) -> ProjectChange | UnknownIdentity | StillThere | AlreadyOver:
    """Plan to end a stale identity, to release what it held, and to pass on its waiting mail."""
    recorded = board.identities.get(request.identity)
    if recorded is None:
        over = board.ended.get(request.identity)
        if over and over.value.end:
            display = board.display(over.value.end.by)
            return AlreadyOver(request.identity, over.value.end, display)
        return UnknownIdentity(request.identity, similar_identities(board, request.identity))
    identity = recorded.value
    presence = board.presence_of(identity)
    is_active = presence.status == "active" and not request.is_forced
    if identity.id == request.by or is_active or presence.work:
        return StillThere(
            identity.id,
            board.display(identity.id),
            presence.silent_ms,
            board.thresholds.stale_ms,
            identity.session,
            presence.work,
        )
    why = one_line(request.why)[:WHY_CHARS_MAX]
    over = IdentityEnd("taken_over", at_ms, request.by, why)
    change = _end(board, [identity], over)
    subject = f"[TAKEOVER] {board.display(request.by)} has taken over from {identity.id}"
    told = notice(board, identity.session, subject, _takeover_body(board, identity), at_ms=at_ms)
    fence = (board.fence(request.by),) if request.by in board.identities else ()
    passed = (
        MessageSent(replace(one, to=(request.by,), first_to=one.first_to or one.to, place=place))
        for place, one in enumerate(waiting)
    )
    # A message that arrives during the takeover must be passed on, too.
    mailboxes = mailboxes_of(board.identities_of(identity.session))
    fences = (*fence, *(RowCondition(kind, None, board.seq) for kind in mailboxes))
    return ProjectChange((*change.events, told, *passed), (*change.conditions, *fences))


def _takeover_body(board: Board, identity: Identity) -> str:
    paths = [one.pattern for one in board.reservations_of(identity.id)]
    items = [one.id for one in board.claims_of(identity.id)]
    released = f"Released: {', '.join(paths)}. " if paths else ""
    opened = f"Open again: {', '.join(items)}. " if items else ""
    return f"{released}{opened}Look at what was done since; `preflight` registers you anew."


def orphans(board: Board, own: str, ended_sessions: frozenset[str]) -> list[Identity]:
    """Those who were not seen within the window, or whose sessions or work have ended."""
    gone = [
        one.value
        for one in board.identities.values()
        if one.value.id != own
        and (board.presence_of(one.value).status == "gone" or one.value.session in ended_sessions)
    ]
    return [*gone, *(one.value for one in board.finished.values())]


def forgettable(board: Board, *, at_ms: int) -> list[Identity]:
    """The ended identities whose time is over."""
    oldest_ms = at_ms - board.thresholds.keep_ms
    ended = [one.value for one in board.ended.values()]
    return [one for one in ended if one.end and one.end.at_ms < oldest_ms][:FORGOTTEN_AT_ONCE_MAX]


def clean_up(
    board: Board,
    gone: Sequence[Identity],
    *,
    at_ms: int,
    old_rows: Sequence[tuple[str, str]] = (),
) -> ProjectChange | None:
    """Plan to forget orphans, reservations that have ended, and what is too old.

    `old_rows` are those of the mail of the ended, by kind and key.
    """
    over = IdentityEnd("orphaned", at_ms, "", "it was not seen for too long")
    change = _end(board, gone, over)
    gone_ids = {identity.id for identity in gone}
    released = frozenset(
        key for key, one in board.reservations.items() if one.value.holder in gone_ids
    )
    expired = tuple(expired_events(board, at_ms=at_ms, without=released))
    # What is renewed meanwhile stays.
    unchanged = [board.row_condition(RESERVATION, key) for key in expired_keys(board)]
    old = ((ENDED_IDENTITY, one.id) for one in forgettable(board, at_ms=at_ms))
    forgotten_rows = (*old, *old_rows)
    forgotten = (RowsForgotten(forgotten_rows),) if forgotten_rows else ()
    events = (*change.events, *expired, *forgotten)
    return ProjectChange(events, (*change.conditions, *unchanged)) if events else None


def _end(board: Board, identities: Iterable[Identity], over: IdentityEnd) -> ProjectChange:
    events: list[CoordinationEvent] = []
    conditions: list[RowCondition] = []
    for identity in identities:
        finished = board.ended[identity.id].value.end if identity.id in board.finished else None
        end = finished or over  # the work has ended it already, though that was not recorded
        events.append(IdentityChanged(replace(identity, end=end), end.reason))
        events += _releases(board, identity, end.reason, end.by)
        events += _resets(board, identity, over.by)
        conditions.append(board.fence(identity.id))
        # Items that have moved on meanwhile are not reset.
        conditions += [board.row_condition(WORK, item.id) for item in board.claims_of(identity.id)]
    if conditions:
        # And nothing that was reserved or claimed meanwhile is left behind.
        conditions += [RowCondition(kind, None, board.seq) for kind in (RESERVATION, WORK)]
    return ProjectChange(tuple(events), tuple(conditions))


def _releases(
    board: Board, identity: Identity, cause: EndReason, by: str
) -> Iterator[PathsReleased]:
    for key, recorded in board.reservations.items():
        if recorded.value.holder == identity.id:
            yield PathsReleased(key, identity.id, recorded.value.pattern, cause, by)


def _resets(board: Board, identity: Identity, by: str) -> Iterator[WorkItemChanged]:
    for item in board.claims_of(identity.id):
        reset = replace(item, status="open", assignee="", claimed_ms=0, updated_ms=board.now_ms)
        yield WorkItemChanged(reset, "reset", by)


def similar_identities(board: Board, name: str) -> tuple[str, ...]:
    return tuple(one for one in board.identities if name and name.casefold() in one.casefold())[:5]
