"""Take over from an agent that was left behind, after its uncommitted work was saved."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.coordination.local_facts import (
    is_on_this_machine,
    process_states,
    with_local_activity,
)
from interlock.app.coordination.mail import old_mail, waiting_mail
from interlock.app.coordination.participants import Participant, act_as
from interlock.app.coordination.project_desk import (
    PlannedChange,
    ProjectDesk,
    append_change,
    read_board,
)
from interlock.core.coordination import registration
from interlock.core.coordination.board import Board
from interlock.core.coordination.records import OVERSEER, Identity, ProjectChange
from interlock.core.coordination.refusals import (
    AlreadyOver,
    IdentityLost,
    SnapshotFailed,
    StillThere,
    UnknownIdentity,
)
from interlock.core.coordination.registration import TakeoverRequest
from interlock.core.refusal import Refusal

TakeoverRefusal = UnknownIdentity | StillThere | AlreadyOver | SnapshotFailed | IdentityLost


class TakeoverWish(msgspec.Struct, frozen=True):
    identity: str
    """Its id, or what it begins with if only one begins so."""
    why: str = ""
    is_forced: bool = False
    needs_snapshot: bool = True


class TakenOverIdentity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    identity: str
    display: str
    released: tuple[str, ...]
    reopened: tuple[str, ...]
    snapshot: str = ""
    """The ref under which its uncommitted work was saved; empty if there was none."""
    is_process_alive: bool | None = None


def take_over(
    app: App, desk: ProjectDesk, who: Participant | None, wish: TakeoverWish
) -> TakenOverIdentity | TakeoverRefusal:
    """Take over from an identity; `who` is None if the overseer does it."""
    board = with_local_activity(app, read_board(app, desk, app.log))
    name = complete_name(board, wish.identity)
    request = TakeoverRequest(name, OVERSEER, wish.why, wish.is_forced)
    # Whether it can be taken over at all is asked before anything is saved.
    outcome = registration.take_over(board, request, at_ms=app.clock.now_ms())
    if not isinstance(outcome, ProjectChange):
        return outcome
    target = board.identities[name].value
    snapshot = _save_work(app, target) if wish.needs_snapshot else ""
    if isinstance(snapshot, SnapshotFailed):
        return snapshot

    def decide(
        board: Board, by: Identity | None
    ) -> PlannedChange[TakenOverIdentity] | TakeoverRefusal:
        own = msgspec.structs.replace(request, by=by.id if by else OVERSEER)
        board = with_local_activity(app, board)
        # A person has no use for it: it waits until the agent comes back.
        waiting = waiting_mail(app, desk, board, target.session, by) if by else ()
        at_ms = app.clock.now_ms()
        change = registration.take_over(board, own, at_ms=at_ms, waiting=waiting)
        if not isinstance(change, ProjectChange):
            return change
        summary = TakenOverIdentity(
            name,
            board.display(name),
            tuple(one.pattern for one in board.reservations_of(name)),
            tuple(item.id for item in board.claims_of(name)),
            snapshot,
            process_states(app, [target]).get(name),
        )
        return PlannedChange(change, summary)

    if who is None:
        return append_change(app, desk, lambda board: decide(board, None))
    acted = act_as(app, desk, who, decide)
    return acted if isinstance(acted, Refusal) else acted[1]


def complete_name(board: Board, text: str) -> str:
    """The identity that begins so, if it is the only one; else the text as it is."""
    if text in board.identities or text in board.ended:
        return text
    matches = [name for name in board.identities if text and name.startswith(text)]
    return matches[0] if len(matches) == 1 else text


def _save_work(app: App, target: Identity) -> str | SnapshotFailed:
    worktree = Path(target.worktree)
    if not is_on_this_machine(app, target) or not (worktree / ".git").exists():
        return ""
    from interlock.workspace.git.snapshots import SnapshotFailure, save_snapshot  # noqa: PLC0415 (5 ms)

    try:
        return save_snapshot(worktree, target.id) or ""
    except SnapshotFailure as failure:
        return SnapshotFailed(target.id, target.worktree, str(failure).strip()[:300])


def clean_up_orphans(app: App, desk: ProjectDesk, own: str = "") -> list[str]:
    """Forget those who are gone and what has ended; say what was set free."""
    board = with_local_activity(app, read_board(app, desk))
    ended, now_ms = _ended_sessions(app, board), app.clock.now_ms()
    if registration.clean_up(board, registration.orphans(board, own, ended), at_ms=now_ms) is None:
        return []

    def decide(board: Board) -> PlannedChange[list[str]]:
        board = with_local_activity(app, board)
        gone = registration.orphans(board, own, ended)
        at_ms = app.clock.now_ms()
        old_rows = old_mail(app, desk, registration.forgettable(board, at_ms=at_ms), at_ms)
        change = registration.clean_up(board, gone, at_ms=at_ms, old_rows=old_rows)
        return PlannedChange(change, [_describe(board, identity) for identity in gone])

    return append_change(app, desk, decide)


def _describe(board: Board, identity: Identity) -> str:
    paths = [one.pattern for one in board.reservations_of(identity.id)]
    items = [item.id for item in board.claims_of(identity.id)]
    freed = ", ".join((*paths, *items))
    return f"{board.display(identity.id)} is gone" + (f"; free again: {freed}" if freed else "")


def _ended_sessions(app: App, board: Board) -> frozenset[str]:
    """The sessions of the board that have ended, though nobody has ended their identities."""
    found: set[str] = set()
    for recorded in board.identities.values():
        session = recorded.value.session
        stream = app.reader.stream(session) if session.startswith("ses_") else None  # pyright: ignore[reportArgumentType]
        attended = stream.head.attended if stream and stream.head else None
        if attended and attended.status == "ended":
            found.add(session)
    return frozenset(found)
