"""Writing the log to PostgreSQL: one plan, one statement, one sync."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from interlock.core import ids
from interlock.core.ids import BlobRef, SessionId
from interlock.core.session.plan import Plan, RequestRecord
from interlock.store.failures import PlanPartlyRecorded, StreamMoved
from interlock.store.log import EarlierRequest
from interlock.store.postgres import schema, statement
from interlock.store.postgres.address import PostgresAddress
from interlock.store.postgres.database import PostgresDatabase
from interlock.store.postgres.failures import ContentRemoved, WriteConflict
from interlock.store.postgres.reader import PostgresReader, blob_hash
from interlock.store.postgres.values import Contents, Numbers, Texts

_TRIES_MAX = 3

T = TypeVar("T")


class PostgresLog(PostgresReader):
    def __init__(self, at: PostgresAddress, *, may_be_unfinished: bool = False) -> None:
        migrate = partial(schema.migrate, may_be_unfinished=may_be_unfinished)
        super().__init__(PostgresDatabase(at, is_read_only=False, on_connected=migrate))
        self._group_streams: dict[int, SessionId] | None = None
        """The streams that were written to since `group_commit` began; None outside of it."""

    def append(self, plan: Plan) -> bool:
        if self._group_streams is not None:
            # Other conflicts concern the whole group: they go to whoever opened it.
            return _retry_on_conflict(lambda: self._write_part(plan), ContentRemoved)
        if plan.request is None:
            return _retry_on_conflict(lambda: self._write(plan, is_last=True) is not None)
        return _retry_on_conflict(lambda: self._write_with_request(plan))

    @contextmanager
    def group_commit(self) -> Generator[None]:
        self.db.begin()
        self._group_streams = {}
        try:
            yield
            if self._group_streams:
                self.db.run(
                    statement.ANNOUNCE,
                    (Numbers(self._group_streams), Texts(self._group_streams.values())),
                )
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise
        finally:
            self._group_streams = None

    def delete(self, session: SessionId) -> None:
        _retry_on_conflict(lambda: self._remove(session))

    def import_requests(self, requests: Sequence[tuple[BlobRef, EarlierRequest]]) -> None:
        self.db.run(
            "INSERT INTO request (key, arguments, node, at_ms) SELECT * FROM unnest(%s, %s, %s, %s)"
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
        self.db.run("UPDATE interlock_store SET is_unfinished = %s", (is_unfinished,))

    def _remove(self, session: SessionId) -> None:
        # Locks in the order in which appends take them: calls, the stream, conversations, then the
        # latest position. Which blobs others need is asked after that, without waiting.
        with self._transaction():
            stream = self.db.scalar("SELECT id FROM stream WHERE session = %s", (session,))
            self._forget_requests(stream)
            if self.db.row("SELECT FROM stream WHERE id = %s FOR UPDATE", (stream,)) is None:
                return
            self._forget_requests(stream)  # those that were written until now
            for table in ("event", "node", "resume", "attended", "host_session"):
                self.db.run(f"DELETE FROM {table} WHERE stream = %s", (stream,))
            self.db.run("UPDATE latest SET position = position + 1")
            self.db.run("DELETE FROM change WHERE stream = %s", (stream,))
            self.db.run("DELETE FROM stream WHERE id = %s", (stream,))
            self.db.run(statement.FORGET_BLOBS, (stream,))
            self.db.run("SELECT pg_notify(current_schema(), %s)", (session,))

    def _forget_requests(self, stream: int | None) -> None:
        self.db.run(
            "DELETE FROM request r USING node n WHERE n.stream = %s AND r.node = n.id", (stream,)
        )

    def _write_part(self, plan: Plan) -> bool:
        """Write one append of several in a transaction: its failure leaves the others alone."""
        assert self._group_streams is not None
        self.db.run("SAVEPOINT part")
        try:
            stream = self._write(plan, is_last=False) if self._claim_request(plan.request) else None
            if stream is not None:
                self._group_streams[stream] = plan.session
        except BaseException:
            self.db.rollback_to_savepoint()
            raise
        if stream is None:
            self.db.rollback_to_savepoint()
        else:
            self.db.run("RELEASE part")
        return stream is not None

    def _write_with_request(self, plan: Plan) -> bool:
        self.db.begin()
        try:
            is_written = (
                self._claim_request(plan.request) and self._write(plan, is_last=True) is not None
            )
            if is_written:
                self.db.commit()
                return True
        except BaseException:
            self.db.rollback()
            raise
        self.db.rollback()
        return False

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self.db.begin()
        try:
            yield
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise

    def _write(self, plan: Plan, *, is_last: bool) -> int | None:
        """Write the plan and return its stream; None if it was there already.

        `is_last`: the transaction ends with it.
        """
        while True:
            stream = self.db.scalar(*statement.append(plan, is_last=is_last))
            if stream is not None:
                return stream
            row = self.db.row(
                "SELECT version, (SELECT count(*) FROM event e WHERE e.stream = s.id"
                " AND e.key = ANY (%s)) FROM stream s WHERE session = %s",
                (Texts(plan.keys), plan.session),
            )
            version, recorded = row or (0, 0)
            if recorded == len(plan.keys):
                return None
            if version != plan.expected_version:
                raise StreamMoved(
                    f"{plan.session}: expected {plan.expected_version} events, found {version}"
                )
            if recorded:
                raise PlanPartlyRecorded(
                    f"{plan.session}: {recorded} of {len(plan.keys)} events exist already"
                )
            # It has become possible since: the session was deleted between the two statements.

    def _claim_request(self, request: RequestRecord | None) -> bool:
        """Whether nobody made the same call before. If so, this one is recorded."""
        if request is None:
            return True
        oldest_ms = request.at_ms - request.valid_ms if request.valid_ms is not None else 0
        inserted = self.db.row(
            "INSERT INTO request (key, arguments, node, at_ms) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (key) DO UPDATE SET arguments = excluded.arguments,"
            " node = excluded.node, at_ms = excluded.at_ms WHERE request.at_ms < %s RETURNING 1",
            (
                blob_hash(request.key),
                blob_hash(request.arguments),
                ids.raw_bytes(request.node),
                request.at_ms,
                oldest_ms,
            ),
        )
        return inserted is not None


def _retry_on_conflict(write: Callable[[], T], conflict: type[WriteConflict] = WriteConflict) -> T:
    for _ in range(_TRIES_MAX - 1):
        try:
            return write()
        except conflict:
            continue
    return write()
