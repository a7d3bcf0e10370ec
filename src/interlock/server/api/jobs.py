"""Operations on jobs: list, show, cancel, retry."""

from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.core.refusal import PlainRefusal
from interlock.durable import job_records
from interlock.durable.job_records import LISTED_MAX, JobRecord, NoSuchJob
from interlock.server.api.operation import NoParameters, Parameters, rest_operation


class JobParameters(Parameters, frozen=True):
    job: Annotated[
        str, Meta(pattern=r"^job_[0-9a-f]{10}$(?!\n)", description="The whole id of a job.")
    ]


class JobList(msgspec.Struct, frozen=True):
    jobs: tuple[JobRecord, ...]


@rest_operation(
    "GET",
    "/jobs",
    f"List the newest {LISTED_MAX} jobs, the newest first",
    about="A job is background work that survives the death of its process. Its"
    " steps are shown by `showJob`.",
)
def _list_jobs(app: App, _: NoParameters) -> JobList:
    return JobList(tuple(job_records.list_jobs(app)))


@rest_operation("GET", "/jobs/{job}", "Show a job with its steps", codes=("unknown_job",))
def _show_job(app: App, at: JobParameters) -> JobRecord | NoSuchJob:
    return job_records.show_job(app, at.job)


@rest_operation(
    "POST",
    "/jobs/{job}/cancel",
    "Cancel a job before its next step or attempt",
    codes=("unknown_job", "not_allowed"),
    is_writing=False,
)
def _cancel_job(app: App, at: JobParameters) -> JobRecord | NoSuchJob | PlainRefusal:
    return job_records.cancel_job(app, at.job)


@rest_operation(
    "POST",
    "/jobs/{job}/retry",
    "Retry a failed or cancelled job at its unfinished step",
    codes=("unknown_job", "not_allowed"),
    is_writing=False,
)
def _retry_job(app: App, at: JobParameters) -> JobRecord | NoSuchJob | PlainRefusal:
    return job_records.retry_job(app, at.job)


# None of them writes to the store: agents, who wait for its writer, do not wait for jobs.
