"""Writing the log: one plan, one transaction, one fsync."""

import zlib
from pathlib import Path

from interlock.core import canonical, ids
from interlock.core.session.head import Head
from interlock.core.session.plan import Plan
from interlock.store.failures import PlanHalfKnown, StreamMoved
from interlock.store.lock import WriteLock
from interlock.store.sqlite import schema
from interlock.store.sqlite.database import Database
from interlock.store.sqlite.reader import SqliteReader, blob_hash


class SqliteLog(SqliteReader):
    def __init__(self, path: Path) -> None:
        self._lock = WriteLock(path.with_name(path.name + ".lock"))
        db = Database.read_write(path)
        with self._lock.held():
            db.run("PRAGMA journal_mode = wal")
            # FULL, so that a commit is on the disk before the agent is told of it.
            db.run("PRAGMA synchronous = full")
            schema.migrate(db)
        super().__init__(db)

    def append(self, plan: Plan) -> bool:
        with self._lock.held():
            self._db.run("BEGIN IMMEDIATE")
            try:
                is_new = self._write(plan)
                self._db.run("COMMIT")
            except BaseException:
                # A full disk or a failed write may have rolled the transaction back already.
                if self._db.is_in_transaction:
                    self._db.run("ROLLBACK")
                raise
        return is_new

    def close(self) -> None:
        super().close()
        self._lock.close()

    def _write(self, plan: Plan) -> bool:
        db = self._db
        row = db.row("SELECT id, version FROM stream WHERE session = ?", (plan.session,))
        stream, version = row or (None, 0)
        if stream is not None and self._is_known(stream, plan):
            return False
        if version != plan.after:
            raise StreamMoved(f"{plan.session}: expected {plan.after} events, found {version}")
        end = (plan.after + len(plan.links), plan.end, canonical.encode(plan.head))
        if stream is None:
            stream = db.scalar(
                "INSERT INTO stream (session, version, digest, head) VALUES (?, ?, ?, ?)"
                " RETURNING id",
                (plan.session, *end),
            )
        else:
            db.run(
                "UPDATE stream SET version = ?, digest = ?, head = ? WHERE id = ?", (*end, stream)
            )
        self._insert_events(stream, plan)
        self._insert_blobs(plan)
        self._insert_nodes(stream, plan)
        self._index(stream, plan.head)
        return True

    def _is_known(self, stream: int, plan: Plan) -> bool:
        marks = ", ".join("?" * len(plan.keys))
        known = self._db.scalar(
            f"SELECT count(*) FROM event_key WHERE stream = ? AND key IN ({marks})",
            (stream, *plan.keys),
        )
        if known not in (0, len(plan.keys)):
            raise PlanHalfKnown(f"{plan.session}: {known} of {len(plan.keys)} events exist already")
        return known != 0

    def _insert_events(self, stream: int, plan: Plan) -> None:
        for link, key in zip(plan.links, plan.keys, strict=True):
            self._db.run(
                "INSERT INTO event (stream, seq, body, digest) VALUES (?, ?, ?, ?)",
                (stream, link.seq, link.body, link.digest),
            )
            self._db.run(
                "INSERT INTO event_key (stream, key, seq) VALUES (?, ?, ?)", (stream, key, link.seq)
            )

    def _insert_blobs(self, plan: Plan) -> None:
        for ref, content in plan.blobs.items():
            self._db.run(
                "INSERT INTO blob (hash, content) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING",
                (blob_hash(ref), zlib.compress(content)),
            )

    def _insert_nodes(self, stream: int, plan: Plan) -> None:
        for place in plan.nodes:
            parent = ids.raw(place.parent) if place.parent else None
            self._db.run(
                "INSERT INTO node (id, stream, seq, parent) VALUES (?, ?, ?, ?)",
                (ids.raw(place.node), stream, place.seq, parent),
            )

    def _index(self, stream: int, head: Head) -> None:
        run = head.runs[-1]
        self._db.run(
            "INSERT OR REPLACE INTO resume (stream, updated_ms, title, workflow, status, step,"
            " steps_done, step_count, recap, workspace) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                stream,
                head.updated_ms,
                run.goal,
                run.workflow_id,
                run.status,
                run.pending_title or "",
                run.steps_done,
                run.step_count,
                head.recap,
                head.workspace,
            ),
        )
