"""A job: work in named steps, each of which is recorded when it is done, and may be done twice.

A process that dies leaves at most one step unrecorded, and that one is done again: so a step looks
for what it did before, or names its effect by a key. What a step returns is kept as JSON and given
to the later ones, which is all that they may rely on.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from interlock.app.context import App, store_url
from interlock.app.failures import StoreUnusable
from interlock.app.jobs.executor_role import can_have_jobs
from interlock.core.canonical import Json
from interlock.core.session.announcements import Announcement

if TYPE_CHECKING:
    from dbos import DBOSClient


class JobContext(msgspec.Struct, frozen=True):
    job: str
    """The id of the job."""
    announcement: Announcement
    """The reason why it was started."""
    results: Mapping[str, Json]
    """The results of the steps before, by their names."""


class StepResult(msgspec.Struct, frozen=True, rename="camel"):
    value: Json = None
    is_last: bool = False
    """Nothing is left to do: the steps after it are not run."""


class JobStep(msgspec.Struct, frozen=True):
    name: str
    work: Callable[[App, JobContext], StepResult]
    attempts_max: int = 4
    """How often it is tried where the world fails. A mistake of ours is not repeated."""


class Job(msgspec.Struct, frozen=True):
    name: str
    steps: tuple[JobStep, ...]
    give_up: Callable[[App, JobContext, str], None] | None = None
    """Told why the job has failed, or was cancelled; may be told twice."""


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
