"""How many jobs have failed, asked of the database of the jobs itself.

DBOS made its tables and takes 700 ms to import; to count their rows takes none of that.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

from interlock.store.failures import StoreUnusable

_COUNT = (
    "SELECT count(*) FROM {} WHERE status"
    " NOT IN ('PENDING', 'ENQUEUED', 'DELAYED', 'SUCCESS', 'CANCELLED')"
)
_SECONDS = 2


def count_failed_in_file(path: Path) -> int:
    """Raises `StoreUnusable` if the file cannot be read."""
    if not path.exists():
        return 0
    import sqlite3  # noqa: PLC0415 (3 ms, and only this needs it)

    try:
        # Writable, though nothing is written: otherwise an interrupted write cannot be undone.
        address = f"{path.as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=_SECONDS)) as db:
            (count,) = db.execute(_COUNT.format("workflow_status")).fetchone()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return 0
        raise _unreadable(str(error)) from error
    return count


def count_failed_in_postgres(parameters: dict[str, Any], schema: str) -> int:
    """Raises `StoreUnusable` if the database cannot be read."""
    import psycopg  # noqa: PLC0415 (only where the store is there)

    try:
        with psycopg.connect(**parameters) as connection:
            query = _COUNT.format(f'"{schema}".workflow_status')
            row = connection.execute(query.encode()).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return 0
    except psycopg.Error as error:
        raise _unreadable(str(error)) from error
    assert row is not None, "a count is a row"
    return row[0]


def _unreadable(reason: str) -> StoreUnusable:
    return StoreUnusable(
        f"The database of the jobs cannot be read: {reason}", "`interlock jobs list` may say more."
    )
