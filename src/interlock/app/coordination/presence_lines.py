"""Who else works on a project, and what one holds oneself, in lines for an agent that begins.

They name times of day, and none that is over at once: a line that has changed is told again.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.coordination.local_facts import with_local_activity
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.core.coordination.board import Board
from interlock.core.coordination.identities import clock_text
from interlock.core.coordination.preflight import others_present
from interlock.core.coordination.records import Identity
from interlock.core.session.state import SessionState
from interlock.store.failures import StoreFailure
from interlock.workspace.failures import SettingsBroken


class OthersHere(msgspec.Struct, frozen=True):
    sessions: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()


def others_here(app: App, workspace: Path, own_session: str) -> OthersHere:
    """The others who are registered with the project; nobody where that cannot be read."""
    board = _board_or_none(app, workspace)
    if board is None:
        return OthersHere()
    own = board.identity_of(own_session)
    others = others_present(board, own.id if own else "")
    lines = [_describe(board, one, workspace) for one in others]
    if lines:
        lines.append("Before you change what others hold: `preflight`, `reserve_paths`.")
    return OthersHere(frozenset(one.session for one in others), tuple(lines))


def own_holdings(app: App, state: SessionState) -> tuple[str, ...]:
    """The paths and work items of a session, which it must know of again after a break."""
    board = _board_or_none(app, Path(state.worktree)) if state.version else None
    own = board.identity_of(state.session_id) if board else None
    if board is None or own is None:
        return ()
    return tuple(_own_lines(board, own))


def _own_lines(board: Board, own: Identity) -> Iterator[str]:
    reservations, claims = board.reservations_of(own.id), board.claims_of(own.id)
    if own.track or reservations or claims:
        track = f", on track {own.track}" if own.track else ""
        yield f"You are {board.display(own.id)}, {own.id}{track}."
    for one in reservations:
        shared = "" if one.is_exclusive else ", shared"
        until = clock_text(one.until_ms, utc_offset_s=board.utc_offset_s)
        yield f"Reserved: {one.pattern}{shared}, until {until}."
    for item in claims:
        yield f"Claimed: {item.id}, {item.title}."


def _describe(board: Board, identity: Identity, workspace: Path) -> str:
    presence = board.presence_of(identity)
    paths = ", ".join(one.pattern for one in board.reservations_of(identity.id))
    items = ", ".join(item.id for item in board.claims_of(identity.id))
    seen = clock_text(board.now_ms - (presence.silent_ms or 0), utc_offset_s=board.utc_offset_s)
    elsewhere = identity.worktree and not workspace.is_relative_to(identity.worktree)
    parts = (
        f"{board.display(identity.id)}, {identity.id}, {presence.work or presence.status}",
        f"track {identity.track}" if identity.track else "",
        f"holds {paths}" if paths else "",
        f"works on {items}" if items else "",
        f"in {identity.worktree}" if elsewhere else "",
        f"last seen at {seen}" if presence.status != "active" else "",
    )
    return ", ".join(filter(None, parts)) + "."


def _board_or_none(app: App, workspace: Path) -> Board | None:
    try:
        desk = open_desk(app, workspace)
        if app.reader.project_end(desk.project)[0] == 0:
            return None
        return with_local_activity(app, read_board(app, desk))
    except (StoreFailure, SettingsBroken, OSError):
        return None  # it is reported where it matters
