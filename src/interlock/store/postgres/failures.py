"""Errors of PostgreSQL, translated into failures of a store."""

import re

import psycopg
from psycopg import errors

from interlock.store.failures import (
    StoreBusy,
    StoreFailure,
    StoreFull,
    StoreUnreachable,
    StoreUnusable,
)
from interlock.store.postgres.address import PostgresAddress

_LIBPQ_NOISE = re.compile(
    r"connection (?:failed|is bad): |connection to server [^\n]*? failed: |FATAL: +|fe_sendauth: "
    r"|\n[ \t]*Is the server running [^\n]*\?"
)
_REPEAT_HINT = "It is not certain that anything was written. Repeat the call: it is recorded once."


class WriteConflict(StoreBusy):
    """Somebody else changed the same things at the same moment.

    Repeating the whole transaction is enough: what it holds is what the other one waits for.
    """


class ContentRemoved(WriteConflict):
    """Content was removed just when it was referred to. Repeating this part is enough."""


class TableMissing(StoreUnusable):
    """There is no such table: no store has been made there, or it is another's."""


class WriteRefused(StoreBusy):
    """A condition of a statement does not hold, so nothing of it was written."""


class ConnectionLost(StoreUnreachable):
    """The connection was lost in the middle of a call. The next call connects again."""


def connect_failure(error: psycopg.Error, at: PostgresAddress) -> StoreFailure:
    """Return why we could not connect. Libpq gives no code for that, only a message."""
    message = _server_message(error, at)
    if "password" in message or "authentication" in message or "pg_hba.conf" in message:
        return StoreUnusable(
            f"`{at.name}` does not let us in: {message}",
            "Check user and password in the store's URL, or PGPASSWORD and ~/.pgpass.",
        )
    if "role" in message and "does not exist" in message:
        return StoreUnusable(
            f"`{at.name}` does not know us: {message}",
            "Check the user in the store's URL, or make that role.",
        )
    if "does not exist" in message and "database" in message:
        return StoreUnusable(
            f"There is no such database: `{at.name}`",
            "Make it (`createdb`), or correct the store's URL. Interlock makes its tables itself.",
        )
    if "too many" in message or "remaining connection slots" in message:
        return StoreBusy(
            f"`{at.name}` has no connection left: {message}",
            "Nothing was written. Raise max_connections, or end processes that are not needed.",
        )
    return StoreUnreachable(
        f"`{at.name}` cannot be reached: {message}",
        "Check that PostgreSQL runs there and that the store's URL is right, then repeat the call.",
    )


def call_failure(error: psycopg.Error, at: PostgresAddress, sql: str) -> StoreFailure:
    """Return why the statement `sql` failed."""
    message = _server_message(error, at)
    match error:
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return WriteConflict(f"Others wrote to `{at.name}` at the same moment", _REPEAT_HINT)
        case errors.ForeignKeyViolation():
            return ContentRemoved(
                f"Others removed from `{at.name}` at the same moment", _REPEAT_HINT
            )
        case errors.UndefinedTable():
            return TableMissing(f"`{at.name}` has no store: {message}", _REPEAT_HINT)
        case errors.DivisionByZero():  # see `statement.append`
            return WriteRefused(f"A condition for writing to `{at.name}` fails", _REPEAT_HINT)
        case errors.LockNotAvailable():
            return StoreBusy(
                f"Another process has held `{at.name}` for too long",
                "Nothing was written. Look for a stopped `interlock` process, then repeat the"
                " call.",
            )
        case errors.QueryCanceled():
            return StoreBusy(f"`{at.name}` took too long and was stopped: {message}", _REPEAT_HINT)
        case errors.DiskFull() | errors.ConfigurationLimitExceeded():
            return StoreFull(
                f"The disk that holds `{at.name}` is full",
                "Free some space and repeat the call: it is recorded once.",
            )
        case errors.ProgramLimitExceeded():
            return StoreUnusable(
                f"A value is too long for `{at.name}`: {message}",
                "Nothing was written, and the same call will not succeed. Use a shorter one: the"
                " path of a workspace, a branch or an id may have about 2,600 bytes.",
            )
        case errors.InsufficientPrivilege():
            # Only making a store creates anything.
            return (
                missing_create_right(message, at)
                if sql.startswith("CREATE")
                else missing_grant(message, at)
            )
        case errors.ReadOnlySqlTransaction():
            return StoreUnusable(
                f"`{at.name}` cannot be written: {message}",
                "Is it a standby? Let the store's URL lead to the primary"
                " (target_session_attrs=read-write). Otherwise see that"
                " default_transaction_read_only is off for the role and the database.",
            )
        case errors.DataCorrupted() | errors.IndexCorrupted() | errors.IoError():
            return StoreUnusable(
                f"`{at.name}` is damaged: {message}",
                "`interlock store verify` shows what can still be read.",
            )
        case _:
            return StoreUnusable(
                f"`{at.name}` could not be read or written: {message}", _REPEAT_HINT
            )


def missing_create_right(message: str, at: PostgresAddress) -> StoreUnusable:
    """Return the failure of a role that may not make the store."""
    return StoreUnusable(
        f"Rights are missing in `{at.name}`: {message}",
        "Let the owner of the database run in it:"
        f" CREATE SCHEMA {at.quoted_schema} AUTHORIZATION {_role(at)};"
        " If that schema is there and belongs to another role, use that role.",
    )


def missing_grant(message: str, at: PostgresAddress) -> StoreUnusable:
    """Return the failure of a role that may not use the store, which belongs to another."""
    schema, role = at.quoted_schema, _role(at)
    return StoreUnusable(
        f"Rights are missing in `{at.name}`: {message}",
        f"Let the owner of the schema run: GRANT USAGE ON SCHEMA {schema} TO {role};"
        f" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};"
        " Or use the owner's role: only that can upgrade the store.",
    )


def _role(at: PostgresAddress) -> str:
    name = at.parameters.get("user", "<user>").replace('"', '""')
    return f'"{name}"'


def connection_lost(error: BaseException | None, at: PostgresAddress) -> ConnectionLost:
    detail = f": {_server_message(error, at)}" if isinstance(error, psycopg.Error) else ""
    return ConnectionLost(f"The connection to `{at.name}` was lost{detail}", _REPEAT_HINT)


def server_silent(at: PostgresAddress, seconds: float) -> StoreBusy:
    return StoreBusy(f"`{at.name}` has not answered for {seconds:.0f} s", _REPEAT_HINT)


def _server_message(error: psycopg.Error, at: PostgresAddress) -> str:
    """Return the server's message, on one line, and never the password.

    Without libpq's own words around it: where it connected to, which we say ourselves, and its
    question.
    """
    message = _LIBPQ_NOISE.sub("", error.diag.message_primary or str(error))
    if password := at.parameters.get("password"):
        message = message.replace(password, "***")
    return " ".join(message.split()).rstrip(".")
