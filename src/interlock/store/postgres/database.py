"""One connection to PostgreSQL: made when it is needed, made again when it was lost."""

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
"""The server ends a statement that takes too long; one that does not even do that has stopped."""
START_SECONDS = 10.0
_POLL_SECONDS = 0.2
_STARTING_MESSAGES = ("starting up", "in recovery mode", "not yet accepting connections")
"""What a server says that will be there in a moment: it finds out what was written before a crash,
its own or that of one of its processes."""


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up on a server that has stopped: the kernel keeps such a connection alive."""

    silence_seconds: float | None = STATEMENT_MS / 1_000 + GRACE_SECONDS
    """None where a statement may take for ever. Until we have asked: what we told the server."""

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.silence_seconds if timeout is None else timeout)

    def __del__(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.close()  # with whoever held it, as a file is; psycopg would warn of that


class PostgresDatabase:
    def __init__(
        self,
        at: PostgresAddress,
        *,
        is_read_only: bool,
        on_connected: Callable[["PostgresDatabase"], None],
    ) -> None:
        """`on_connected` looks whether it is what we expect, each time."""
        self.at, self._is_read_only = at, is_read_only
        self._on_connected = [on_connected]
        self._connection: _Connection | None = None
        self._listening: _Connection | None = None
        self.is_in_transaction = False
        self._is_connecting = False
        """While `on_connected` looks at it. A connection that is lost then is not made again."""

    def add_connect_check(self, look: Callable[["PostgresDatabase"], None]) -> None:
        """After each connecting, and after those that were given before."""
        self._on_connected.append(look)

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
        """Whatever was begun is not there; that is so, too, where the connection is gone."""
        try:
            if self.is_connected:
                self.run("ROLLBACK")
        except ConnectionLost:
            pass
        finally:
            self.is_in_transaction = False

    def rollback_to_savepoint(self) -> None:
        """Back to the savepoint; the transaction goes on, if there still is one."""
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
                for look in self._on_connected:
                    look(self)
            except BaseException:
                self._connection.close()
                raise
            finally:
                self._is_connecting = False

    def has_notification(self, channel: str) -> bool:
        """Whether the server has sent a notice since this was asked last. Asks it nothing.

        Also whether we may have missed one, because we did not listen until now.
        """
        self.connect()
        if self._connection is self._listening:
            assert self._listening is not None
            try:
                return bool(list(self._listening.notifies(timeout=0)))
            except psycopg.Error:
                return True  # the connection is gone; what is asked next makes another
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
            # The server may have been restarted since the last call. Asking again is safe: what
            # reads changes nothing, and what writes is recorded once.
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
                self._connection.close()  # the next one may lead to a server that can be written
            raise failures.call_failure(error, self.at, sql) from error

    def _open_connection(self) -> _Connection:
        settings = dict(self.at.settings)
        # The statements that write are always planned alike: that is done once for each. What
        # reads may search, and how is best depends on what for.
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
                is_coming = any(words in str(error) for words in _STARTING_MESSAGES)
                if is_coming and time.monotonic() < deadline:
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
        """A pooler may drop what we ask for when we connect, and give us a connection all the same.

        We would then read and write the tables of another schema, or with a reader's connection.
        """
        row = self.row(
            "SELECT current_setting('search_path'),"
            " current_setting('default_transaction_read_only'),"
            " extract(epoch FROM current_setting('statement_timeout')::interval)::float8"
        )
        assert row is not None, "it has no condition"
        path, is_read_only, statement_seconds = row
        assert self._connection is not None
        self._connection.silence_seconds = (
            statement_seconds + GRACE_SECONDS if statement_seconds else None
        )
        if path.partition(",")[0].strip(' "') != self.at.schema:
            missing = f"search_path is `{path}` rather than `{self.at.schema}`"
        elif self._is_read_only and is_read_only != "on":
            missing = "default_transaction_read_only is off"
        else:
            return
        raise StoreUnusable(
            f"`{self.at.name}` did not take our settings: {missing}",
            "Is there a pooler such as pgbouncer? It must pass on the startup parameter `options`;"
            " if it cannot, let the store's URL lead to the server itself.",
        )


def engine(db: PostgresDatabase) -> str:
    return f"PostgreSQL {db.scalar('SHOW server_version').split()[0]}"
