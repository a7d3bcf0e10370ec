"""Jobs: what goes on by itself, step by step, and the user's way to stop or repeat it."""

from collections.abc import Callable

import msgspec
from starlette.routing import Route

from interlock.app.context import App
from interlock.app.jobs.executor_role import has_executor
from interlock.app.jobs.job_counts import announcements_for_us
from interlock.core.explanation import Explanation
from interlock.core.refusal import PlainRefusal
from interlock.durable import job_records
from interlock.durable.job_records import (
    ACTIVE_STATES,
    ENDED_EARLY_STATES,
    JobRecord,
    NoSuchJob,
    StepRecord,
)
from interlock.server.console import Console, Page, PageRedirect, PageRequest

JOBS = "/jobs"
BAR_UNITS = 1_000
BAR_UNITS_MIN = 8
"""The width of a bar for next to no time: it must still be seen."""


class StepRow(msgspec.Struct, frozen=True):
    step: StepRecord
    offset_ms: int | None
    """The time from the start of the first step to that of this one."""
    duration_ms: int | None
    bar_start: int
    bar_width: int
    """In `BAR_UNITS` of the time that the whole job took."""


def routes(console: Console) -> list[Route]:
    return [
        console.page(JOBS, jobs),
        console.page(f"{JOBS}/{{job}}", job),
        console.background_action(f"{JOBS}/{{job}}/cancel", cancel),
        console.background_action(f"{JOBS}/{{job}}/retry", retry),
    ]


def jobs(request: PageRequest) -> Page:
    records = job_records.list_jobs(request.app)
    waiting = len(announcements_for_us(request.app))
    facts = {
        "records": sorted(records, key=lambda one: one.state != "failed"),
        "waiting": waiting,
        "has_executor": has_executor(request.app),
        "is_changing": waiting > 0 or any(one.state in ACTIVE_STATES for one in records),
    }
    return Page("jobs.html", "Jobs", facts, live="")


def job(request: PageRequest) -> Page | Explanation:
    record = job_records.show_job(request.app, request.params["job"])
    if isinstance(record, NoSuchJob) or record.id != request.params["job"]:
        return NoSuchJob(request.params["job"]).explain()
    is_active = record.state in ACTIVE_STATES
    facts = {
        "job": record,
        "rows": step_rows(record, now_ms=request.app.clock.now_ms()),
        "bar_units": BAR_UNITS,
        "can_cancel": is_active,
        "can_retry": record.state in ENDED_EARLY_STATES,
        "has_executor": has_executor(request.app),
        "is_changing": is_active,
    }
    return Page("job.html", f"{record.name} {record.id}", facts, live="")


def cancel(request: PageRequest) -> PageRedirect | Explanation:
    return _change(request, job_records.cancel_job, "job_cancelled")


def retry(request: PageRequest) -> PageRedirect | Explanation:
    return _change(request, job_records.retry_job, "job_retried")


def step_rows(job: JobRecord, *, now_ms: int) -> list[StepRow]:
    """The steps with their times, as far as they have begun."""
    begins = [step.started_ms for step in job.steps if step.started_ms is not None]
    ends = [step.ended_ms for step in job.steps if step.ended_ms is not None]
    if any(step.state == "running" for step in job.steps):
        ends.append(now_ms)
    first_ms = min(begins, default=0)
    total_ms = max(1, max(ends, default=0) - first_ms)

    def row(step: StepRecord) -> StepRow:
        if step.started_ms is None:
            return StepRow(step, None, None, 0, 0)
        end_ms = now_ms if step.ended_ms is None else step.ended_ms
        offset_ms, duration_ms = step.started_ms - first_ms, max(0, end_ms - step.started_ms)
        width = max(BAR_UNITS_MIN, duration_ms * BAR_UNITS // total_ms)
        start = min(offset_ms * BAR_UNITS // total_ms, BAR_UNITS - width)
        return StepRow(step, offset_ms, duration_ms, start, width)

    return [row(step) for step in job.steps]


def _change(
    request: PageRequest,
    change: Callable[[App, str], JobRecord | NoSuchJob | PlainRefusal],
    message_key: str,
) -> PageRedirect | Explanation:
    outcome = change(request.app, request.params["job"])
    if isinstance(outcome, JobRecord):
        return PageRedirect(f"{JOBS}/{outcome.id}", message_key)
    return outcome.explain()
