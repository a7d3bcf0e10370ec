"""See to it that an agent is told what concerns it, once, and that it counts as there.

Agents do not read mail. So whatever of ours they call, or whichever hook of theirs runs, looks
whether something was sent to them since. It costs one small query as long as nothing has happened
in the project. How far a conversation was told is a row of its own, replaced only by who finds it
as it was: two processes at the same moment do not tell the same twice.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.app.context import App, Attention
from interlock.app.coordination.board_reading import make_board
from interlock.app.coordination.participants import SEEN_EVERY_MS, record_seen
from interlock.app.coordination.project_desk import ProjectDesk, open_desk, read_board
from interlock.core.coordination.board import BOARD_KINDS, Board
from interlock.core.coordination.messages import (
    START,
    decode_cursor,
    describe_message,
    is_delivered,
    mailboxes_of,
    messages_for,
)
from interlock.core.coordination.records import CURSOR
from interlock.core.ids import SessionId
from interlock.core.project_stream import RowChange
from interlock.store import gate_reservations
from interlock.store.failures import StoreFailure
from interlock.workspace.failures import SettingsBroken

DELIVERED_MAX = 10
"""So many messages come with one call; the others follow with the next ones."""
IDLE_SECONDS = 60.0


def attend_to(app: App, session: SessionId) -> tuple[str, ...]:
    """The news that an agent was not told yet. It is taken for told now, and for seen."""
    # Whatever fails here, the answer to the call must not be lost by it.
    with suppress(StoreFailure, SettingsBroken, OSError):
        return _attend(app, session)
    return ()


def _attend(app: App, session: SessionId) -> tuple[str, ...]:
    seen = app.coordination.looked_at.get(session) or _first_look(app, session)
    if seen is None:
        return ()
    seq, _ = app.reader.project_end(seen.project)
    if seq == 0:
        return ()
    is_due = _is_due(app, seen)
    if seq == seen.seq and not is_due:
        return ()
    desk = open_desk(app, Path(seen.workspace))
    rows = app.log.project_rows(desk.project, (*BOARD_KINDS, CURSOR))
    board = make_board(app, rows, desk.thresholds)
    identity = board.identity_of(session)
    if identity and is_due:
        record_seen(app, desk, identity, every_ms=SEEN_EVERY_MS)
    cursors = (one.content for one in rows.rows if (one.kind, one.key) == (CURSOR, session))
    lines, is_all = list[str](), True
    if seq != seen.seq and board.identities_of(session):
        lines, is_all = _deliver(app, desk, board, session, next(cursors, None))
    app.coordination.looked_at[session] = msgspec.structs.replace(
        seen, seq=seq if is_all else seen.seq, identity=identity.id if identity else ""
    )
    return tuple(lines)


def _first_look(app: App, session: SessionId) -> Attention | None:
    stream = app.reader.stream(session)
    if stream is None or stream.head is None or not Path(stream.head.workspace).is_dir():
        return None
    desk = open_desk(app, Path(stream.head.workspace))
    seen = Attention(desk.project, stream.head.workspace)
    app.coordination.looked_at[session] = seen
    return seen


def _is_due(app: App, seen: Attention) -> bool:
    """Whether it is time to record that the agent is there."""
    if not seen.identity:
        return False
    recorded_ms = app.coordination.recorded_ms.get(seen.identity, 0)
    return abs(app.clock.now_ms() - recorded_ms) >= SEEN_EVERY_MS


def beat(app: App, session: SessionId) -> float:
    """While nothing else happens, record now and then that the agent is there.

    Returns how many seconds from now it is due again. Until it is, the store is left alone.
    """
    seen = app.coordination.looked_at.get(session)
    if seen is None or not seen.identity:
        return IDLE_SECONDS
    with suppress(StoreFailure, SettingsBroken, OSError):
        desk = open_desk(app, Path(seen.workspace))
        interval_ms = desk.thresholds.heartbeat_ms
        silent_ms = abs(app.clock.now_ms() - app.coordination.recorded_ms.get(seen.identity, 0))
        if silent_ms < interval_ms:
            return (interval_ms - silent_ms) / 1_000
        if recorded := read_board(app, desk).identities.get(seen.identity):
            record_seen(app, desk, recorded.value)
        return interval_ms / 1_000
    return IDLE_SECONDS


def _deliver(
    app: App, desk: ProjectDesk, board: Board, session: SessionId, old: bytes | None
) -> tuple[list[str], bool]:
    """Return the next messages of a session, and whether these are all.

    They count as delivered from now on. `old` is the cursor of the session.
    """
    with suppress(StoreFailure):  # before it is read: what is marked from now on is for the next
        gate_reservations.clear_news(app.home, session)
    own = board.identities_of(session)
    mailboxes = mailboxes_of(own)
    cursor = decode_cursor(old, mailboxes)
    first = min(cursor.get(kind, START)[0] for kind in mailboxes)
    # Mail from before a takeover is delivered to the successor.
    first = max(first, board.mail_passed_on_at(session))
    rows = app.log.oldest_rows(desk.project, mailboxes, after=first - 1)
    found = messages_for(own, rows, desk.thresholds.window_ms).items()
    waiting = [one for one in found if not is_delivered(cursor, *one)]
    left = len(waiting[DELIVERED_MAX:])
    end = waiting[DELIVERED_MAX - 1][0] if left else (rows[-1].seq + 1, -1, "") if rows else START
    moved = cursor | {kind: max(cursor.get(kind, START), end) for kind in mailboxes}
    if not rows or moved == cursor:
        return [], True
    row = RowChange(CURSOR, session, msgspec.json.encode(moved))
    is_ours = app.log.replace_row(desk.project, row, old=old)
    if left or not is_ours:
        with suppress(StoreFailure):  # another process may not deliver all that was marked
            gate_reservations.mark_news(app.home, (session,))
    if not is_ours:
        return [], False
    lines = [describe_message(board, message) for _, message in waiting[:DELIVERED_MAX]]
    if left:
        wait = "messages wait" if left > 1 else "message waits"
        lines.append(f"{left} more {wait}; call any tool, or `inbox`, to read on.")
    return lines, not left
