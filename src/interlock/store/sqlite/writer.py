"""Writing the log to SQLite: one plan, one transaction, one fsync."""

import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.core import canonical, ids
from interlock.core.ids import BlobRef, SessionId
from interlock.core.session.events import blob_refs_of, decode_envelope
from interlock.core.session.head import Attendance, Head, RunHead
from interlock.core.session.plan import Plan, RequestRecord
from interlock.store.failures import PlanPartlyRecorded, StoreUnusable, StreamMoved
from interlock.store.lock import WriteLock
from interlock.store.log import EarlierRequest
from interlock.store.sqlite import schema
from interlock.store.sqlite.database import SqliteDatabase, Value
from interlock.store.sqlite.reader import SqliteReader, blob_hash

_REF = re.compile(rb"sha256:[0-9a-f]{64}")
_ROWS_MAX = 1_000  # SQLite takes 32,766 variables in a statement


class SqliteLog(SqliteReader):
    def __init__(self, path: Path, *, may_be_unfinished: bool = False) -> None:
        self._lock = WriteLock(path.with_name(path.name + ".lock"))
        with self._lock.hold():
            db = SqliteDatabase.read_write(path)
            mode = db.scalar("PRAGMA journal_mode = wal")
            if mode != "wal":
                raise StoreUnusable(
                    f"`{path}` cannot be put into WAL mode (it is in {mode})",
                    "Put INTERLOCK_HOME on a local disk; network file systems do not work.",
                )
            # FULL, so that a commit is on the disk before the agent is told of it.
            db.run("PRAGMA synchronous = full")
            # Otherwise the data to undo part of a transaction would go to a file in /tmp.
            db.run("PRAGMA temp_store = memory")
            schema.migrate(db, may_be_unfinished=may_be_unfinished)
        super().__init__(db, may_be_unfinished=may_be_unfinished)
        self._is_grouped = False

    def append(self, plan: Plan) -> bool:
        if self._is_grouped:
            with self._savepoint():
                return self._write(plan)
        with self._lock.hold(), self._transaction():
            return self._write(plan)

    @contextmanager
    def group_commit(self) -> Generator[None]:
        with self._lock.hold(), self._transaction():
            self._is_grouped = True
            try:
                yield
            finally:
                self._is_grouped = False

    @contextmanager
    def snapshot(self, *, is_long: bool = False) -> Generator[None]:
        if self._is_grouped:
            yield  # all of it is one transaction already
            return
        with super().snapshot(is_long=is_long):
            yield

    def delete(self, session: SessionId) -> None:
        # Deleted means gone from the disk: overwritten in the file, and not left in the WAL.
        self._db.run("PRAGMA secure_delete = on")
        self._remove(session)
        # Deleting from the word index only marks entries; merging it drops the words.
        self._db.run("INSERT INTO resume_words (resume_words) VALUES ('optimize')")
        self._db.run("PRAGMA wal_checkpoint(truncate)")

    def import_requests(self, requests: Sequence[tuple[BlobRef, EarlierRequest]]) -> None:
        rows = [
            (
                blob_hash(key),
                blob_hash(request.arguments),
                ids.raw_bytes(request.node),
                request.at_ms,
            )
            for key, request in requests
        ]
        with self._lock.hold(), self._transaction():
            self._insert("INSERT OR REPLACE INTO request (key, arguments, node, at_ms)", rows)

    def set_unfinished(self, *, is_unfinished: bool) -> None:
        with self._lock.hold(), self._transaction():
            schema.set_unfinished(self._db, is_unfinished=is_unfinished)

    def _remove(self, session: SessionId) -> None:
        with self._lock.hold(), self._transaction():
            stream = self._db.scalar("SELECT id FROM stream WHERE session = ?", (session,))
            refs = set(self._refs(stream))
            of_stream = "SELECT id FROM {} WHERE stream = ?"
            self._db.run(
                f"DELETE FROM request WHERE node IN ({of_stream.format('node')})", (stream,)
            )
            self._db.run(
                f"DELETE FROM resume_words WHERE rowid IN ({of_stream.format('resume')})", (stream,)
            )
            for table in ("event", "event_key", "node", "resume", "attended", "host_session"):
                self._db.run(f"DELETE FROM {table} WHERE stream = ?", (stream,))
            self._db.run("DELETE FROM stream WHERE id = ?", (stream,))
            # Blobs that other sessions refer to as well stay.
            refs.difference_update(self._refs(None))
            for ref in refs:
                self._db.run("DELETE FROM blob WHERE hash = ?", (blob_hash(ref),))

    def close(self) -> None:
        super().close()
        self._lock.close()

    def _refs(self, stream: int | None) -> Iterator[BlobRef]:
        """Yield every blob that the events of one stream, or of all, refer to."""
        condition = "" if stream is None else " WHERE stream = ?"
        values = () if stream is None else (stream,)
        for (body,) in self._db.rows(f"SELECT body FROM event{condition}", values):
            try:
                yield from blob_refs_of(decode_envelope(body).event)
            except msgspec.MsgspecError:
                # A damaged event still keeps the blobs that it seems to refer to.
                yield from (BlobRef(ref.decode()) for ref in _REF.findall(body))

    def _require_transaction(self) -> None:
        """Raise if a failing disk has ended the transaction: what follows would stand alone."""
        if not self._db.is_in_transaction:
            raise StoreUnusable(
                "What was written together with this could not be written",
                "Nothing was recorded. Check the disk, then repeat the call: it is recorded once.",
            )

    @contextmanager
    def _savepoint(self) -> Generator[None]:
        """Hold one append of several in a transaction: its failure leaves the others alone."""
        self._require_transaction()
        self._db.run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._db.is_in_transaction:
                self._db.run("ROLLBACK TO part")
                self._db.run("RELEASE part")
            raise
        self._db.run("RELEASE part")

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._db.run("BEGIN IMMEDIATE")
        try:
            yield
            self._require_transaction()
            self._db.run("COMMIT")
        except BaseException:
            # A full disk or a failed write may have rolled the transaction back already.
            if self._db.is_in_transaction:
                self._db.run("ROLLBACK")
            raise

    def _write(self, plan: Plan) -> bool:
        db = self._db
        row = db.row("SELECT id, version FROM stream WHERE session = ?", (plan.session,))
        stream, version = row or (None, 0)
        recorded = self._count_recorded(stream, plan) if stream is not None else 0
        if recorded == len(plan.keys):
            return False
        if plan.request and self._is_repeated(plan.request):
            return False
        if version != plan.expected_version:
            raise StreamMoved(
                f"{plan.session}: expected {plan.expected_version} events, found {version}"
            )
        if recorded:
            raise PlanPartlyRecorded(
                f"{plan.session}: {recorded} of {len(plan.keys)} events exist already"
            )
        end = (plan.expected_version + len(plan.links), plan.end, canonical.encode(plan.head))
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
        for run in plan.runs:
            self._index(stream, plan.head, plan.head.run(run))
        if plan.head.attended is not None:
            self._attend(stream, plan.head, plan.head.attended)
        for host, name in plan.bound_conversations:
            self._db.run(
                "INSERT OR REPLACE INTO host_session (host, id, stream) VALUES (?, ?, ?)",
                (host, name, stream),
            )
        return True

    def _attend(self, stream: int, head: Head, attended: Attendance) -> None:
        self._db.run(
            "INSERT OR REPLACE INTO attended (stream, workspace, status, updated_ms, is_archived)"
            " VALUES (?, ?, ?, ?, ?)",
            (stream, head.workspace, attended.status, head.updated_ms, int(head.is_archived)),
        )

    def _is_repeated(self, request: RequestRecord) -> bool:
        """Whether somebody made the same call first. If not, this one is recorded."""
        oldest_ms = request.at_ms - request.valid_ms if request.valid_ms is not None else 0
        values = (blob_hash(request.key), blob_hash(request.arguments), ids.raw_bytes(request.node))
        inserted = self._db.row(
            "INSERT INTO request (key, arguments, node, at_ms) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET arguments = excluded.arguments, node = excluded.node,"
            " at_ms = excluded.at_ms WHERE request.at_ms < ? RETURNING 1",
            (*values, request.at_ms, oldest_ms),
        )
        return inserted is None

    def _count_recorded(self, stream: int, plan: Plan) -> int:
        # One parameter for all keys: an imported session may bring more than a statement takes.
        return self._db.scalar(
            "SELECT count(*) FROM event_key WHERE stream = ?"
            " AND key IN (SELECT value FROM json_each(?))",
            (stream, msgspec.json.encode(plan.keys).decode()),
        )

    def _insert_events(self, stream: int, plan: Plan) -> None:
        links = [(stream, link.seq, link.body, link.digest) for link in plan.links]
        keys = [(stream, key, link.seq) for link, key in zip(plan.links, plan.keys, strict=True)]
        self._insert("INSERT INTO event (stream, seq, body, digest)", links)
        self._insert("INSERT INTO event_key (stream, key, seq)", keys)

    def _insert(self, into: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert all rows with as few statements as SQLite's limit on variables allows."""
        for start in range(0, len(rows), _ROWS_MAX):
            chunk = rows[start : start + _ROWS_MAX]
            marks = f"({', '.join('?' * len(chunk[0]))})"
            values = [value for row in chunk for value in row]
            self._db.run(f"{into} VALUES {', '.join([marks] * len(chunk))}", values)

    def _insert_blobs(self, plan: Plan) -> None:
        for ref, content in plan.blobs.items():
            self._db.run(
                "INSERT INTO blob (hash, content) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING",
                (blob_hash(ref), zlib.compress(content, level=1)),
            )

    def _insert_nodes(self, stream: int, plan: Plan) -> None:
        for entry in plan.nodes:
            parent = ids.raw_bytes(entry.parent) if entry.parent else None
            self._db.run(
                "INSERT INTO node (id, stream, seq, kind, parent) VALUES (?, ?, ?, ?, ?)",
                (ids.raw_bytes(entry.node), stream, entry.seq, entry.kind, parent),
            )

    def _index(self, stream: int, head: Head, run: RunHead) -> None:
        previous = self._db.row(
            "SELECT id, title, recap, workflow FROM resume WHERE run = ?", (run.run,)
        )
        row_id = self._db.scalar(
            "INSERT OR REPLACE INTO resume (id, run, stream, updated_ms, title, workflow, status,"
            " step, steps_done, steps_skipped, step_count, recap, workspace, tip, git_branch,"
            " git_head, is_archived, approvals)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                previous[0] if previous else None,
                run.run,
                stream,
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
                int(head.is_archived),
                len(run.approvals),
            ),
        )
        words = (run.goal, run.recap, run.workflow_id)
        if previous and previous[1:] == words:
            return
        if previous:
            self._db.run("DELETE FROM resume_words WHERE rowid = ?", (row_id,))
        self._db.run(
            "INSERT INTO resume_words (rowid, title, recap, workflow) VALUES (?, ?, ?, ?)",
            (row_id, *words),
        )
