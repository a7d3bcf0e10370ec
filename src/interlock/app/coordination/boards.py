"""The boards of all projects in the store, for a person who watches over them all.

Agents come from a directory, and so to one project. A person looks at the store: where a project is
on this machine is known from the worktrees of those who have registered in it. A project that is
nowhere here is shown with the usual thresholds.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.coordination.board_reading import make_board, utc_offset_s
from interlock.app.coordination.local_facts import is_on_this_machine, with_local_activity
from interlock.app.coordination.project_desk import ProjectDesk, is_case_folding, open_desk
from interlock.core.coordination.board import BOARD_KINDS, Board, Thresholds
from interlock.core.coordination.conflicts import ReservationOverlap, reservation_overlaps
from interlock.core.coordination.records import (
    ACKNOWLEDGED,
    IDENTITY,
    MAILBOX,
    OVERSEER,
    RESERVATION,
    Identity,
    Message,
)
from interlock.core.coordination.refusals import UnknownProject
from interlock.core.ids import ProjectId
from interlock.core.project_stream import ProjectRows
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.git.state import main_checkout

CONFLICTS_MAX = 200


class ProjectBoard(msgspec.Struct, frozen=True):
    desk: ProjectDesk
    name: str
    """The name that people know it by."""
    root: str
    """A directory of it, here or on another machine; empty if nobody ever registered."""
    board: Board
    active_ms: int
    """When somebody was last seen there."""


class WaitingMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message to the overseer that nobody has acknowledged."""

    project: ProjectId
    project_name: str
    message: Message
    sender: str
    """The name of the sender, as people are shown it."""
    age_ms: int


class WaitingConflict(msgspec.Struct, frozen=True, rename="camel"):
    """Two agents that hold the same paths: somebody has to decide whose they are."""

    project: ProjectId
    project_name: str
    overlap: ReservationOverlap
    now_ms: int
    """Of the store's clock, by which reservations end."""


def list_boards(app: App) -> list[ProjectBoard]:
    """The boards of all projects, the one in which somebody was seen last first."""
    found = [
        _project_board(app, project, rows)
        for project, rows in app.reader.rows_of_projects(BOARD_KINDS).items()
    ]
    return sorted(found, key=lambda one: one.active_ms, reverse=True)


def find_board(app: App, project: str) -> ProjectBoard | UnknownProject:
    rows = app.reader.project_rows(ProjectId(project), BOARD_KINDS)
    return _project_board(app, ProjectId(project), rows) if rows.seq else UnknownProject(project)


def waiting_messages(app: App) -> list[WaitingMessage]:
    """The messages to the overseer that are not acknowledged, the oldest of each project first."""
    kinds = (f"{MAILBOX}{OVERSEER}", f"{ACKNOWLEDGED}{OVERSEER}")
    rows = app.reader.rows_without_answer(*kinds)
    if not rows:
        return []
    names = {
        project: project_name(project, _root(_identities(make_board(app, own, Thresholds()))))
        for project, own in app.reader.rows_of_projects((IDENTITY,)).items()
    }
    board = Board(0, app.store_clock.now_ms(), utc_offset_s=utc_offset_s())
    messages = [(project, msgspec.json.decode(row.content, type=Message)) for project, row in rows]
    return [
        WaitingMessage(
            project,
            names.get(project) or project_name(project, ""),
            message,
            board.display(message.sender),
            max(0, board.now_ms - message.sent_ms),
        )
        for project, message in messages
    ]


def count_waiting_messages(app: App) -> int:
    kinds = (f"{MAILBOX}{OVERSEER}", f"{ACKNOWLEDGED}{OVERSEER}")
    return app.reader.count_without_answer(*kinds)


def waiting_conflicts(app: App) -> list[WaitingConflict]:
    """The reservations that overlap, of all projects."""
    found: list[WaitingConflict] = []
    for project, rows in app.reader.rows_of_projects((IDENTITY, RESERVATION)).items():
        board = make_board(app, rows, Thresholds(), app.reader)
        if len({one.holder for one in board.live_reservations()}) < 2:  # noqa: PLR2004 (a pair)
            continue
        identities = _identities(board)
        here = _directories(app, identities)
        folds_case = is_case_folding(here[0]) if here else False
        name = project_name(project, _root(identities))
        found += [
            WaitingConflict(project, name, overlap, board.now_ms)
            for overlap in reservation_overlaps(board, folds_case=folds_case)
        ]
    return found[:CONFLICTS_MAX]


def project_name(project: ProjectId, root: str) -> str:
    """The `id` of its config, or the name of its directory, or what the store calls it."""
    kind, _, name = project.partition(":")
    return name if kind == "id" and name else os.path.basename(root.rstrip("/")) or project


def _project_board(app: App, project: ProjectId, rows: ProjectRows) -> ProjectBoard:
    board = make_board(app, rows, Thresholds(), app.reader)
    identities = _identities(board)
    desk = _desk(app, project, identities)
    board = with_local_activity(app, msgspec.structs.replace(board, thresholds=desk.thresholds))
    root = _root(identities)
    ends = (one.value.end.at_ms for one in board.ended.values() if one.value.end)
    changes = (one.value.updated_ms for one in board.work.values())
    active_ms = max((*board.seen_ms.values(), *ends, *changes), default=0)
    return ProjectBoard(desk, project_name(project, root), root, board, active_ms)


def _identities(board: Board) -> list[Identity]:
    """All that are remembered, the newest first."""
    known = (one.value for one in (*board.identities.values(), *board.ended.values()))
    return sorted(known, key=lambda identity: identity.registered_ms, reverse=True)


def _desk(app: App, project: ProjectId, identities: Iterable[Identity]) -> ProjectDesk:
    for directory in _directories(app, identities):
        # A broken config is reported to those who work there; here the others are shown as well.
        with suppress(SettingsBroken, OSError):
            desk = open_desk(app, directory)
            if desk.project == project:
                return desk
    return ProjectDesk(project, Path("/"))


def _directories(app: App, identities: Iterable[Identity]) -> list[Path]:
    """The worktrees that are here; those that other machines have recorded are not looked at."""
    here = (one.worktree for one in identities if one.worktree and is_on_this_machine(app, one))
    return [Path(worktree) for worktree in dict.fromkeys(here) if os.path.isdir(worktree)]


def _root(identities: list[Identity]) -> str:
    """The main checkout of the newest worktree that is known."""
    worktree = next((one.worktree for one in identities if one.worktree), "")
    main = main_checkout(Path(worktree)) if worktree else None
    return str(main or worktree)
