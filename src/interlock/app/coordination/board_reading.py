"""Make the board of a project from its rows: with the store's time, and names as they are shown."""

import time

from interlock.app.context import App
from interlock.app.sessions.statuses import Observer
from interlock.core.coordination.board import Board, Thresholds, board_of, with_unattended_work
from interlock.core.coordination.records import IdentityEnd
from interlock.core.ids import SessionId
from interlock.core.project_stream import ProjectRows
from interlock.core.session.head import Head
from interlock.store.log_reader import LogReader


def make_board(
    app: App, rows: ProjectRows, thresholds: Thresholds, reader: LogReader | None = None
) -> Board:
    """Return the board. `reader` looks up the unattended work; without it, time alone counts."""
    board = board_of(
        rows.rows,
        seq=rows.seq,
        now_ms=app.store_clock.now_ms(),
        thresholds=thresholds,
        utc_offset_s=utc_offset_s(),
    )
    sessions = {SessionId(one.value.session) for one in board.identities.values()}
    heads = reader.heads(sorted(sessions)) if reader and sessions else {}
    return with_unattended_work(
        board,
        {
            session: _standing(app, session, head)
            for session, head in heads.items()
            if head.unattended
        },
    )


def _standing(app: App, session: SessionId, head: Head) -> IdentityEnd | str:
    """Return the end of work that is over, or why other work is not stale."""
    work = head.unattended
    assert work is not None, "the work of other sessions is not asked for"
    if work.is_over:
        return IdentityEnd("ended", work.since_ms, why=f"its work is over ({work.outcome})")
    runs = app.reader.runs(session, latest=1)
    return f"unattended, {Observer(app).status(session, head, next(iter(runs), None)).main.word}"


def utc_offset_s() -> int:
    """How far east of Greenwich this machine is, in whose zone names are shown."""
    return time.localtime().tm_gmtoff
