"""Writing the log to SQLite: one plan, one transaction, one fsync."""

import re
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.core import ids
from interlock.core.ids import BlobRef, RunId, SessionId
from interlock.core.project_stream import (
    GENESIS,
    LeaseCondition,
    OutboxMessage,
    ProjectPlan,
    RowChange,
    entry_digest,
)
from interlock.core.session.events import blob_refs_of, decode_envelope
from interlock.core.session.plan import Plan, RequestRecord
from interlock.core.session.run_head import RunHead, decode_run_head
from interlock.store.blob_cache import BlobCache
from interlock.store.failures import LeaseLost, RowsMoved, StoreUnusable
from interlock.store.index_rows import RUN_COLUMNS, STREAM_COLUMNS, run_values, stream_values
from interlock.store.log import Log, require_unmoved
from interlock.store.queries import blob_hash
from interlock.store.records import EarlierRequest
from interlock.store.sql import Value
from interlock.store.sqlite import schema
from interlock.store.sqlite.log_database import WritableSqliteLogDatabase

_REF = re.compile(rb"sha256:[0-9a-f]{64}")
_ROWS_MAX = 1_000  # SQLite takes 32,766 variables in a statement
_INDEXED_COLUMNS: tuple[str, ...] = ("attended", "waiting", "unattended")
WORDS_DUE_MAX = 30  # runs whose words are not indexed; a search reads each of them


class SqliteLog(Log):
    def __init__(
        self, path: Path, *, may_be_unfinished: bool = False, cache: BlobCache | None = None
    ) -> None:
        db = self._db = WritableSqliteLogDatabase.read_write(path)
        with db.lock.hold():
            # Of a new file. An append changes a little in many pages, and writes all of each.
            db.run("PRAGMA page_size = 2048")
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
        super().__init__(db, schema_version=schema.VERSION, cache=cache)
        self._is_grouped = False

    @property
    def is_grouped(self) -> bool:
        return self._is_grouped

    def append(self, plan: Plan) -> bool:
        if self._is_grouped:
            with self._savepoint():
                return self._write(plan)
        with self._db.transaction():
            return self._write(plan)

    @contextmanager
    def group_commit(self) -> Generator[None]:
        with self._db.transaction():
            self._is_grouped = True
            try:
                yield
            finally:
                self._is_grouped = False

    def delete(self, session: SessionId) -> None:
        # Deleted means gone from the disk: overwritten in the file, and not left in the WAL.
        self._db.run("PRAGMA secure_delete = on")
        self._remove(session)
        self._cache.clear()
        # Deleting from the word index only marks entries; merging it drops the words.
        self._db.run("INSERT INTO run_words (run_words) VALUES ('optimize')")
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
        with self._db.transaction():
            self._insert("INSERT OR REPLACE INTO request (key, arguments, node, at_ms)", rows)

    def set_unfinished(self, *, is_unfinished: bool) -> None:
        with self._db.transaction():
            schema.set_unfinished(self._db, is_unfinished=is_unfinished)

    def _remove(self, session: SessionId) -> None:
        with self._db.transaction():
            stream = self._db.scalar("SELECT id FROM stream WHERE session = ?", (session,))
            refs = set(self._refs(stream))
            of_stream = "SELECT id FROM {} WHERE stream = ?"
            self._db.run(
                f"DELETE FROM request WHERE node IN ({of_stream.format('node')})", (stream,)
            )
            self._db.run(
                f"DELETE FROM run_words WHERE rowid IN ({of_stream.format('run')})", (stream,)
            )
            for table in ("event", "event_key", "node", "run", "host_session"):
                self._db.run(f"DELETE FROM {table} WHERE stream = ?", (stream,))
            self._db.run("DELETE FROM stream WHERE id = ?", (stream,))
            # Blobs that other sessions refer to as well stay.
            refs.difference_update(self._refs(None))
            for ref in refs:
                self._db.run("DELETE FROM blob WHERE hash = ?", (blob_hash(ref),))

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

    @contextmanager
    def _savepoint(self) -> Generator[None]:
        """Hold one append of several in a transaction: its failure leaves the others alone."""
        self._db.require_transaction()
        self._db.run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._db.is_in_transaction:
                self._db.run("ROLLBACK TO part")
                self._db.run("RELEASE part")
            raise
        self._db.run("RELEASE part")

    def _write(self, plan: Plan) -> bool:
        db = self._db
        row = db.row(
            f"SELECT id, version, {', '.join(_INDEXED_COLUMNS)} FROM stream WHERE session = ?",
            (plan.session,),
        )
        stream, version, *indexed = row or (None, 0)
        recorded = self._count_recorded(stream, plan) if stream is not None else 0
        if recorded == len(plan.keys):
            return False
        if plan.request and self._is_repeated(plan.request):
            return False
        self._require_lease(plan.lease)
        require_unmoved(plan, version, recorded)
        was_indexed = dict(zip(_INDEXED_COLUMNS, indexed, strict=bool(indexed)))
        stream = self._move_end(plan, stream, was_indexed)
        self._insert_events(stream, plan)
        self._insert_blobs(plan)
        run_ids = {run.run: self._write_run(stream, run) for run in plan.runs}
        self._insert_nodes(stream, plan, run_ids)
        for host, name in plan.bound_conversations:
            self._db.run(
                "INSERT OR REPLACE INTO host_session (host, id, stream) VALUES (?, ?, ?)",
                (host, name, stream),
            )
        self._insert_messages(plan.outbox, at_ms=plan.head.updated_ms)
        self._cache.add(plan.blobs)
        return True

    def append_to_project(self, plan: ProjectPlan) -> bool:
        db = self._db
        with self._savepoint() if self._is_grouped else db.transaction():
            row = db.row("SELECT id, version, digest FROM project WHERE name = ?", (plan.project,))
            project, version, end = row or (None, 0, GENESIS)
            is_recorded = "SELECT 1 FROM project_entry WHERE project = ? AND key = ?"
            if db.row(is_recorded, (project, plan.key)):
                return False
            self._require_lease(plan.lease)
            self._require_rows(project, plan)
            seq, digest = version + 1, entry_digest(end, plan.body)
            if project is None:
                values = {"name": plan.project, "version": seq, "digest": digest}
                project = self._insert_row("project", values)
            else:
                self._update_row("project", project, {"version": seq, "digest": digest})
            db.run(
                "INSERT INTO project_entry (project, seq, key, body, digest)"
                " VALUES (?, ?, ?, ?, ?)",
                (project, seq, plan.key, plan.body, digest),
            )
            for change in plan.changes:
                self._change_row(project, seq, change)
            self._insert_messages(plan.outbox, at_ms=plan.at_ms)
            return True

    def _require_rows(self, project: int | None, plan: ProjectPlan) -> None:
        for condition in plan.conditions:
            of_kind = "SELECT {} FROM project_row WHERE project = ? AND kind = ?"
            if condition.key is None:
                sql = of_kind.format("coalesce(max(seq), 0)")
                is_held = self._db.scalar(sql, (project, condition.kind)) <= condition.seq
            else:
                sql = of_kind.format("seq") + " AND key = ?"
                seq = self._db.scalar(sql, (project, condition.kind, condition.key)) or 0
                is_held = seq == condition.seq
            if not is_held:
                raise RowsMoved(f"{plan.project}: {condition}")

    def _change_row(self, project: int, seq: int, change: RowChange) -> None:
        if change.content is None:
            self._db.run(
                "DELETE FROM project_row WHERE project = ? AND kind = ? AND key = ?",
                (project, change.kind, change.key),
            )
        else:
            self._db.run(
                "INSERT OR REPLACE INTO project_row (project, kind, key, seq, content)"
                " VALUES (?, ?, ?, ?, ?)",
                (project, change.kind, change.key, seq, change.content),
            )

    def _require_lease(self, lease: LeaseCondition | None) -> None:
        if lease is None:
            return
        epoch = self._db.scalar("SELECT epoch FROM lease WHERE name = ?", (lease.name,))
        if epoch != lease.epoch:
            raise LeaseLost(f"{lease.name}: the epoch is {epoch}, not {lease.epoch}")

    def _insert_messages(self, messages: Sequence[OutboxMessage], *, at_ms: int) -> None:
        for message in messages:
            self._db.run(
                "INSERT INTO outbox (key, topic, content, at_ms) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (key) DO NOTHING",
                (message.key, message.topic, message.content, at_ms),
            )

    def _move_end(self, plan: Plan, stream: int | None, indexed: Mapping[str, Value]) -> int:
        """Let the stream end where the plan does, and return its id. It may be a new one."""
        values: dict[str, Value] = {
            "version": plan.expected_version + len(plan.links),
            "digest": plan.end,
            **dict(zip(STREAM_COLUMNS, stream_values(plan.head), strict=True)),
        }
        if stream is None:
            values |= {"session": plan.session, "status": plan.listed_status}
            return self._insert_row("stream", values)
        if plan.listed_status:
            values["status"] = plan.listed_status
        # SQLite writes to the index of a column that is set, though its value stays the same.
        del values["workspace"]
        for column, value in indexed.items():
            if values[column] == value:
                del values[column]
        self._update_row("stream", stream, values)
        return stream

    def _insert_row(self, table: str, values: Mapping[str, Value]) -> int:
        marks = ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks}) RETURNING id"
        return self._db.scalar(sql, tuple(values.values()))

    def _update_row(self, table: str, id_: int, values: Mapping[str, Value]) -> None:
        changes = ", ".join(f"{column} = ?" for column in values)
        self._db.run(f"UPDATE {table} SET {changes} WHERE id = ?", (*values.values(), id_))

    def _is_repeated(self, request: RequestRecord) -> bool:
        """Whether somebody made the same call first. If not, this one is recorded."""
        values = (blob_hash(request.key), blob_hash(request.arguments), ids.raw_bytes(request.node))
        inserted = self._db.row(
            "INSERT INTO request (key, arguments, node, at_ms) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET arguments = excluded.arguments, node = excluded.node,"
            " at_ms = excluded.at_ms WHERE request.at_ms < ? RETURNING 1",
            (*values, request.at_ms, request.oldest_ms),
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

    def _insert_nodes(self, stream: int, plan: Plan, run_ids: Mapping[RunId, int]) -> None:
        for entry in plan.nodes:
            parent = ids.raw_bytes(entry.parent) if entry.parent else None
            self._db.run(
                "INSERT INTO node (id, stream, seq, kind, parent, run) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    ids.raw_bytes(entry.node),
                    stream,
                    entry.seq,
                    entry.kind,
                    parent,
                    run_ids[entry.run],
                ),
            )

    def _write_run(self, stream: int, run: RunHead) -> int:
        """Write the head of a run, and return the id of its row.

        Its words are indexed later, with those of others: the index of words costs more than
        everything else, and an active run has new words with every step.
        """
        row = self._db.row(
            "SELECT id, are_words_due, git_branch, git_head FROM run WHERE run = ?", (run.run,)
        )
        values = dict(zip(RUN_COLUMNS, run_values(run), strict=True))
        if row is None:
            id_ = self._insert_row("run", {**values, "stream": stream, "are_words_due": True})
            self._index_due_words()
            return id_
        id_, are_words_due, *git = row
        for column in ("run", "workflow"):  # as with streams
            del values[column]
        if git == [run.git_branch, run.git_head]:
            del values["git_branch"], values["git_head"]
        if are_words_due:
            self._update_row("run", id_, values)
        else:
            self._update_row("run", id_, {**values, "are_words_due": True})
            self._index_due_words()
        return id_

    def _index_due_words(self) -> None:
        """Index the words of all runs that wait for it, if there are many."""
        rows = list(self._db.rows("SELECT id, head FROM run WHERE are_words_due"))
        if len(rows) <= WORDS_DUE_MAX:
            return
        for id_, head in rows:
            schema.index_words(self._db, id_, decode_run_head(head))
        self._db.run("UPDATE run SET are_words_due = false WHERE are_words_due")
