"""One connection to PostgreSQL: opened when it is needed, and again after it was lost.

Outside of a transaction statements are sent in a pipeline, so whatever is sent together costs one
round trip, whether it has been prepared before or not. A read is a read-only transaction of its own
(or a part of the one that is open), so readers and the writer share a connection, and reading
cannot write.

A connection that is not used for a while is given back: a server has a hundred of them, and most
agents think most of the time. One that has been used for long is given back after a call as well,
so that somebody else gets a turn where there are more processes than connections.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, TypeAlias

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from interlock.store.failures import StoreBusy, StoreFailure, StoreUnusable
from interlock.store.postgres import failures, pooler
from interlock.store.postgres.address import STATEMENT_MS, PostgresAddress
from interlock.store.postgres.failures import ConnectionLost
from interlock.store.postgres.values import DUMPERS
from interlock.store.sql import Rows, Value

SERVER_VERSION_MIN = 150_000
GRACE_SECONDS = 10.0
"""Added to the time after which the server ends a statement: if it does not, it has stopped."""
START_SECONDS = 10.0
"""The longest wait for a server that starts."""
SLOT_SECONDS = 30.0
"""The longest wait for a connection where all are taken."""
IDLE_SECONDS = 5.0
"""A connection that is not used for so long is given back."""
TURN_SECONDS = 15.0
"""A connection that is older is given back after a call. Shorter than `SLOT_SECONDS`, so that
whoever waits gets one."""
_POLL_SECONDS = 0.2
_STARTING_MESSAGES = ("starting up", "in recovery mode", "not yet accepting connections")
"""Messages of a server that will be there in a moment: it recovers after a crash, its own or that
of one of its processes."""
# What it logs of a connection that is lost, we raise.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

Values: TypeAlias = Sequence[Value] | Mapping[str, Value]
PostgresStatement: TypeAlias = tuple[str, Values]


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up on a server that has stopped: the kernel keeps such a connection alive."""

    silence_seconds: float | None = STATEMENT_MS / 1_000 + GRACE_SECONDS
    """None if a statement may take for ever. Until the server has told us: what we asked it for."""
    is_server_silent = False
    """Whether the server has not answered for so long. Leaving the pipeline hides that error."""
    opened_at = 0.0
    used_at = 0.0

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.silence_seconds if timeout is None else timeout)
        except errors._WaitTimeout:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            self.is_server_silent = True
            raise

    @property
    def is_free(self) -> bool:
        """Whether no transaction is open on it."""
        return self.info.transaction_status == TransactionStatus.IDLE

    def __del__(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.close()  # closed with its owner, like a file; psycopg would warn of that


class PostgresDatabase:
    def __init__(
        self,
        at: PostgresAddress,
        *,
        on_connected: Callable[["PostgresDatabase"], None],
        is_kept: bool = False,
    ) -> None:
        """`on_connected` checks, after each connecting, that the database is what we expect.

        `is_kept`: the connection is held, by a process that always has something to do with it.
        """
        self.at, self._is_kept = at, is_kept
        self._on_connected = [on_connected]
        self._connection: _Connection | None = None
        self._listening: _Connection | None = None
        self._is_pooler_checked = False
        self._lock = threading.RLock()
        """Held while the connection is used: another thread gives it back when it is idle."""
        self._companion: tuple[str, Callable[[Any], None]] | None = None
        self.is_in_transaction = False
        self._is_closing = threading.Event()
        """Ends the waiting of the thread that gives the connection back."""
        self._is_connecting = False
        """True during the checks of a new connection. One that is lost then is not opened again."""

    def add_connect_check(self, check: Callable[["PostgresDatabase"], None]) -> None:
        """Run `check` after each connecting, and after the checks that were added before."""
        self._on_connected.append(check)

    def read_along(self, sql: str, tell: Callable[[Any], None]) -> None:
        """Read the value of `sql` along with everything that is read, and tell it."""
        self._companion = (sql, tell)

    def run(self, sql: str, values: Values = ()) -> None:
        self.execute([(sql, values)])

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        rows = self.rows(sql, values)
        return rows[0] if rows else None

    def rows(self, sql: str, values: Values = ()) -> Rows:
        return self.execute([(sql, values)])[0]

    def scalar(self, sql: str, values: Values = ()) -> Any:
        row = self.row(sql, values)
        return row[0] if row else None

    def read(self, sql: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
        return iter(self.read_all([(sql, values)])[0])

    def read_all(self, statements: Sequence[PostgresStatement]) -> list[Rows]:
        """Return the rows of each statement, all as they were at one moment."""
        companion = [(self._companion[0], ())] if self._companion else []
        reading = [*statements, *companion]
        if self.is_in_transaction:
            results = self.execute(reading)
        else:
            results = self.execute([(_BEGIN_READING, ()), *reading, ("COMMIT", ())])[1:-1]
        if self._companion:
            self._companion[1](results.pop()[0][0])
        return results

    def begin(self, kind: str = "") -> None:
        self.execute([(f"BEGIN {kind}", ())], is_alone=True)
        self.is_in_transaction = True

    def commit(self) -> None:
        try:
            self.run("COMMIT")
        finally:
            self.is_in_transaction = False

    def rollback(self) -> None:
        """Undo the transaction. If the connection is gone, it is undone already."""
        try:
            if self.is_connected:
                self._run_alone("ROLLBACK")
        except ConnectionLost:
            pass
        finally:
            self.is_in_transaction = False

    def rollback_to_savepoint(self) -> None:
        """Go back to the savepoint; the transaction goes on, if there still is one."""
        if self.is_connected:
            self._run_alone("ROLLBACK TO SAVEPOINT part")

    @contextmanager
    def transaction(self) -> Generator[None]:
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    def connect(self) -> None:
        with self._lock:
            if self.is_connected:
                return
            self._connection = self._open_connection()
            self._is_closing.clear()
            self._is_connecting = True
            try:
                self._apply_settings(self._connection)
                for check in self._on_connected:
                    check(self)
            except BaseException:
                self._connection.close()
                raise
            finally:
                self._is_connecting = False
            if not self._is_kept:
                threading.Thread(
                    target=self._give_back_when_idle, args=[self._connection], daemon=True
                ).start()

    def has_notification(self, channel: str) -> bool:
        """Whether the server has sent a notice since the last call. Sends no query.

        True as well if we may have missed one because we did not listen until now.
        """
        with self._lock:
            self.connect()
            assert self._connection is not None
            self._connection.used_at = time.monotonic()
            if self._connection is self._listening:
                try:
                    return bool(list(self._connection.notifies(timeout=0)))
                except psycopg.Error:
                    return True  # the connection is gone; the next statement opens another
            self.run(f"LISTEN {channel}")
            self._listening = self._connection
            return True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._is_closing.set()

    def execute(
        self, statements: Sequence[PostgresStatement], *, is_alone: bool = False
    ) -> list[Rows]:
        """Run statements and return their rows; outside of a transaction in one round trip.

        `is_alone`: it begins a transaction, or is part of one.
        """
        is_alone = is_alone or self.is_in_transaction
        with self._lock:
            try:
                return self._execute_once(statements, is_alone=is_alone)
            except ConnectionLost:
                if self.is_in_transaction or self._is_connecting:
                    raise
                # The server may have been restarted since the last call. Repeating is safe: a
                # read changes nothing, and a write is recorded once.
                return self._execute_once(statements, is_alone=is_alone)
            finally:
                self._end_turn()

    def _execute_once(
        self, statements: Sequence[PostgresStatement], *, is_alone: bool = False
    ) -> list[Rows]:
        if (self.is_in_transaction or self._is_connecting) and not self.is_connected:
            raise failures.connection_lost(None, self.at)
        self.connect()
        connection = self._connection
        assert connection is not None
        connection.used_at = time.monotonic()
        try:
            # In a transaction one by one: after a pipeline psycopg may send one message more, and
            # then the server does not notice that we stand still (`IDLE_MS`).
            with nullcontext() if is_alone else connection.pipeline():
                cursors = [
                    connection.execute(_psycopg_form(sql), values or None, binary=True)
                    for sql, values in statements
                ]
            return [[] if cursor.description is None else cursor.fetchall() for cursor in cursors]
        except psycopg.Error as error:
            raise self._failure(connection, error, statements) from error

    def _run_alone(self, sql: str) -> None:
        """Undo something outside of a pipeline.

        After that psycopg discards the prepared statements, and in a pipeline it discards the
        next one that it prepares as well.
        """
        with self._lock:
            connection = self._connection
            assert connection is not None, "there is something to undo"
            try:
                connection.execute(sql.encode())
            except psycopg.Error as error:
                raise self._failure(connection, error, [(sql, ())]) from error

    def _failure(
        self,
        connection: _Connection,
        error: psycopg.Error,
        statements: Sequence[PostgresStatement],
    ) -> StoreFailure:
        """Return why these statements failed. A connection in an unclear state is closed."""
        if connection.is_server_silent:
            connection.close()
            assert connection.silence_seconds is not None, "else nothing ends the waiting"
            return failures.server_silent(self.at, connection.silence_seconds)
        if connection.closed:
            return failures.connection_lost(error, self.at)
        if isinstance(error, errors.ReadOnlySqlTransaction):
            connection.close()  # the next one may reach a server that can be written
        elif not self.is_in_transaction:
            connection.rollback()  # else what was begun in the pipeline would stay open
        return failures.call_failure(error, self.at, statements[-1][0])

    def _end_turn(self) -> None:
        """Give the connection back if it was ours for long, and nothing is open on it."""
        connection = self._connection
        if connection is None or self._is_kept or self._is_connecting:
            return
        if connection.is_free and time.monotonic() - connection.opened_at > TURN_SECONDS:
            connection.close()

    def _give_back_when_idle(self, connection: _Connection) -> None:
        while not connection.closed:
            idle_seconds = time.monotonic() - connection.used_at
            if idle_seconds < IDLE_SECONDS:
                self._is_closing.wait(IDLE_SECONDS - idle_seconds)
                continue
            with self._lock:
                is_idle = time.monotonic() - connection.used_at >= IDLE_SECONDS
                if is_idle and connection.is_free:
                    connection.close()
                    return
            self._is_closing.wait(IDLE_SECONDS)

    def _open_connection(self) -> _Connection:
        address = make_conninfo(**self.at.parameters)
        begun = time.monotonic()
        while True:
            try:
                connection = _Connection.connect(address, autocommit=True)
            except psycopg.Error as error:
                failure = failures.connect_failure(error, self.at)
                waited = time.monotonic() - begun
                is_starting = any(message in str(error) for message in _STARTING_MESSAGES)
                if is_starting and waited < START_SECONDS:
                    time.sleep(_POLL_SECONDS)
                    continue
                if isinstance(failure, StoreBusy) and waited < SLOT_SECONDS:
                    # Many may wait at once: whoever is lucky is served.
                    time.sleep(random.uniform(0, 2 * _POLL_SECONDS))
                    continue
                raise failure from None
            break
        connection.opened_at = time.monotonic()
        connection.prepare_threshold = 0
        for kind, dumper in DUMPERS.items():
            connection.adapters.register_dumper(kind, dumper)
        self._require_usable(connection)
        return connection

    def _require_usable(self, connection: _Connection) -> None:
        version = connection.info.server_version
        encoding = connection.info.parameter_status("server_encoding")
        if version >= SERVER_VERSION_MIN and encoding == "UTF8":
            return
        connection.close()
        if encoding != "UTF8":
            raise StoreUnusable(
                f"`{self.at.name}` keeps its texts as {encoding}",
                "Make a database with ENCODING 'UTF8' for the store.",
            )
        raise StoreUnusable(
            f"`{self.at.name}` is PostgreSQL {version // 10_000}; Interlock needs 15 or newer",
            "Upgrade the server, or let the store's URL lead to a newer one.",
        )

    def _apply_settings(self, connection: _Connection) -> None:
        """Set what we need for this connection, and check that it keeps it."""
        names = ", ".join("set_config(?, ?, false)" for _ in self.at.settings)
        values = [word for setting in self.at.settings.items() for word in setting]
        _, rows = self._execute_once(
            [
                (f"SELECT {names}", values),
                (
                    "SELECT pg_backend_pid(),"
                    " extract(epoch FROM current_setting('statement_timeout')::interval)::float8",
                    (),
                ),
            ]
        )
        server_process, statement_seconds = rows[0]
        connection.silence_seconds = (
            statement_seconds + GRACE_SECONDS if statement_seconds else None
        )
        # A pooler is known by naming another process than the server's.
        if server_process != connection.info.backend_pid and not self._is_pooler_checked:
            pooler.require_session_mode(connection, self._open_probe, self.at)
            self._is_pooler_checked = True

    def _open_probe(self) -> _Connection:
        probe = _Connection.connect(make_conninfo(**self.at.parameters), autocommit=True)
        probe.silence_seconds = pooler.PROBE_SECONDS
        return probe


@cache
def _psycopg_form(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()
