"""One connection to PostgreSQL: opened when it is needed, and again after it was lost."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo

from interlock.store.failures import StoreUnusable
from interlock.store.postgres import failures
from interlock.store.postgres.address import STATEMENT_MS, PostgresAddress
from interlock.store.postgres.failures import ConnectionLost
from interlock.store.postgres.values import DUMPERS, Values

SERVER_VERSION_MIN = 150_000
GRACE_SECONDS = 10.0
"""Added to the time after which the server ends a statement: if it does not, it has stopped."""
START_SECONDS = 10.0
_POLL_SECONDS = 0.2
_STARTING_MESSAGES = ("starting up", "in recovery mode", "not yet accepting connections")
"""Messages of a server that will be there in a moment: it recovers after a crash, its own or that
of one of its processes."""


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up on a server that has stopped: the kernel keeps such a connection alive."""

    silence_seconds: float | None = STATEMENT_MS / 1_000 + GRACE_SECONDS
    """None if a statement may take for ever. Until the server has told us: what we asked it for."""

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.silence_seconds if timeout is None else timeout)

    def __del__(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.close()  # closed with its owner, like a file; psycopg would warn of that


class PostgresDatabase:
    def __init__(
        self,
        at: PostgresAddress,
        *,
        is_read_only: bool,
        on_connected: Callable[["PostgresDatabase"], None],
    ) -> None:
        """`on_connected` checks, after each connecting, that the database is what we expect."""
        self.at, self._is_read_only = at, is_read_only
        self._on_connected = [on_connected]
        self._connection: _Connection | None = None
        self._listening: _Connection | None = None
        self.is_in_transaction = False
        self._is_connecting = False
        """True during the checks of a new connection. One that is lost then is not opened again."""

    def add_connect_check(self, check: Callable[["PostgresDatabase"], None]) -> None:
        """Run `check` after each connecting, and after the checks that were added before."""
        self._on_connected.append(check)

    def run(self, sql: str, values: Values = ()) -> None:
        self._execute(sql, values)

    def rows(self, sql: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
        return iter(self._execute(sql, values).fetchall())

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        return self._execute(sql, values).fetchone()

    def scalar(self, sql: str, values: Values = ()) -> Any:
        row = self.row(sql, values)
        return row[0] if row else None

    def begin(self, kind: str = "") -> None:
        self.run(f"BEGIN {kind}")
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
                self.run("ROLLBACK")
        except ConnectionLost:
            pass
        finally:
            self.is_in_transaction = False

    def rollback_to_savepoint(self) -> None:
        """Go back to the savepoint; the transaction goes on, if there still is one."""
        if self.is_connected:
            self.run("ROLLBACK TO SAVEPOINT part")

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    def connect(self) -> None:
        if not self.is_connected:
            self._connection = self._open_connection()
            self._is_connecting = True
            try:
                self._require_settings()
                for check in self._on_connected:
                    check(self)
            except BaseException:
                self._connection.close()
                raise
            finally:
                self._is_connecting = False

    def has_notification(self, channel: str) -> bool:
        """Whether the server has sent a notice since the last call. Sends no query.

        True as well if we may have missed one because we did not listen until now.
        """
        self.connect()
        if self._connection is self._listening:
            assert self._listening is not None
            try:
                return bool(list(self._listening.notifies(timeout=0)))
            except psycopg.Error:
                return True  # the connection is gone; the next statement opens another
        self.run(f"LISTEN {channel}")
        self._listening = self._connection
        return True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _execute(self, sql: str, values: Values) -> psycopg.Cursor[tuple[Any, ...]]:
        if self.is_in_transaction or self._is_connecting or not self.is_connected:
            return self._execute_once(sql, values)
        try:
            return self._execute_once(sql, values)
        except ConnectionLost:
            # The server may have been restarted since the last call. Repeating is safe: a
            # read changes nothing, and a write is recorded once.
            return self._execute_once(sql, values)

    def _execute_once(self, sql: str, values: Values) -> psycopg.Cursor[tuple[Any, ...]]:
        if (self.is_in_transaction or self._is_connecting) and not self.is_connected:
            raise failures.connection_lost(None, self.at)
        self.connect()
        assert self._connection is not None
        try:
            return self._connection.execute(sql.encode(), values or None, binary=True)
        except errors._WaitTimeout as error:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            self._connection.close()
            silence = self._connection.silence_seconds
            assert silence is not None, "else nothing ends the waiting"
            raise failures.server_silent(self.at, silence) from error
        except psycopg.Error as error:
            if self._connection.closed:
                raise failures.connection_lost(error, self.at) from error
            if isinstance(error, errors.ReadOnlySqlTransaction) and not self._is_read_only:
                self._connection.close()  # the next one may reach a server that can be written
            raise failures.call_failure(error, self.at, sql) from error

    def _open_connection(self) -> _Connection:
        settings = dict(self.at.settings)
        # The statements that write are always planned alike, so once for each is enough. Those
        # that read may search, and the best plan depends on the values.
        settings["options"] += (
            " -c default_transaction_read_only=on"
            if self._is_read_only
            else " -c plan_cache_mode=force_generic_plan"
        )
        address = make_conninfo(**settings)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                connection = _Connection.connect(address, autocommit=True)
            except psycopg.Error as error:
                is_starting = any(message in str(error) for message in _STARTING_MESSAGES)
                if is_starting and time.monotonic() < deadline:
                    time.sleep(_POLL_SECONDS)
                    continue
                raise failures.connect_failure(error, self.at) from None
            break
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

    def _require_settings(self) -> None:
        """Check that our settings took effect: a pooler may drop them and connect us all the same.

        We would then use the tables of another schema, or write with a reader's connection.
        """
        row = self.row(
            "SELECT current_setting('search_path'),"
            " current_setting('default_transaction_read_only'),"
            " extract(epoch FROM current_setting('statement_timeout')::interval)::float8"
        )
        assert row is not None, "it has no condition"
        search_path, is_read_only, statement_seconds = row
        assert self._connection is not None
        self._connection.silence_seconds = (
            statement_seconds + GRACE_SECONDS if statement_seconds else None
        )
        if search_path.partition(",")[0].strip(' "') != self.at.schema:
            mismatch = f"search_path is `{search_path}` rather than `{self.at.schema}`"
        elif self._is_read_only and is_read_only != "on":
            mismatch = "default_transaction_read_only is off"
        else:
            return
        raise StoreUnusable(
            f"`{self.at.name}` did not take our settings: {mismatch}",
            "Is there a pooler such as pgbouncer? It must pass on the startup parameter `options`;"
            " if it cannot, let the store's URL lead to the server itself.",
        )


def engine(db: PostgresDatabase) -> str:
    return f"PostgreSQL {db.scalar('SHOW server_version').split()[0]}"
