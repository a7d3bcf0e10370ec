"""Let the hooks of this machine know what a change in a project means for their conversations."""

from contextlib import suppress

from interlock.app.context import App
from interlock.app.coordination.board_reading import make_board
from interlock.core.coordination.board import BOARD_KINDS, Board, Thresholds
from interlock.core.coordination.foreign_reservation import ForeignReservation
from interlock.core.coordination.messages import mailboxes_of
from interlock.core.coordination.records import (
    MAILBOX,
    Message,
    MessageSent,
    PathsReleased,
    PathsReserved,
    ProjectChange,
)
from interlock.core.ids import ProjectId
from interlock.store import gate_reservations
from interlock.store.failures import StoreFailure


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
            board.identities[one.holder].value.session,
            board.display(one.holder),
            one.pattern,
            machine_ms + one.until_ms - board.now_ms,
            one.excluded,
            one.is_exclusive,
            one.worktree,
            one.reason,
            folds_case,
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
