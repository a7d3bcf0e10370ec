"""Jobs as people look at them: list, show, cancel, retry. Whether an executor runs does not matter.

What is changed here is a row that the executor reads: a job that is cancelled stops before its next
step or try, and one that is retried is continued by the executor that runs, or by the next one.
DBOS is imported only where there can be jobs.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import msgspec

from interlock.app.context import App
from interlock.core.canonical import Json
from interlock.core.explanation import Explanation
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.core.session.announcements import Announcement
from interlock.durable import catalogue
from interlock.durable.job import JobContext, ask_about_jobs

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

LISTED_MAX = 200
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]
_STATES: dict[str, JobState] = {
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "PENDING": "running",
    "SUCCESS": "done",
    "CANCELLED": "cancelled",
}
ACTIVE_STATES: tuple[JobState, ...] = ("waiting", "running")
ENDED_EARLY_STATES: tuple[JobState, ...] = ("failed", "cancelled")


class StepRecord(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: Literal["done", "failed", "running", "pending"]
    started_ms: int | None = None
    ended_ms: int | None = None
    result: Json = None
    error: str = ""
    attempts: int = 0
    """How often it was tried; 0 while it is not over."""


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


def list_jobs(app: App, *, limit: int = LISTED_MAX) -> list[JobRecord]:
    """Return the newest jobs, the newest first. Raises `StoreFailure`, as all of these do."""
    return ask_about_jobs(
        app,
        lambda client: [_record(one) for one in client.list_workflows(sort_desc=True, limit=limit)],
        list[JobRecord](),
    )


def show_job(app: App, job: str) -> JobRecord | NoSuchJob:
    """Return the job whose id is `job` or begins with it, with its steps."""

    def show(client: "DBOSClient") -> JobRecord | NoSuchJob:
        record = _find(client, job)
        return record if isinstance(record, NoSuchJob) else _with_steps(record, client)

    return ask_about_jobs(app, show, NoSuchJob(job))


def cancel_job(app: App, job: str) -> JobRecord | NoSuchJob | PlainRefusal:
    """Stop a job before its next step."""

    def cancel(client: "DBOSClient", job_id: str) -> None:
        client.cancel_workflow(job_id)
        (status,) = client.list_workflows(workflow_ids=[job_id], load_output=False)
        name, content = status.input["args"] if status.input else ("", None)
        give_up = catalogue.JOBS[name].give_up if name in catalogue.JOBS else None
        if give_up:
            context = JobContext(job_id, msgspec.convert(content, Announcement), {})
            give_up(app, context, "it was cancelled")

    return _change(app, job, ACTIVE_STATES, "cancelled", cancel)


def retry_job(app: App, job: str) -> JobRecord | NoSuchJob | PlainRefusal:
    """Continue a job that has failed or was cancelled, at the step that is not done."""
    return _change(app, job, ENDED_EARLY_STATES, "retried", _rewind_to_failure)


def _change(
    app: App,
    job: str,
    states: Sequence[JobState],
    verb: str,
    change: "Callable[[DBOSClient, str], None]",
) -> JobRecord | NoSuchJob | PlainRefusal:
    def find_and_change(client: "DBOSClient") -> JobRecord | NoSuchJob | PlainRefusal:
        record = _find(client, job)
        if isinstance(record, NoSuchJob):
            return record
        if record.state not in states:
            return PlainRefusal(
                "not_allowed",
                f"Job `{record.id}` cannot be {verb}: it is {record.state}",
                f"`interlock jobs show {record.id}` shows what it did.",
            )
        change(client, record.id)
        changed = _find(client, record.id)
        assert not isinstance(changed, NoSuchJob), "it was there a moment ago"
        return _with_steps(changed, client)

    return ask_about_jobs(app, find_and_change, NoSuchJob(job))


def _rewind_to_failure(client: "DBOSClient", job: str) -> None:
    """Do again what failed, and what comes after; what is done stays done."""
    steps = client.list_workflow_steps(job)
    failed = [step["function_id"] for step in steps if step["error"] is not None]
    first_open = (
        failed[0] if failed else max((step["function_id"] for step in steps), default=0) + 1
    )
    client.rewind_workflow(job, start_step=first_open)


def _find(client: "DBOSClient", job: str) -> JobRecord | NoSuchJob:
    if not job:
        return NoSuchJob(job)
    matches = client.list_workflows(workflow_id_prefix=job, limit=LISTED_MAX)
    exact = [status for status in matches if status.workflow_id == job] or matches
    if len(exact) != 1:
        return NoSuchJob(job, tuple(status.workflow_id for status in exact))
    return _record(exact[0])


def _record(status: "WorkflowStatus") -> JobRecord:
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


def _with_steps(record: JobRecord, client: "DBOSClient") -> JobRecord:
    done = [
        StepRecord(
            step["function_name"],
            "failed" if step["error"] else "done",
            step["started_at_epoch_ms"],
            step["completed_at_epoch_ms"],
            _field_of(step["output"], "value"),
            str(step["error"] or ""),
            cast("int", _field_of(step["output"] or getattr(step["error"], "data", 0), "attempts"))
            or 1,
        )
        for step in client.list_workflow_steps(record.id)
    ]
    job = catalogue.JOBS.get(record.name)
    planned = [step.name for step in job.steps] if job and record.state != "done" else []
    if planned[: len(done)] != [step.name for step in done]:
        planned = []  # the steps of another version
    pending = [StepRecord(name, "pending") for name in planned[len(done) :]]
    if pending and record.state == "running":
        # DBOS records a step when it ends; it began when the one before it did that.
        started_ms = done[-1].ended_ms if done else record.created_ms
        pending[0] = StepRecord(pending[0].name, "running", started_ms)
    return msgspec.structs.replace(record, steps=(*done, *pending))


def _field_of(content: Any, name: str) -> Json:
    """A field of what `runtime` has recorded of a step."""
    return cast("dict[str, Json]", content).get(name) if isinstance(content, dict) else None
