"""The desk of a project: where its board is read, and the one loop that writes to its stream.

A decision is made on the board and names the rows that it rests on. If one of them has changed
meanwhile, the board is read again and decided anew: what was free may be somebody's now. Each try
that fails means that somebody else got through.
"""

import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from interlock.app.context import App
from interlock.app.coordination.board_reading import make_board
from interlock.app.sessions.project_name import project_of
from interlock.core.coordination.board import BOARD_KINDS, Board, Thresholds
from interlock.core.coordination.foreign_reservation import ForeignReservation
from interlock.core.coordination.holdings import PathRules
from interlock.core.coordination.messages import mailboxes_of
from interlock.core.coordination.records import (
    MAILBOX,
    Message,
    MessageSent,
    PathsReleased,
    PathsReserved,
    ProjectChange,
    plan_change,
)
from interlock.core.ids import ProjectId
from interlock.core.refusal import Refusal
from interlock.store import gate_reservations
from interlock.store.failures import RowsMoved, StoreBusy, StoreFailure
from interlock.store.log_reader import LogReader
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.projects.coordination_rules import coordination_rules_in
from interlock.workspace.projects.project import CONFIG

TRIES_MAX = 500
KEY_BYTES = 8

T = TypeVar("T")
No = TypeVar("No", bound=Refusal)


class ProjectDesk(msgspec.Struct, frozen=True):
    project: ProjectId
    root: Path
    thresholds: Thresholds = Thresholds()
    path_rules: PathRules = PathRules()


class PlannedChange(msgspec.Struct, Generic[T], frozen=True):
    """A decision: the change that it plans, if any, and the value for the caller."""

    change: ProjectChange | None
    value: T


def open_desk(app: App, workspace: Path) -> ProjectDesk:
    """The desk of the project that a directory belongs to.

    Raises:
        SettingsBroken: the project's config cannot be used.
    """
    project, root = project_of(app, workspace)
    rules = coordination_rules_in(root / CONFIG)
    return ProjectDesk(
        project, root, rules.thresholds, PathRules(is_case_folding(root), rules.enforce)
    )


def read_board(app: App, desk: ProjectDesk, reader: LogReader | None = None) -> Board:
    reader = reader or app.reader
    rows = reader.project_rows(desk.project, BOARD_KINDS)
    return make_board(app, rows, desk.thresholds, reader)


def append_change(
    app: App, desk: ProjectDesk, decide: Callable[[Board], PlannedChange[T] | No]
) -> T | No:
    """Append what `decide` plans, and return its value; a refusal is returned as it is."""
    for number in range(TRIES_MAX):
        # Who was too late once reads, decides and writes in one go, so that nobody comes between.
        is_alone = number > 0 and not app.log.is_grouped
        try:
            with app.log.group_commit() if is_alone else nullcontext():
                board = read_board(app, desk, app.log)
                decision = decide(board)
                if not isinstance(decision, PlannedChange):
                    return decision
                change = decision.change
                if change is None:
                    return decision.value
                key = app.entropy(KEY_BYTES).hex()
                plan = plan_change(desk.project, change, key=key, at_ms=app.clock.now_ms())
                app.log.append_to_project(plan)
        except RowsMoved:
            continue
        folds_case = desk.path_rules.folds_case
        publish_change(app, desk.project, board, change, folds_case=folds_case)
        return decision.value
    raise StoreBusy(
        f"The project changed {TRIES_MAX} times while this call tried to write to it",
        "Nothing was written. Repeat the call.",
    )


def publish_standing_reservations(app: App, workspace: Path) -> None:
    """Let the hooks know what was reserved while nobody here was under the gate."""
    with suppress(StoreFailure, SettingsBroken, OSError):  # the next change publishes it
        project, _ = project_of(app, workspace)
        seq, _ = app.reader.project_end(project)
        desk = open_desk(app, workspace)
        is_new = seq > gate_reservations.published_seq(app.home, project)
        if is_new or read_board(app, desk).finished:
            folds_case = desk.path_rules.folds_case
            publish_reservations(app, project, desk.thresholds, folds_case=folds_case)


def is_case_folding(root: Path) -> bool:
    """Whether the file system takes names that differ in case for the same."""
    dot_git = root / ".git"
    try:
        return dot_git.exists() and os.path.samefile(dot_git, root / ".GIT")
    except OSError:
        return False


def publish_change(
    app: App, project: ProjectId, board: Board, change: ProjectChange, *, folds_case: bool
) -> None:
    """Publish what a change means for the gate. The change itself is recorded, whatever fails."""
    messages = [event.message for event in change.events if isinstance(event, MessageSent)]
    is_about_paths = any(isinstance(one, PathsReserved | PathsReleased) for one in change.events)
    if not (messages or is_about_paths) or not gate_reservations.is_watching(app.home, project):
        return
    with suppress(StoreFailure):  # the next change publishes it
        if is_about_paths:
            publish_reservations(app, project, board.thresholds, folds_case=folds_case)
        if recipients := _recipients(board, messages):
            gate_reservations.mark_news(app.home, recipients)


def publish_reservations(
    app: App, project: ProjectId, thresholds: Thresholds, *, folds_case: bool
) -> None:
    """Publish what is reserved in a project, as its stream has it now.

    Raises:
        StoreFailure: it cannot be read or written.
    """
    rows = app.log.project_rows(project, BOARD_KINDS)
    board = make_board(app, rows, thresholds, app.log)
    machine_ms = app.clock.now_ms()
    published = [
        ForeignReservation(
            session=board.identities[one.holder].value.session,
            holder=board.display(one.holder),
            pattern=one.pattern,
            until_ms=machine_ms + one.until_ms - board.now_ms,
            excluded=one.excluded,
            is_exclusive=one.is_exclusive,
            worktree=one.worktree,
            reason=one.reason,
            folds_case=folds_case,
            since_ms=machine_ms + one.since_ms - board.now_ms,
        )
        for one in board.live_reservations()
    ]
    gate_reservations.publish_reservations(app.home, project, published, seq=rows.seq)


def _recipients(board: Board, messages: list[Message]) -> list[str]:
    """The sessions that have mail now; those of ended identities, too, whose agents come back."""
    mailboxes = {f"{MAILBOX}{name}" for message in messages for name in message.to}
    known = (*board.identities.values(), *board.ended.values())
    sessions = (
        one.value.session for one in known if mailboxes.intersection(mailboxes_of((one.value,)))
    )
    return list(dict.fromkeys(sessions))
