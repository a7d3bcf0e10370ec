"""The job `retention`: once a day, if something has expired, remove it.

Events are not removed: they leave with their whole session. Old jobs are forgotten, too.
"""

from typing import TYPE_CHECKING

from interlock.app.context import App
from interlock.app.protocol.publish import DAY_MS
from interlock.app.protocol.retention import apply_retention
from interlock.core.ids import SessionId
from interlock.core.protocol.logbook import day_of
from interlock.core.session.announcements import Announcement
from interlock.core.session.timestamps import timestamp
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.durable.job_question import ask_about_jobs

if TYPE_CHECKING:
    from dbos import DBOSClient

JOB_DAYS, JOBS_MAX = 30, 10_000


def due_retention(app: App, machine: str) -> Announcement | None:
    """The announcement that starts the job of today; None if nothing has expired."""
    if not apply_retention(app, is_dry=True):
        return None
    return Announcement("retention/due", SessionId(""), day_of(app.clock.now_ms()), machine=machine)


def _remove_expired(app: App, _: JobContext) -> StepResult:
    return StepResult(len(apply_retention(app, is_dry=False)))


def _forget_old_jobs(app: App, _: JobContext) -> StepResult:
    before = timestamp(app.clock.now_ms() - JOB_DAYS * DAY_MS)

    def forget(client: "DBOSClient") -> int:
        ended = client.list_workflows(
            completed_before=before, limit=JOBS_MAX, load_input=False, load_output=False
        )
        client.delete_workflows([job.workflow_id for job in ended])
        return len(ended)

    return StepResult(ask_about_jobs(app, forget, 0))


RETENTION = Job(
    "retention",
    (JobStep("remove_expired", _remove_expired), JobStep("forget_old_jobs", _forget_old_jobs)),
)
