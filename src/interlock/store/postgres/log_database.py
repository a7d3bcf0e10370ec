"""The PostgreSQL database of a log: what PostgreSQL does differently from other engines."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from interlock.core.ids import SessionId
from interlock.store.fulltext import to_tsquery
from interlock.store.postgres.database import PostgresDatabase, PostgresStatement
from interlock.store.sql import Rows, Value

ASK_SECONDS = 5.0
"""The longest time without a query: something on the way may not pass on notices."""


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
            self.commit()  # after a rollback psycopg would prepare all statements anew

    def runs_with_words(
        self,
        words: Sequence[str],
        *,
        all_of: bool,
        newest: int | None = None,  # noqa: ARG002 (nothing is gained by it here)
    ) -> tuple[str, Sequence[Value]]:
        # Materialized: otherwise rare words are looked for by walking through all runs.
        statement = (
            "WITH matching AS MATERIALIZED"
            " (SELECT run FROM run_words WHERE words @@ ?::tsquery) SELECT run FROM matching"
        )
        return statement, (to_tsquery(words, all_of=all_of),)

    def write_all(self, statements: Sequence[PostgresStatement]) -> list[Rows]:
        # Whatever is sent in one pipeline is one transaction.
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
