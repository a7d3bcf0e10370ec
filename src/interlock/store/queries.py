"""Questions about nodes and events, which can be asked together: see `LogReader.ask`.

A node's id is eight bytes in the node table, and part of the keys of the events that concern it, as
text: `output:node_<hex>:…`.
"""

from collections.abc import Sequence

import msgspec

from interlock.core import ids
from interlock.core.ids import BlobRef, NodeId, RunId, SessionId
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope, decode_envelope
from interlock.core.session.head import decode_head
from interlock.core.session.plan import Stream
from interlock.core.session.run_head import RunHead, decode_run_head
from interlock.store.records import BranchBelow, EarlierRequest, LocatedNode, RunLine
from interlock.store.sql import LEFT_FIRST, Query, Rows, Texts

CHECKPOINTS_MAX = 20
_CREATED = "SELECT e.body FROM node n JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
_LINE = (
    "WITH RECURSIVE line (depth, steps, id, stream, seq, parent) AS ("
    " SELECT 1, CASE kind WHEN 'step' THEN 1 ELSE 0 END, id, stream, seq, parent"
    " FROM node WHERE id = ?"
    " UNION ALL SELECT line.depth + 1, line.steps + CASE n.kind WHEN 'step' THEN 1 ELSE 0 END,"
    " n.id, n.stream, n.seq, n.parent"
    " FROM line JOIN node n ON n.id = line.parent WHERE line.steps < ?)"
)
_CHECKPOINTS = (
    "checkpoint (id, stream, seq) AS (SELECT id, stream, seq FROM node"
    " WHERE parent IN (SELECT id FROM line) AND kind = 'checkpoint' ORDER BY seq DESC LIMIT ?)"
)
# A step that was accepted after blocked attempts hangs below those.
_TRIES = (
    "WITH RECURSIVE tries (id, stream) AS (SELECT id, stream FROM node WHERE id = ?"
    " UNION ALL SELECT n.id, n.stream FROM tries"
    " JOIN node n ON n.parent = tries.id AND n.kind = 'blocked')"
)
_NEXT_STEPS = (
    "upcoming (id, seq) AS (SELECT id, seq FROM node WHERE parent IN (SELECT id FROM tries)"
    " AND kind IN ('step', 'approval') ORDER BY seq DESC LIMIT ?)"
)


def node_location(
    node: NodeId, *, prefix: str = "", keys: Sequence[str] = ()
) -> Query[LocatedNode | None]:
    """A node, the end of its stream, and the events of its stream with these keys."""
    raw = ids.raw_bytes(node)
    keyed = "SELECT k.body FROM node n JOIN keyed_event k ON k.stream = n.stream"

    def decode(results: Sequence[Rows]) -> LocatedNode | None:
        rows, keyed_rows, children = results
        if not rows:
            return None
        row = rows[0]
        stream = _stream(*row[:5])
        tail = [ChainLink(*link) for link in (row[9:12], row[12:15]) if link[0] is not None]
        located = LocatedNode(
            stream, ChainLink(*row[5:8]), previous_digest=row[8], tail=tuple(tail)
        )
        try:
            return msgspec.structs.replace(
                located,
                events=_by_key(keyed_rows),
                children=tuple(_envelopes(children)),
                is_readable=bool(stream.runs),
            )
        except msgspec.MsgspecError:
            return msgspec.structs.replace(located, is_readable=False)

    return Query(
        (
            (
                "SELECT s.session, s.version, s.digest, s.head, r.head,"
                " e.seq, e.body, e.digest, p.digest,"
                " b.seq, b.body, b.digest, l.seq, l.body, l.digest"
                " FROM node n JOIN stream s ON s.id = n.stream LEFT JOIN run r ON r.id = n.run"
                " JOIN event e ON e.stream = n.stream AND e.seq = n.seq"
                " JOIN event p ON p.stream = n.stream AND p.seq = n.seq - 1"
                " LEFT JOIN event b ON b.stream = n.stream AND b.seq = s.version - 2"
                " LEFT JOIN event l ON l.stream = n.stream AND l.seq = s.version - 1"
                " WHERE n.id = ?",
                (raw,),
            ),
            (
                f"{keyed} WHERE n.id = ? AND k.key >= ? AND k.key < ?"
                f" UNION ALL {keyed} WHERE n.id = ? AND k.key = ANY (?)",
                (raw, prefix, _prefix_end(prefix), raw, Texts(keys)),
            ),
            (
                f"{_CREATED} WHERE n.parent = ? AND n.kind IN ('step', 'blocked', 'approval')"
                " ORDER BY n.seq",
                (raw,),
            ),
        ),
        decode,
    )


def creation_event(node: NodeId) -> Query[Envelope | None]:
    """The event that created a node."""
    statement = (f"{_CREATED} WHERE n.id = ?", (ids.raw_bytes(node),))
    return Query((statement,), lambda results: next(iter(_envelopes(results[0])), None))


def line_to(node: NodeId, *, steps: int, checkpoints: int = CHECKPOINTS_MAX) -> Query[RunLine]:
    """The nodes on the path to `node`, at most `steps` steps, with their submissions."""

    def decode(results: Sequence[Rows]) -> RunLine:
        rows = sorted(results[0], key=lambda row: row[:2])
        nodes, checkpoint_nodes, outputs = (
            tuple(decode_envelope(body) for which, _, body in rows if which == part)
            for part in range(3)
        )
        return RunLine(nodes, checkpoint_nodes, {output.key: output for output in outputs})

    # One statement, so that the way is walked once.
    statement = (
        f"{_LINE}, {_CHECKPOINTS} SELECT 0, line.depth, e.body FROM line"
        " JOIN event e ON e.stream = line.stream AND e.seq = line.seq"
        " UNION ALL SELECT 1, -e.seq, e.body FROM checkpoint"
        " JOIN event e ON e.stream = checkpoint.stream AND e.seq = checkpoint.seq"
        f" UNION ALL SELECT 2, 0, {_outputs_of('line')}"
        f" UNION ALL SELECT 2, 0, {_outputs_of('checkpoint')}",
        (ids.raw_bytes(node), steps, checkpoints),
    )
    return Query((statement,), decode)


def branches_below(node: NodeId, *, limit: int) -> Query[list[BranchBelow]]:
    """The branches on which the step at `node` was submitted, the newest first.

    There are several where it was submitted again after a rewind.
    """
    raw = ids.raw_bytes(node)

    def decode(results: Sequence[Rows]) -> list[BranchBelow]:
        steps, outputs, below = results
        newest = dict[bytes, NodeId]()
        for root, tip in below:  # the newest comes first
            newest.setdefault(bytes(root), ids.node_id(tip))
        outputs_by_key = _by_key(outputs)
        return [
            BranchBelow(decode_envelope(body), newest[bytes(id_)], outputs_by_key)
            for id_, body in steps
        ]

    return Query(
        (
            (
                f"{_TRIES}, {_NEXT_STEPS} SELECT n.id, e.body FROM upcoming"
                " JOIN node n ON n.id = upcoming.id"
                " JOIN event e ON e.stream = n.stream AND e.seq = n.seq ORDER BY n.seq DESC",
                (raw, limit),
            ),
            (f"{_TRIES} SELECT {_outputs_of('tries')}", (raw,)),
            (
                f"{_TRIES}, {_NEXT_STEPS}, below (root, id, seq) AS ("
                " SELECT id, id, seq FROM upcoming"
                " UNION ALL SELECT below.root, n.id, n.seq FROM below JOIN node n"
                " ON n.parent = below.id AND n.kind IN ('step', 'blocked', 'approval'))"
                " SELECT root, id FROM below ORDER BY seq DESC",
                (raw, limit),
            ),
        ),
        decode,
    )


def events_with_keys(session: SessionId, keys: Sequence[str]) -> Query[dict[str, Envelope]]:
    """The events with these keys, as far as there are any."""
    statement = (
        "SELECT e.body FROM stream s JOIN keyed_event e ON e.stream = s.id"
        " WHERE s.session = ? AND e.key = ANY (?)",
        (session, Texts(keys)),
    )
    return Query((statement,) if keys else (), _all_by_key)


def events_with_prefixes(prefixes: Sequence[tuple[SessionId, str]]) -> Query[dict[str, Envelope]]:
    """The events of sessions whose keys begin so."""
    statements = [
        (
            "SELECT e.body FROM stream s JOIN keyed_event e ON e.stream = s.id"
            " WHERE s.session = ? AND e.key >= ? AND e.key < ?",
            (session, prefix, _prefix_end(prefix)),
        )
        for session, prefix in prefixes
    ]
    return Query(statements, _all_by_key)


def node_bodies(session: SessionId) -> Query[list[bytes]]:
    """The events that created the nodes of a session, as they are stored, in any order."""
    statement = (
        "SELECT e.body FROM stream s JOIN keyed_event e ON e.stream = s.id"
        " WHERE s.session = ? AND e.key >= 'node:' AND e.key < 'node;'",
        (session,),
    )
    return Query((statement,), lambda results: [body for (body,) in results[0]])


def end_of_stream(session: SessionId, run: RunId | None = None) -> Query[Stream | None]:
    """The end of a session's stream, with the head of one of its runs if that is named."""
    statement = (
        "SELECT s.session, s.version, s.digest, s.head, r.head FROM stream s"
        " LEFT JOIN run r ON r.stream = s.id AND r.run = ? WHERE s.session = ?",
        (run, session),
    )
    return Query((statement,), lambda results: _stream(*results[0][0]) if results[0] else None)


def conversation_stream(host: str, conversation: str) -> Query[Stream | None]:
    """The stream of the session that a client's conversation belongs to."""
    statement = (
        "SELECT s.session, s.version, s.digest, s.head, NULL FROM host_session h"
        " JOIN stream s ON s.id = h.stream WHERE h.host = ? AND h.id = ?",
        (host, conversation),
    )
    return Query((statement,), lambda results: _stream(*results[0][0]) if results[0] else None)


def sessions_of_conversations(
    conversations: Sequence[tuple[str, str]],
) -> Query[dict[tuple[str, str], SessionId]]:
    """The sessions that conversations (host, and the id there) belong to, if they do."""
    statements = [
        (
            "SELECT s.session FROM host_session h JOIN stream s ON s.id = h.stream"
            " WHERE h.host = ? AND h.id = ?",
            conversation,
        )
        for conversation in conversations
    ]
    return Query(
        statements,
        lambda results: {
            conversation: SessionId(rows[0][0])
            for conversation, rows in zip(conversations, results, strict=True)
            if rows
        },
    )


def earlier_request(key: BlobRef) -> Query[EarlierRequest | None]:
    """The last call with this request key, if there was one."""
    statement = ("SELECT arguments, node, at_ms FROM request WHERE key = ?", (blob_hash(key),))

    def decode(results: Sequence[Rows]) -> EarlierRequest | None:
        for arguments, node, at_ms in results[0]:
            return EarlierRequest(blob_ref(arguments), ids.node_id(node), at_ms)
        return None

    return Query((statement,), decode)


def latest_runs(session: SessionId, *, limit: int) -> Query[list[RunHead]]:
    """The heads of the runs that were started last, in the order in which they were started."""
    statement = (
        "SELECT r.head FROM stream s JOIN run r ON r.stream = s.id WHERE s.session = ?"
        " ORDER BY r.id DESC LIMIT ?",
        (session, limit),
    )
    return Query(
        (statement,), lambda results: [decode_run_head(head) for (head,) in results[0]][::-1]
    )


def blob_hash(ref: BlobRef) -> bytes:
    return bytes.fromhex(ref.removeprefix("sha256:"))


def blob_ref(digest: bytes) -> BlobRef:
    return BlobRef(f"sha256:{digest.hex()}")


def _outputs_of(nodes: str) -> str:
    """The outputs that were submitted at these nodes, accepted or not."""
    return (
        f"k.body FROM {nodes} {LEFT_FIRST} keyed_event k ON k.stream = {nodes}.stream"
        f" AND k.key >= 'output:node_' || encode({nodes}.id, 'hex') || ':'"
        f" AND k.key < 'output:node_' || encode({nodes}.id, 'hex') || ';'"
    )


def _prefix_end(prefix: str) -> str:
    """The first text that comes after all that begin with `prefix`, which ends in a colon."""
    return f"{prefix[:-1]};"


def _envelopes(rows: Rows) -> list[Envelope]:
    return [decode_envelope(body) for (body,) in rows]


def _by_key(rows: Rows) -> dict[str, Envelope]:
    return {envelope.key: envelope for envelope in _envelopes(rows)}


def _all_by_key(results: Sequence[Rows]) -> dict[str, Envelope]:
    return {key: envelope for rows in results for key, envelope in _by_key(rows).items()}


def _stream(
    session: str, version: int, digest: bytes, head: bytes, run_head: bytes | None
) -> Stream:
    run = decode_run_head(run_head) if run_head else None
    runs = {run.run: run} if run else {}
    return Stream(SessionId(session), version, digest, decode_head(head), runs)
