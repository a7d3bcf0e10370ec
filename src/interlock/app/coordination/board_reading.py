"""Make the board of a project from its rows: with the store's time, and names as they are shown."""

import time

from interlock.app.context import App
from interlock.core.coordination.board import Board, Thresholds, board_of
from interlock.core.project_stream import ProjectRows


def make_board(app: App, rows: ProjectRows, thresholds: Thresholds) -> Board:
    return board_of(
        rows.rows,
        seq=rows.seq,
        now_ms=app.store_clock.now_ms(),
        thresholds=thresholds,
        utc_offset_s=utc_offset_s(),
    )


def utc_offset_s() -> int:
    """How far east of Greenwich this machine is, in whose zone names are shown."""
    return time.localtime().tm_gmtoff
