"""The one statement that writes a plan, with a part for each kind of thing that the plan has.

Every part depends on `moved`, the compare-and-swap: if the stream no longer ends where the plan
begins, there is no row, and so nothing is written anywhere.
"""

import zlib
from functools import cache

from interlock.core import ids
from interlock.core.session.plan import Plan, RequestRecord
from interlock.store.fulltext import to_tsvector
from interlock.store.index_rows import STREAM_COLUMNS, run_values, stream_values, words_of
from interlock.store.postgres.project_statement import HELD_LEASE
from interlock.store.postgres.schema import IS_KNOWN, VERSION
from interlock.store.queries import blob_hash
from interlock.store.sql import Contents, Numbers, Texts, Value

CLAIM = """
INSERT INTO request (key, arguments, node, at_ms)
VALUES (%(request_key)s, %(request_arguments)s, %(request_node)s, %(request_at_ms)s)
ON CONFLICT (key) DO UPDATE SET arguments = excluded.arguments, node = excluded.node,
    at_ms = excluded.at_ms WHERE request.at_ms < %(request_oldest_ms)s RETURNING 1"""
"""Yields a row if nobody made the same call before."""
# Shared: whoever takes the lease over waits until we have committed.
_FENCE = f"fence AS ({HELD_LEASE} FOR SHARE)"
_MESSAGES = """
messages AS (
    INSERT INTO outbox (key, topic, content, at_ms)
    SELECT m.*, %(updated_ms)s
    FROM moved, unnest(%(message_keys)s, %(message_topics)s, %(message_contents)s) m
    ON CONFLICT (key) DO NOTHING RETURNING 1
)"""
_END = ("version", "digest", *STREAM_COLUMNS)
_CREATE_STREAM = f"""
moved AS (
    INSERT INTO stream (session, status, {", ".join(_END)})
    SELECT %(session)s, %(status)s, {", ".join(f"%({name})s" for name in _END)}
    WHERE {{condition}} ON CONFLICT (session) DO NOTHING RETURNING id
)"""
_ADVANCE_STREAM = f"""
moved AS (
    UPDATE stream SET {", ".join(f"{name} = %({name})s" for name in _END)},
        status = coalesce(%(status)s, status)
    WHERE {{condition}} AND session = %(session)s AND version = %(after)s AND NOT EXISTS
        (SELECT FROM event e WHERE e.stream = stream.id AND e.key = ANY (%(keys)s))
    RETURNING id
)"""
_EVENTS = """
events AS (
    INSERT INTO event (stream, seq, key, body, digest)
    SELECT moved.id, e.* FROM moved, unnest(
        %(seqs)s, %(keys)s, %(bodies)s, %(digests)s) e
)"""
_NODES = """
nodes AS (
    INSERT INTO node (stream, id, seq, kind, parent, run)
    SELECT moved.id, n.id, n.seq, n.kind, n.parent, runs.id FROM moved, unnest(
        %(node_ids)s, %(node_seqs)s, %(node_kinds)s, %(node_parents)s, %(node_runs)s
        ) n (id, seq, kind, parent, run) JOIN runs ON runs.run = n.run
)"""
# In the order of their hashes: two that write the same ones at the same moment do not deadlock.
_BLOBS = """
blobs AS (
    INSERT INTO blob (hash, content)
    SELECT b.* FROM moved, unnest(%(hashes)s, %(contents)s) b
    ON CONFLICT (hash) DO NOTHING RETURNING 1
),
uses AS (
    INSERT INTO blob_use (stream, hash)
    SELECT moved.id, u.* FROM moved, unnest(%(hashes)s) u
    ON CONFLICT DO NOTHING
)"""
_RUN: dict[str, type[Texts | Numbers | Contents]] = {
    "run": Texts,
    "head": Contents,
    "workflow": Texts,
    "updated_ms": Numbers,
    "git_branch": Texts,
    "git_head": Texts,
    "waiting": Numbers,
    "gaps_open": Numbers,
}
_RUNS = f"""
runs AS (
    INSERT INTO run (stream, {", ".join(_RUN)})
    SELECT moved.id, {", ".join(f"r.{name}" for name in _RUN)}
    FROM moved, unnest({", ".join(f"%(run_{name})s" for name in _RUN)}) r ({", ".join(_RUN)})
    ON CONFLICT (run) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _RUN if name != "run")}
    RETURNING id, run
),
words AS (
    INSERT INTO run_words (run, words)
    SELECT runs.id, w.words::tsvector
    FROM runs JOIN unnest(%(run_run)s, %(run_words)s) w (run, words) ON w.run = runs.run
    ON CONFLICT (run) DO UPDATE SET words = excluded.words WHERE run_words.words != excluded.words
)"""
_CONVERSATIONS = """
bound AS (
    INSERT INTO host_session (stream, host, id)
    SELECT moved.id, b.* FROM moved, unnest(%(hosts)s, %(host_ids)s) b
    ON CONFLICT (host, id) DO UPDATE SET stream = excluded.stream RETURNING 1
)"""
# From here on nobody else can write until we have committed, so we must not wait for anything any
# more: the parts that could wait (content, conversations, messages) come before it.
_POSITION = """
last AS (
    UPDATE latest SET position = position + 1 WHERE EXISTS (SELECT FROM moved) {before}
    RETURNING position
),
changed AS (
    INSERT INTO change (stream, position) SELECT moved.id, last.position FROM moved, last
    ON CONFLICT (stream) DO UPDATE SET position = excluded.position
)"""
_NOTIFY = "SELECT id, pg_notify(current_schema(), %(session)s) FROM moved"
_INSIST = (
    "SELECT (SELECT id FROM moved), 1 / (SELECT count(*) FROM moved),"
    " pg_notify(current_schema(), %(session)s)"
)

ANNOUNCE = """
WITH last AS (UPDATE latest SET position = position + 1 RETURNING position),
written AS (SELECT w.* FROM unnest(?, ?) w (stream, session)),
changed AS (
    INSERT INTO change (stream, position) SELECT w.stream, last.position FROM written w, last
    ON CONFLICT (stream) DO UPDATE SET position = excluded.position
)
SELECT pg_notify(current_schema(), session) FROM written"""
"""The end of `append`, once for all appends of a transaction."""

FORGET_BLOBS = """
WITH mine AS (DELETE FROM blob_use WHERE stream = ? RETURNING stream, hash)
DELETE FROM blob WHERE hash IN (
    SELECT b.hash FROM blob b JOIN mine USING (hash) WHERE NOT EXISTS
        (SELECT FROM blob_use u WHERE u.hash = mine.hash AND u.stream != mine.stream)
    -- Who holds it now begins to name it.
    FOR UPDATE OF b SKIP LOCKED)"""


def append(plan: Plan, *, is_alone: bool) -> tuple[str, dict[str, Value]]:
    """Return the statement and its values. It yields the stream, or no row if none was written.

    `is_alone`: it is a transaction of its own. If it claims a request, it fails unless all of it is
    written: whoever divides by zero takes back what was claimed.
    """
    sql = _text(
        is_new=plan.expected_version == 0,
        nodes=bool(plan.nodes),
        blobs=bool(plan.blobs),
        runs=bool(plan.runs),
        bound=bool(plan.bound_conversations),
        messages=bool(plan.outbox),
        is_claimed=is_alone and plan.request is not None,
        is_fenced=plan.lease is not None,
        is_alone=is_alone,
    )
    return sql, _values(plan)


@cache
def _text(
    *,
    is_new: bool,
    nodes: bool,
    blobs: bool,
    runs: bool,
    bound: bool,
    messages: bool,
    is_claimed: bool,
    is_fenced: bool,
    is_alone: bool,
) -> str:
    waiting = (("blobs", blobs), ("bound", bound), ("messages", messages))
    may_wait = [name for name, is_used in waiting if is_used]
    before = "".join(f" AND (SELECT count(*) FROM {name}) >= 0" for name in may_wait)
    guards = [name for name, is_used in (("claimed", is_claimed), ("fence", is_fenced)) if is_used]
    condition = " AND ".join([IS_KNOWN, *(f"EXISTS (SELECT FROM {name})" for name in guards)])
    parts = (
        (f"claimed AS ({CLAIM})", is_claimed),
        (_FENCE, is_fenced),
        (_CREATE_STREAM.format(condition=condition), is_new),
        (_ADVANCE_STREAM.format(condition=condition), not is_new),
        (_EVENTS, True),
        (_RUNS, runs),
        (_NODES, nodes),
        (_BLOBS, blobs),
        (_CONVERSATIONS, bound),
        (_MESSAGES, messages),
        (_POSITION.format(before=before), is_alone),
    )
    common_tables = ",".join(text for text, is_used in parts if is_used)
    final_select = _NOTIFY if is_alone else "SELECT id FROM moved"
    if is_claimed:
        final_select = _INSIST
    return " ".join(f"WITH {common_tables} {final_select}".split())


def request_values(request: RequestRecord) -> dict[str, Value]:
    return {
        "request_key": blob_hash(request.key),
        "request_arguments": blob_hash(request.arguments),
        "request_node": ids.raw_bytes(request.node),
        "request_at_ms": request.at_ms,
        "request_oldest_ms": request.oldest_ms,
    }


def _values(plan: Plan) -> dict[str, Value]:
    blobs = sorted((bytes.fromhex(ref[7:]), content) for ref, content in plan.blobs.items())
    bound = dict.fromkeys(plan.bound_conversations)
    messages = sorted(plan.outbox, key=lambda message: message.key)
    return {
        "schema_known": VERSION,
        "session": plan.session,
        "after": plan.expected_version,
        "version": plan.expected_version + len(plan.links),
        "digest": plan.end,
        **dict(zip(STREAM_COLUMNS, stream_values(plan.head), strict=True)),
        "status": plan.listed_status,
        "seqs": Numbers(link.seq for link in plan.links),
        "keys": Texts(plan.keys),
        "bodies": Contents(link.body for link in plan.links),
        "digests": Contents(link.digest for link in plan.links),
        "node_ids": Contents(ids.raw_bytes(node.node) for node in plan.nodes),
        "node_seqs": Numbers(node.seq for node in plan.nodes),
        "node_kinds": Texts(node.kind for node in plan.nodes),
        "node_parents": Contents(
            ids.raw_bytes(node.parent) if node.parent else None for node in plan.nodes
        ),
        "node_runs": Texts(node.run for node in plan.nodes),
        "hashes": Contents(digest for digest, _ in blobs),
        "contents": Contents(zlib.compress(content, level=1) for _, content in blobs),
        **_run_values(plan),
        "hosts": Texts(host for host, _ in bound),
        "host_ids": Texts(name for _, name in bound),
        "lease": plan.lease.name if plan.lease else None,
        "epoch": plan.lease.epoch if plan.lease else 0,
        "message_keys": Texts(message.key for message in messages),
        "message_topics": Texts(message.topic for message in messages),
        "message_contents": Contents(message.content for message in messages),
        **(request_values(plan.request) if plan.request else {}),
    }


def _run_values(plan: Plan) -> dict[str, Value]:
    rows = zip(*map(run_values, plan.runs), strict=True)
    columns = zip(_RUN.items(), rows, strict=bool(plan.runs))
    return {
        "run_words": Texts(to_tsvector(words_of(run)) for run in plan.runs),
        **{f"run_{name}": kind(column) for (name, kind), column in columns},
    }
