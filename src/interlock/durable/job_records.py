"""Jobs as people look at them: list, show, cancel, retry. Whether an executor runs does not matter.

What is changed here is a row that the executor reads: a job that is cancelled stops before its next
step, and one that is retried is continued by the executor that runs, or by the next one.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, cast

import msgspec
from dbos import DBOSClient, WorkflowStatus
from sqlalchemy.exc import SQLAlchemyError

from interlock.app.context import App, store_url
from interlock.app.jobs.executor_role import JOBS_FILE
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal
from interlock.core.session.announcements import Announcement
from interlock.durable import catalogue
from interlock.durable.job_database import job_database

LISTED_MAX = 200
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]
_STATES: dict[str, JobState] = {
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "PENDING": "running",
    "SUCCESS": "done",
    "CANCELLED": "cancelled",
}


class StepRecord(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: Literal["done", "failed", "pending"]
    started_ms: int | None = None
    ended_ms: int | None = None
    result: Json = None
    error: str = ""


class JobRecord(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    name: str
    state: JobState
    session: str
    topic: str
    created_ms: int
    updated_ms: int
    attempts: int
    """How often a process has begun to run it."""
    error: str = ""
    steps: tuple[StepRecord, ...] = ()
    """Empty in lists."""


class NoSuchJob(Refusal, frozen=True):
    job: str
    candidates: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        if self.candidates:
            several = ", ".join(self.candidates[:5])
            return Explanation(
                "unknown_job",
                f"`{self.job}` is the beginning of several jobs",
                f"One of {several}.",
            )
        return Explanation(
            "unknown_job",
            f"No job `{self.job}`",
            "`interlock jobs list` shows those that there are.",
        )


class JobNotInState(Refusal, frozen=True):
    job: str
    state: JobState
    verb: str

    def explain(self) -> Explanation:
        return Explanation(
            "not_allowed",
            f"Job `{self.job}` cannot be {self.verb}: it is {self.state}",
            f"`interlock jobs show {self.job}` shows what it did.",
        )


def list_jobs(app: App, *, limit: int = LISTED_MAX) -> list[JobRecord]:
    """Return the newest jobs, the newest first."""
    with _client(app) as client:
        if client is None:
            return []
        found = client.list_workflows(sort_desc=True, limit=limit, load_output=False)
        return [_record(status) for status in found]


def show_job(app: App, job: str) -> JobRecord | NoSuchJob:
    """Return the job whose id is `job` or begins with it, with its steps."""
    with _client(app) as client:
        status = _find(client, job)
        if isinstance(status, NoSuchJob):
            return status
        assert client is not None, "it was found"
        return _with_steps(_record(status), client)


def cancel_job(app: App, job: str) -> JobRecord | NoSuchJob | JobNotInState:
    """Stop a job before its next step."""
    return _change(app, job, ("waiting", "running"), "cancelled", DBOSClient.cancel_workflow)


def retry_job(app: App, job: str) -> JobRecord | NoSuchJob | JobNotInState:
    """Continue a job that has failed or was cancelled, at the step that is not done."""
    return _change(app, job, ("failed", "cancelled"), "retried", _rewind_to_failure)


def _change(
    app: App, job: str, states: Sequence[JobState], verb: str, change: Any
) -> JobRecord | NoSuchJob | JobNotInState:
    with _client(app) as client:
        status = _find(client, job)
        if isinstance(status, NoSuchJob):
            return status
        record = _record(status)
        if record.state not in states:
            return JobNotInState(record.id, record.state, verb)
        assert client is not None, "it was found"
        change(client, record.id)
        changed = _find(client, record.id)
        assert not isinstance(changed, NoSuchJob), "it was there a moment ago"
        return _with_steps(_record(changed), client)


def _rewind_to_failure(client: DBOSClient, job: str) -> None:
    """Do again what failed, and what comes after; what is done stays done."""
    steps = client.list_workflow_steps(job)
    failed = [step["function_id"] for step in steps if step["error"] is not None]
    first_open = (
        failed[0] if failed else max((step["function_id"] for step in steps), default=0) + 1
    )
    client.rewind_workflow(job, start_step=first_open)


@contextmanager
def _client(app: App) -> Generator[DBOSClient | None]:
    """A connection to the database of the jobs; None if there is none, or no job yet."""
    url = store_url(app.home, os.environ)
    if not url and not (app.home / JOBS_FILE).exists():
        yield None
        return
    database = job_database(app.home, url)
    client = database.open_client()
    try:
        if _is_empty(client):
            yield None
        else:
            yield client
    finally:
        client.destroy()
        if database.engine is not None:
            database.engine.dispose()


def _is_empty(client: DBOSClient) -> bool:
    """Whether the tables are not there: no executor has ever run."""
    try:
        client.list_workflows(limit=1, load_input=False, load_output=False)
    except SQLAlchemyError:
        return True
    return False


def _find(client: DBOSClient | None, job: str) -> WorkflowStatus | NoSuchJob:
    if client is None or not job:
        return NoSuchJob(job)
    matches = client.list_workflows(workflow_id_prefix=job, limit=LISTED_MAX, load_output=False)
    exact = [status for status in matches if status.workflow_id == job] or matches
    if len(exact) != 1:
        return NoSuchJob(job, tuple(status.workflow_id for status in exact))
    return exact[0]


def _record(status: WorkflowStatus) -> JobRecord:
    arguments: Sequence[Any] = status.input["args"] if status.input else ()
    name, content = (arguments[0], arguments[1]) if len(arguments) > 1 else (status.name, None)
    about = msgspec.convert(content, Announcement) if content else None
    return JobRecord(
        status.workflow_id,
        str(name),
        _STATES.get(status.status, "failed"),
        about.session_id if about else "",
        about.topic if about else "",
        status.created_at or 0,
        status.updated_at or 0,
        status.recovery_attempts or 0,
        str(status.error) if status.error else "",
    )


def _with_steps(record: JobRecord, client: DBOSClient) -> JobRecord:
    done = [
        StepRecord(
            step["function_name"],
            "failed" if step["error"] else "done",
            step["started_at_epoch_ms"],
            step["completed_at_epoch_ms"],
            _value_of(step["output"]),
            str(step["error"] or ""),
        )
        for step in client.list_workflow_steps(record.id)
    ]
    job = catalogue.JOBS.get(record.name)
    planned = [step.name for step in job.steps] if job and record.state != "done" else []
    pending = [StepRecord(name, "pending") for name in planned[len(done) :]]
    return msgspec.structs.replace(record, steps=(*done, *pending))


def _value_of(output: Any) -> Json:
    return cast("dict[str, Json]", output).get("value") if isinstance(output, dict) else None
