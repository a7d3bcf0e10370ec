"""See to it that an agent is told what concerns it, once, and that it counts as there.

Agents do not read mail. So whatever of ours they call, or whichever hook of theirs runs, looks
whether something was sent to them since. It costs one small query as long as nothing has happened
in the project. How far a conversation was told is a row of its own, replaced only by who finds it
as it was: two processes at the same moment do not tell the same twice.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.app.callers.caller import ancestor_conversation
from interlock.app.context import App, Attention
from interlock.app.coordination.board_reading import make_board
from interlock.app.coordination.participants import SEEN_EVERY_MS, record_seen
from interlock.app.coordination.project_desk import (
    ProjectDesk,
    open_desk,
    read_board,
)
from interlock.core import canonical
from interlock.core.coordination.board import BOARD_KINDS, Board, decode_time
from interlock.core.coordination.messages import describe_message, is_addressed_to, mailboxes_of
from interlock.core.coordination.records import CURSOR, Identity, Message
from interlock.core.ids import SessionId
from interlock.core.project_stream import RowChange
from interlock.core.workflow.operators import clip
from interlock.store import gate_reservations
from interlock.store.failures import StoreFailure
from interlock.workspace.failures import SettingsBroken

TOLD_AT_ONCE_MAX = 10
NEWS_CHARS_MAX = 600
IDLE_SECONDS = 60.0


def attend_to(app: App, session: SessionId | None) -> tuple[str, ...]:
    """The news that an agent was not told yet. It is taken for told now, and for seen."""
    # Whatever fails here, the answer to the call must not be lost by it.
    with suppress(StoreFailure, SettingsBroken, OSError):
        if session is None:
            conversation = ancestor_conversation(app)
            pair = (conversation.host, conversation.id) if conversation else None
            session = app.reader.session_of_conversation(*pair) if pair else None
        return _attend(app, session) if session else ()
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
    last = identity or board.last_identity_of(session)
    cursors = (one.content for one in rows.rows if (one.kind, one.key) == (CURSOR, session))
    cursor = next(cursors, None)
    lines = _tell(app, desk, board, last, cursor) if last and seq != seen.seq else ()
    # Another process tells what it has found, which may not be the newest: look again.
    looked_to = seen.seq if lines is None else seq
    app.coordination.looked_at[session] = msgspec.structs.replace(
        seen, seq=looked_to, identity=identity.id if identity else ""
    )
    return lines or ()


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


def _tell(
    app: App, desk: ProjectDesk, board: Board, identity: Identity, old: bytes | None
) -> tuple[str, ...] | None:
    """The mail after the one to which `old` points, which counts as told from now on.

    None if another process tells some at this moment.
    """
    with suppress(StoreFailure):  # before it is read: what is marked from now on is for the next
        gate_reservations.clear_news(app.home, identity.session)
    mail = app.log.newest_rows(
        desk.project,
        mailboxes_of(identity),
        after=decode_time(old) if old else 0,
        limit=TOLD_AT_ONCE_MAX + 1,
    )
    if not mail:
        return ()
    row = RowChange(CURSOR, identity.session, canonical.encode(mail[-1].seq))
    if not app.log.replace_row(desk.project, row, old=old):
        with suppress(StoreFailure):  # it may not tell all that was marked
            gate_reservations.mark_news(app.home, (identity.session,))
        return None
    # A message to all and to the track is in two mailboxes.
    contents = {one.key: one.content for one in mail}
    found = [msgspec.json.decode(content, type=Message) for content in contents.values()]
    window_ms = desk.thresholds.window_ms
    own = [message for message in found if is_addressed_to(identity, message, window_ms)]
    lines = [clip(describe_message(board, one), NEWS_CHARS_MAX) for one in own[-TOLD_AT_ONCE_MAX:]]
    if len(found) > TOLD_AT_ONCE_MAX:
        lines.insert(0, "There are more messages: `inbox` shows them.")
    return tuple(lines)
