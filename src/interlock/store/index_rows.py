"""The rows by which sessions and runs are found: folds of events, written with every append.

A store of an older schema gets them anew from its events (`rebuild_indexes`).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from interlock.core import canonical, ids
from interlock.core.ids import NodeId, RunId, SessionId
from interlock.core.session.events import Envelope, NodeCreated, decode_envelope
from interlock.core.session.head import Head, decode_head
from interlock.core.session.plan import Stream, fold, listed_status
from interlock.core.session.run_head import RunHead
from interlock.store.sql import Value

STREAM_COLUMNS: tuple[str, ...] = (
    "head",
    "workspace",
    "updated_ms",
    "is_archived",
    "attended",
    "waiting",
    "unattended",
)
RUN_COLUMNS: tuple[str, ...] = (
    "run",
    "head",
    "workflow",
    "updated_ms",
    "git_branch",
    "git_head",
    "waiting",
    "gaps_open",
)


ENDED_FOR_GOOD = "over"
"""The value of the column `attended`; `ended` is for a session whose client may return."""


class MigratedDatabase(Protocol):
    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterable[tuple[Any, ...]]: ...

    def run(self, sql: str, values: Sequence[Value] = ()) -> None: ...


class _OldHead(msgspec.Struct, frozen=True):
    """The head of a session as it was while it held the heads of its runs."""

    runs: tuple[RunHead, ...] = ()


class _FoldedStream(msgspec.Struct, frozen=True):
    head: Head
    status: str
    runs: tuple[RunHead, ...]
    """In the order in which they were started."""
    nodes: dict[NodeId, RunId]
    """The runs of the nodes, as far as they can be read."""


def stream_values(head: Head) -> tuple[Value, ...]:
    return (
        canonical.encode(head),
        head.workspace,
        head.updated_ms,
        head.is_archived,
        ENDED_FOR_GOOD if head.is_over else head.attended.status if head.attended else None,
        head.waiting_count,
        _unattended_since_ms(head),
    )


def _unattended_since_ms(head: Head) -> int:
    """When unattended work was asked for that is not over, or whose result needs the user.

    Nothing in a copy is ever done, and what the user has archived is not waited for.
    """
    state = head.unattended
    if state is None or head.imported_from:
        return 0
    is_unsettled = (state.is_undelivered or state.needs_look) and not head.is_archived
    return state.requested_ms if not state.is_over or is_unsettled else 0


def run_values(run: RunHead) -> tuple[Value, ...]:
    return (
        run.run,
        canonical.encode(run),
        run.workflow_id,
        run.updated_ms,
        run.git_branch,
        run.git_head,
        run.waiting_count,
        run.gaps_open,
    )


def words_of(run: RunHead) -> tuple[str, str, str]:
    """The texts that a run is found by."""
    return run.goal, run.recap, run.workflow_id


def rebuild_indexes(db: MigratedDatabase, index_words: Callable[[int, RunHead], None]) -> None:
    """Make the rows of all sessions from their events. `index_words` has the id of a run."""
    changes = ", ".join(f"{column} = ?" for column in (*STREAM_COLUMNS, "status"))
    columns = ("stream", *RUN_COLUMNS)
    insert = (
        f"INSERT INTO run ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        " RETURNING id"
    )
    streams = list(db.rows("SELECT id, session, head FROM stream ORDER BY id"))
    for stream, session, stored_head in streams:
        rows = db.rows("SELECT body FROM event WHERE stream = ? ORDER BY seq", (stream,))
        bodies = [body for (body,) in rows]
        folded = _fold_events(SessionId(session), bodies) or _stored_fold(stored_head, bodies)
        values = (*stream_values(folded.head), folded.status, stream)
        db.run(f"UPDATE stream SET {changes} WHERE id = ?", values)
        run_ids: dict[RunId, int] = {}
        for run in folded.runs:
            ((run_ids[run.run],),) = db.rows(insert, (stream, *run_values(run)))
            index_words(run_ids[run.run], run)
        for node, run in folded.nodes.items():
            db.run("UPDATE node SET run = ? WHERE id = ?", (run_ids[run], ids.raw_bytes(node)))


def _fold_events(session: SessionId, bodies: Sequence[bytes]) -> _FoldedStream | None:
    """Fold the events of a session; None if it is damaged."""
    try:
        envelopes = [decode_envelope(body) for body in bodies]
        head, runs = fold(Stream(session), envelopes)
    except (msgspec.MsgspecError, LookupError, AssertionError):
        return None
    changed_last = next((e.run for e in reversed(envelopes) if e.run), None)
    status = listed_status(head, runs[changed_last] if changed_last else None)
    return _FoldedStream(head, status or "open", tuple(runs.values()), _runs_of_nodes(envelopes))


def _stored_fold(content: bytes, bodies: Sequence[bytes]) -> _FoldedStream:
    """Take what an older Interlock made of the events of a session that is damaged."""
    try:
        runs = msgspec.json.decode(content, type=_OldHead).runs
        head = decode_head(content)
    except msgspec.MsgspecError:
        return _FoldedStream(Head("", 0, 0), "open", (), {})
    head = msgspec.structs.replace(
        head, run_count=len(runs), latest_run=runs[-1].run if runs else None
    )
    envelopes: list[Envelope] = []
    for body in bodies:
        with suppress(msgspec.MsgspecError):
            envelopes.append(decode_envelope(body))
    known = {run.run for run in runs}
    nodes = {node: run for node, run in _runs_of_nodes(envelopes).items() if run in known}
    status = listed_status(head, runs[-1] if runs else None)
    return _FoldedStream(head, status or "open", runs, nodes)


def _runs_of_nodes(envelopes: Iterable[Envelope]) -> dict[NodeId, RunId]:
    return {
        envelope.node: envelope.run
        for envelope in envelopes
        if envelope.run and envelope.node and isinstance(envelope.event, NodeCreated)
    }
