"""The one statement that writes a plan, with a part for each kind of thing that the plan has.

Every part depends on `moved`, the compare-and-swap: if the stream no longer ends where the plan
begins, there is no row, and so nothing is written anywhere.
"""

import zlib
from functools import cache

from interlock.core import canonical, ids
from interlock.core.session.plan import Plan
from interlock.store.postgres.fulltext import to_tsvector
from interlock.store.postgres.values import Contents, Flags, Numbers, Texts, Value

_CREATE_STREAM = """
moved AS (
    INSERT INTO stream (session, version, digest, head)
    VALUES (%(session)s, %(version)s, %(digest)s, %(head)s)
    ON CONFLICT (session) DO NOTHING RETURNING id
)"""
_ADVANCE_STREAM = """
moved AS (
    UPDATE stream SET version = %(version)s, digest = %(digest)s, head = %(head)s
    WHERE session = %(session)s AND version = %(after)s AND NOT EXISTS
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
    INSERT INTO node (stream, id, seq, kind, parent)
    SELECT moved.id, n.* FROM moved, unnest(
        %(node_ids)s, %(node_seqs)s,
        %(node_kinds)s, %(node_parents)s) n
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
_RUN: dict[str, type[Texts | Numbers | Flags]] = {
    "run": Texts,
    "updated_ms": Numbers,
    "title": Texts,
    "workflow": Texts,
    "status": Texts,
    "step": Texts,
    "steps_done": Numbers,
    "steps_skipped": Numbers,
    "step_count": Numbers,
    "recap": Texts,
    "workspace": Texts,
    "tip": Texts,
    "git_branch": Texts,
    "git_head": Texts,
    "is_archived": Flags,
    "approvals": Numbers,
    "words": Texts,
}
_RUNS = f"""
runs AS (
    INSERT INTO resume (stream, {", ".join(_RUN)})
    SELECT moved.id, {", ".join(f"r.{name}" for name in _RUN)}::tsvector
    FROM moved, unnest({", ".join(f"%(run_{name})s" for name in _RUN)}) r ({", ".join(_RUN)})
    ON CONFLICT (run) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _RUN if name != "run")}
)"""
_ATTENDED = """
watched AS (
    INSERT INTO attended (stream, workspace, status, updated_ms, is_archived)
    SELECT id, %(workspace)s, %(status)s, %(updated_ms)s, %(is_archived)s FROM moved
    ON CONFLICT (stream) DO UPDATE SET workspace = excluded.workspace, status = excluded.status,
        updated_ms = excluded.updated_ms, is_archived = excluded.is_archived
)"""
_CONVERSATIONS = """
bound AS (
    INSERT INTO host_session (stream, host, id)
    SELECT moved.id, b.* FROM moved, unnest(%(hosts)s, %(host_ids)s) b
    ON CONFLICT (host, id) DO UPDATE SET stream = excluded.stream RETURNING 1
)"""
# From here on nobody else can write until we have committed, so we must not wait for anything any
# more: the parts that could wait (content, conversations) come before it.
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

ANNOUNCE = """
WITH last AS (UPDATE latest SET position = position + 1 RETURNING position),
written AS (SELECT w.* FROM unnest(%s, %s) w (stream, session)),
changed AS (
    INSERT INTO change (stream, position) SELECT w.stream, last.position FROM written w, last
    ON CONFLICT (stream) DO UPDATE SET position = excluded.position
)
SELECT pg_notify(current_schema(), session) FROM written"""
"""The end of `append`, once for all appends of a transaction."""

FORGET_BLOBS = """
WITH mine AS (DELETE FROM blob_use WHERE stream = %s RETURNING stream, hash)
DELETE FROM blob WHERE hash IN (
    SELECT b.hash FROM blob b JOIN mine USING (hash) WHERE NOT EXISTS
        (SELECT FROM blob_use u WHERE u.hash = mine.hash AND u.stream != mine.stream)
    -- Who holds it now begins to name it.
    FOR UPDATE OF b SKIP LOCKED)"""


def append(plan: Plan, *, is_last: bool) -> tuple[str, dict[str, Value]]:
    """Return the statement and its values. It yields the stream, or no row if none was written."""
    sql = _text(
        is_new=plan.expected_version == 0,
        nodes=bool(plan.nodes),
        blobs=bool(plan.blobs),
        runs=bool(plan.runs),
        attended=plan.head.attended is not None,
        bound=bool(plan.bound_conversations),
        is_last=is_last,
    )
    return sql, _values(plan)


@cache
def _text(
    *,
    is_new: bool,
    nodes: bool,
    blobs: bool,
    runs: bool,
    attended: bool,
    bound: bool,
    is_last: bool,
) -> str:
    may_wait = [name for name, is_used in (("blobs", blobs), ("bound", bound)) if is_used]
    before = "".join(f" AND (SELECT count(*) FROM {name}) >= 0" for name in may_wait)
    parts = (
        (_CREATE_STREAM, is_new),
        (_ADVANCE_STREAM, not is_new),
        (_EVENTS, True),
        (_NODES, nodes),
        (_BLOBS, blobs),
        (_RUNS, runs),
        (_ATTENDED, attended),
        (_CONVERSATIONS, bound),
        (_POSITION.format(before=before), is_last),
    )
    common_tables = ",".join(text for text, is_used in parts if is_used)
    final_select = _NOTIFY if is_last else "SELECT id FROM moved"
    return " ".join(f"WITH {common_tables} {final_select}".split())


def _values(plan: Plan) -> dict[str, Value]:
    blobs = sorted((bytes.fromhex(ref[7:]), content) for ref, content in plan.blobs.items())
    bound = dict.fromkeys(plan.bound_conversations)
    head, attended = plan.head, plan.head.attended
    return {
        "session": plan.session,
        "after": plan.expected_version,
        "version": plan.expected_version + len(plan.links),
        "digest": plan.end,
        "head": canonical.encode(head),
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
        "hashes": Contents(digest for digest, _ in blobs),
        "contents": Contents(zlib.compress(content, level=1) for _, content in blobs),
        **_run_values(plan),
        "workspace": head.workspace,
        "status": attended.status if attended else "",
        "updated_ms": head.updated_ms,
        "is_archived": head.is_archived,
        "hosts": Texts(host for host, _ in bound),
        "host_ids": Texts(name for _, name in bound),
    }


def _run_values(plan: Plan) -> dict[str, Value]:
    head = plan.head
    rows = [
        (
            run.run,
            head.updated_ms,
            run.goal,
            run.workflow_id,
            run.status,
            run.pending_title or "",
            run.steps_done,
            run.steps_skipped,
            run.step_count,
            run.recap,
            head.workspace,
            run.tip or "",
            head.git_branch,
            head.git_head,
            head.is_archived,
            len(run.approvals),
            to_tsvector((run.goal, run.recap, run.workflow_id)),
        )
        for run in map(head.run, plan.runs)
    ]
    columns = zip(_RUN.items(), zip(*rows, strict=True), strict=bool(rows))
    return {f"run_{name}": kind(column) for (name, kind), column in columns}
