"""Operations on jobs: list, show, cancel, retry."""

from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.app.context import App
from interlock.durable import job_records
from interlock.durable.job_records import LISTED_MAX, JobNotInState, JobRecord, NoSuchJob
from interlock.server.api.operation import (
    NoParameters,
    Parameters,
    change_operation,
    read_operation,
)


class JobParameters(Parameters, frozen=True):
    job: Annotated[
        str, Meta(pattern=r"^job_[0-9a-f]{10}$(?!\n)", description="The whole id of a job.")
    ]


class JobList(msgspec.Struct, frozen=True):
    jobs: tuple[JobRecord, ...]


def _list_jobs(app: App, _: NoParameters) -> JobList:
    return JobList(tuple(job_records.list_jobs(app)))


def _show_job(app: App, at: JobParameters) -> JobRecord | NoSuchJob:
    return job_records.show_job(app, at.job)


def _cancel_job(app: App, at: JobParameters, _: None) -> JobRecord | NoSuchJob | JobNotInState:
    return job_records.cancel_job(app, at.job)


def _retry_job(app: App, at: JobParameters, _: None) -> JobRecord | NoSuchJob | JobNotInState:
    return job_records.retry_job(app, at.job)


# None of them writes to the store: agents, who wait for its writer, do not wait for jobs.
OPERATIONS = (
    read_operation(
        "/jobs",
        "listJobs",
        f"List the newest {LISTED_MAX} jobs, the newest first",
        _list_jobs,
        parameters=NoParameters,
        answer=JobList,
        about="A job is work that goes on by itself and survives the death of its process. Its"
        " steps are shown by `showJob`.",
    ),
    read_operation(
        "/jobs/{job}",
        "showJob",
        "Show a job with its steps",
        _show_job,
        parameters=JobParameters,
        answer=JobRecord,
        codes=("unknown_job",),
    ),
    change_operation(
        "/jobs/{job}/cancel",
        "cancelJob",
        "Stop a job before its next step or try",
        _cancel_job,
        parameters=JobParameters,
        answer=JobRecord,
        codes=("unknown_job", "not_allowed"),
        is_writing=False,
    ),
    change_operation(
        "/jobs/{job}/retry",
        "retryJob",
        "Continue a job that has failed or was cancelled, at the step that is not done",
        _retry_job,
        parameters=JobParameters,
        answer=JobRecord,
        codes=("unknown_job", "not_allowed"),
        is_writing=False,
    ),
)
