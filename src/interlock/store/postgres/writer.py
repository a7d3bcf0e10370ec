"""Writing the log to PostgreSQL: one plan, one statement, one sync."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from interlock.core import ids
from interlock.core.ids import BlobRef, SessionId
from interlock.core.project_stream import LeaseCondition, ProjectPlan
from interlock.core.session.plan import Plan, RequestRecord
from interlock.store.blob_cache import BlobCache
from interlock.store.failures import LeaseLost, RowsMoved
from interlock.store.fulltext import to_tsquery
from interlock.store.log import Log, require_unmoved
from interlock.store.postgres import project_statement, schema, statement
from interlock.store.postgres.address import PostgresAddress
from interlock.store.postgres.database import PostgresDatabase, PostgresStatement
from interlock.store.postgres.failures import ContentRemoved, WriteConflict, WriteRefused
from interlock.store.queries import blob_hash
from interlock.store.records import EarlierRequest
from interlock.store.sql import Contents, Numbers, Rows, Texts, Value

_TRIES_MAX = 3

T = TypeVar("T")


class PostgresLog(Log):
    def __init__(
        self,
        at: PostgresAddress,
        *,
        may_be_unfinished: bool = False,
        is_kept: bool = False,
        cache: BlobCache | None = None,
    ) -> None:
        """`is_kept`: the connection is held even if it is idle."""
        migrate = partial(schema.migrate, may_be_unfinished=may_be_unfinished)
        self.db = PostgresLogDatabase(at, on_connected=migrate, is_kept=is_kept)
        super().__init__(self.db, schema_version=schema.VERSION, cache=cache)
        self._group_streams: dict[int, SessionId] | None = None
        """The streams that were written to since `group_commit` began; None outside of it."""
        self._has_group_entries = False

    @property
    def is_grouped(self) -> bool:
        return self._group_streams is not None

    def append(self, plan: Plan) -> bool:
        if self._group_streams is not None:
            # Other conflicts concern the whole group: they go to whoever opened it.
            return _retry_on_conflict(lambda: self._write_part(plan), ContentRemoved)
        return _retry_on_conflict(lambda: self._write(plan, is_alone=True) is not None)

    def append_to_project(self, plan: ProjectPlan) -> bool:
        if self._group_streams is not None:
            self._has_group_entries = True
            return _retry_on_conflict(lambda: self._write_entry(plan), ContentRemoved)
        return _retry_on_conflict(lambda: self._write_entry(plan))

    @contextmanager
    def group_commit(self) -> Generator[None]:
        self.db.begin()
        self._group_streams, self._has_group_entries = {}, False
        try:
            yield
            if self._group_streams:
                self.db.run(
                    statement.ANNOUNCE,
                    (Numbers(self._group_streams), Texts(self._group_streams.values())),
                )
            elif self._has_group_entries:
                self.db.run(project_statement.ANNOUNCE)
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise
        finally:
            self._group_streams = None

    def delete(self, session: SessionId) -> None:
        _retry_on_conflict(lambda: self._remove(session))
        self._cache.clear()

    def import_requests(self, requests: Sequence[tuple[BlobRef, EarlierRequest]]) -> None:
        self.db.run(
            "INSERT INTO request (key, arguments, node, at_ms) SELECT * FROM unnest(?, ?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET arguments = excluded.arguments,"
            " node = excluded.node, at_ms = excluded.at_ms",
            (
                Contents(blob_hash(key) for key, _ in requests),
                Contents(blob_hash(request.arguments) for _, request in requests),
                Contents(ids.raw_bytes(request.node) for _, request in requests),
                Numbers(request.at_ms for _, request in requests),
            ),
        )

    def set_unfinished(self, *, is_unfinished: bool) -> None:
        self.db.run("UPDATE interlock_store SET is_unfinished = ?", (is_unfinished,))

    def _remove(self, session: SessionId) -> None:
        # Locks in the order in which appends take them: calls, the stream, conversations, then the
        # latest position. Which blobs others need is asked after that, without waiting.
        with self.db.transaction():
            stream = self.db.scalar("SELECT id FROM stream WHERE session = ?", (session,))
            self._forget_requests(stream)
            if self.db.row("SELECT FROM stream WHERE id = ? FOR UPDATE", (stream,)) is None:
                return
            self._forget_requests(stream)  # those that were written until now
            of_stream = "SELECT id FROM run WHERE stream = ?"
            self.db.run(f"DELETE FROM run_words WHERE run IN ({of_stream})", (stream,))
            for table in ("event", "node", "run", "host_session"):
                self.db.run(f"DELETE FROM {table} WHERE stream = ?", (stream,))
            self.db.run("UPDATE latest SET position = position + 1")
            self.db.run("DELETE FROM change WHERE stream = ?", (stream,))
            self.db.run("DELETE FROM stream WHERE id = ?", (stream,))
            self.db.run(statement.FORGET_BLOBS, (stream,))
            self.db.run("SELECT pg_notify(current_schema(), ?)", (session,))

    def _forget_requests(self, stream: int | None) -> None:
        self.db.run(
            "DELETE FROM request r USING node n WHERE n.stream = ? AND r.node = n.id", (stream,)
        )

    def _write_part(self, plan: Plan) -> bool:
        """Write one append of several in a transaction: its failure leaves the others alone."""
        assert self._group_streams is not None
        with self._savepoint():
            is_new = plan.request is None or self._claim_request(plan.request)
            stream = self._write(plan, is_alone=False) if is_new else None
            if stream is None:
                self.db.rollback_to_savepoint()  # what was claimed
            else:
                self._group_streams[stream] = plan.session
        return stream is not None

    def _write(self, plan: Plan, *, is_alone: bool) -> int | None:
        """Write the plan and return its stream; None if it was there already.

        `is_alone`: it is a transaction of its own, and claims the request that it was made by.
        """
        while True:
            try:
                stream = self.db.scalar(*statement.append(plan, is_alone=is_alone))
            except WriteRefused:
                stream = None
            if stream is not None:
                self._cache.add(plan.blobs)
                return stream
            if is_alone and plan.request and self._is_repeated(plan.request):
                return None
            row = self.db.row(
                "SELECT version, (SELECT count(*) FROM event e WHERE e.stream = s.id"
                " AND e.key = ANY (?)) FROM stream s WHERE session = ?",
                (Texts(plan.keys), plan.session),
            )
            version, recorded = row or (0, 0)
            if recorded == len(plan.keys):
                return None
            schema.check(self.db, may_be_unfinished=True)
            self._require_lease(plan.lease)
            require_unmoved(plan, version, recorded)
            # It has become possible since: the session was deleted between the two statements.

    def _write_entry(self, plan: ProjectPlan) -> bool:
        statements = project_statement.append(plan, is_alone=not self.db.is_in_transaction)
        try:
            if self.db.is_in_transaction:
                with self._savepoint():
                    self.db.execute(statements)
            else:
                self.db.execute([("BEGIN", ()), *statements, ("COMMIT", ())])
        except WriteRefused:
            return self._explain_refusal(plan)
        return True

    def _explain_refusal(self, plan: ProjectPlan) -> bool:
        """False if the entry is there already; else raise what stands in its way."""
        recorded = self.db.row(
            "SELECT FROM project p JOIN project_entry e ON e.project = p.id"
            " WHERE p.name = ? AND e.key = ?",
            (plan.project, plan.key),
        )
        if recorded is not None:
            return False
        schema.check(self.db, may_be_unfinished=True)
        self._require_lease(plan.lease)
        raise RowsMoved(f"{plan.project}: one of {plan.conditions}")

    def _require_lease(self, lease: LeaseCondition | None) -> None:
        if lease is None:
            return
        values = {"lease": lease.name, "epoch": lease.epoch}
        if self.db.row(project_statement.HELD_LEASE, values) is None:
            raise LeaseLost(f"{lease.name}: its epoch is not {lease.epoch} any more")

    @contextmanager
    def _savepoint(self) -> Generator[None]:
        """Hold one part of a transaction: its failure leaves the others alone."""
        self.db.run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self.db.rollback_to_savepoint()
            raise
        self.db.run("RELEASE part")

    def _is_repeated(self, request: RequestRecord) -> bool:
        """Whether somebody made the same call before."""
        row = self.db.row(
            "SELECT FROM request WHERE key = ? AND at_ms >= ?",
            (blob_hash(request.key), request.oldest_ms),
        )
        return row is not None

    def _claim_request(self, request: RequestRecord) -> bool:
        """Whether nobody made the same call before. If so, this one is recorded."""
        return self.db.row(statement.CLAIM, statement.request_values(request)) is not None


def _retry_on_conflict(write: Callable[[], T], conflict: type[WriteConflict] = WriteConflict) -> T:
    for _ in range(_TRIES_MAX - 1):
        try:
            return write()
        except conflict:
            continue
    return write()


ASK_SECONDS = 5.0
"""The longest time without a query, because notices can get lost on the way."""


class PostgresLogDatabase(PostgresDatabase):
    clock_ms = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    does_clock_restart = False
    _position, _ask_at = 0, 0.0

    @contextmanager
    def snapshot(self, *, is_long: bool) -> Generator[None]:
        if self.is_in_transaction:
            yield
            return
        self.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            if is_long:
                self.run("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield
        finally:
            self.commit()  # after a rollback psycopg would prepare all statements again

    def runs_with_words(
        self,
        words: Sequence[str],
        *,
        all_of: bool,
        newest: int | None = None,  # noqa: ARG002 (nothing is gained by it here)
    ) -> tuple[str, Sequence[Value]]:
        # Materialized: otherwise the query scans all runs for rare words.
        statement = (
            "WITH matching AS MATERIALIZED"
            " (SELECT run FROM run_words WHERE words @@ ?::tsquery) SELECT run FROM matching"
        )
        return statement, (to_tsquery(words, all_of=all_of),)

    def write_all(self, statements: Sequence[PostgresStatement]) -> list[Rows]:
        # All statements of one pipeline are one transaction.
        return self.execute(statements)

    def change_marker(self) -> int:
        """The position, queried only after a notice of the server, or after a while.

        A caller may look four times a second, on many machines, at a store where nothing happens.
        """
        if self.is_in_transaction:
            return self.position()
        if self.has_notification(self.at.quoted_schema) or time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_SECONDS
            return self.position()
        return self._position

    def position(self) -> int:
        self._position = next(self.read("SELECT position FROM latest"))[0]
        return self._position

    def sessions_changed_since(self, position: int) -> dict[SessionId, int]:
        rows = self.read(
            "SELECT s.session, c.position FROM change c JOIN stream s ON s.id = c.stream"
            " WHERE c.position > ?",
            (position,),
        )
        return {SessionId(session): newest for session, newest in rows}

    def identity(self) -> str:
        # A standby has the identifier of its primary. Without the right to read it, the server is
        # identified by its start: two do not start in the same microsecond.
        may_read = self.scalar("SELECT has_function_privilege('pg_control_system()', 'execute')")
        server = (
            "(SELECT system_identifier FROM pg_control_system())"
            if may_read
            else "extract(epoch FROM pg_postmaster_start_time())"
        )
        return self.scalar(
            f"SELECT concat_ws(':', {server}, oid, current_schema())"
            " FROM pg_database WHERE datname = current_database()"
        )

    def size(self) -> int:
        return self.scalar(
            "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c"
            " WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace(?)",
            (self.at.schema,),
        )

    def engine(self) -> str:
        return f"PostgreSQL {self.scalar('SHOW server_version').split()[0]}"
