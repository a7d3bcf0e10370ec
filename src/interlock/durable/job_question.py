"""Asking the database of the jobs from outside of DBOS, which is imported only if there are any."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from interlock.app.context import App, store_url
from interlock.app.failures import StoreUnusable
from interlock.app.jobs.executor_role import can_have_jobs

if TYPE_CHECKING:
    from dbos import DBOSClient

_UNDEFINED_TABLE, _UNDEFINED_SCHEMA = "42P01", "3F000"
T = TypeVar("T")


def ask_about_jobs(app: App, question: "Callable[[DBOSClient], T]", without_jobs: T) -> T:
    """Ask the database of the jobs; `without_jobs` is the answer if no executor has ever run."""
    if not can_have_jobs(app.home):
        return without_jobs
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 (these take 700 ms)

    from interlock.durable.job_database import job_database  # noqa: PLC0415

    database = job_database(app.home, store_url(app.home, os.environ))
    try:
        client = database.open_client()
        try:
            return question(client)
        finally:
            client.destroy()
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        if _is_table_missing(cause):
            return without_jobs
        reason = str(cause).strip() or type(cause).__name__
        raise StoreUnusable(
            f"The database of the jobs cannot be used: {reason}",
            f"`interlock status` says whether jobs are run. They are in {database.label}.",
        ) from error
    finally:
        if database.engine is not None:
            database.engine.dispose()


def _is_table_missing(cause: BaseException) -> bool:
    missing = (_UNDEFINED_TABLE, _UNDEFINED_SCHEMA)
    return "no such table" in str(cause) or getattr(cause, "sqlstate", None) in missing
