"""The database of the jobs: a file in the data home, or a schema beside that of the store.

On a file DBOS keeps SQLite's own journal: the SQLite that Python is linked with may be one whose
write-ahead log can be damaged by two processes, and a step costs little more without it. Only one
process runs jobs on a file; others look at it.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import sqlalchemy
from dbos import DBOSClient, DBOSPortableJSONSerializer, error
from sqlalchemy.exc import SQLAlchemyError

from interlock.app.failures import StoreUnreachable
from interlock.app.jobs.executor_role import JOBS_FILE, postgres_parameters

POOL_SIZE = 4
SERIALIZER = DBOSPortableJSONSerializer()
"""Not DBOS's default, which would run code that somebody put into the database."""


class JobDatabase(msgspec.Struct, frozen=True):
    url: str
    schema: str
    engine: sqlalchemy.Engine | None
    """For PostgreSQL: connects as the store does."""
    label: str
    """Where it is, for display."""

    def open_client(self) -> DBOSClient:
        return DBOSClient(
            system_database_url=self.url or None,
            system_database_engine=self.engine,
            dbos_system_schema=self.schema,
            serializer=SERIALIZER,
            retry_connection_errors=False,
        )


def job_database(home: Path, store_url: str) -> JobDatabase:
    """Raises `StoreUnreachable` if the file of the jobs cannot be made."""
    if not store_url:
        # Made here, so that nobody but its owner can read it.
        with report_as_store_failure():
            os.close(os.open(home / JOBS_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return JobDatabase(f"sqlite:///{home / JOBS_FILE}", "dbos", None, f"`{home / JOBS_FILE}`")
    parameters, schema = postgres_parameters(store_url)

    def connect() -> object:
        import psycopg  # noqa: PLC0415 (only where the store is there)

        return psycopg.connect(**parameters)

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=connect, pool_size=POOL_SIZE, pool_pre_ping=True
    )
    return JobDatabase("", schema, engine, f"the schema `{schema}` beside the store")


@contextmanager
def report_as_store_failure() -> Generator[None]:
    """Raise what the database of the jobs does as what it means to everybody else."""
    try:
        yield
    except (OSError, SQLAlchemyError, error.DBOSException) as failure:
        first_line = next(iter(str(failure).splitlines()), type(failure).__name__)
        raise StoreUnreachable(
            f"The database of the jobs cannot be used: {first_line}",
            "Nothing is lost: jobs go on when it can be used again.",
        ) from failure
