"""Poolers between us and the server: one that pools sessions will do, another is refused by name.

A pooler in transaction mode gives each transaction to any of its connections, so our settings (the
schema among them) and our prepared statements would be another client's, and another's ours. It
says nothing about that, so it is found out by what it does: a client that is connected and idle
has a server process of its own, unless the pooler lends that process to somebody else meanwhile.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeAlias

import psycopg
from psycopg import errors

from interlock.store.failures import StoreUnusable
from interlock.store.postgres.address import PostgresAddress

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

PROBE_SECONDS = 3.0
"""The longest wait of the second connection, which may be one more than the pooler has."""


def require_session_mode(
    connection: Connection, connect: Callable[[], Connection], at: PostgresAddress
) -> None:
    """Raise if the pooler that `connection` leads to does not keep it on one server process."""
    try:
        is_lent = _is_process_lent(connection, connect)
    except errors.ProtocolViolation as error:
        raise _pooler_failure(at, "statements") from error
    except psycopg.Error:
        return  # there is no second one to be had, so ours is not lent
    if is_lent:
        raise _pooler_failure(at, "transactions")


def _is_process_lent(connection: Connection, connect: Callable[[], Connection]) -> bool:
    """Begin a transaction on a second connection, and compare the processes on the server.

    For that transaction a pooler takes the process that was used last, if it lends processes:
    ours. If somebody else was faster, that one has ours, and we get another.
    """
    ours = _server_process(connection)
    with closing(connect()) as other:
        other.execute("BEGIN")
        return _server_process(other) == ours or _server_process(connection) != ours


def _server_process(connection: Connection) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None, "it has no condition"
    return row[0]


def _pooler_failure(at: PostgresAddress, pooled: str) -> StoreUnusable:
    return StoreUnusable(
        f"`{at.name}` leads to a pooler that pools {pooled}, and Interlock needs sessions",
        "Set `pool_mode = session` for this database in the pooler (pgbouncer.ini), or let the"
        " store's URL lead to the server itself.",
    )
