"""The kinds of jobs, and the announcements that start them.

The job `retention` is here, too: once a day, if something has expired, it removes it. Events are
not removed: they leave with their whole session. Old jobs are forgotten.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.app.context import App
from interlock.app.protocol.publish import DAY_MS
from interlock.app.protocol.retention import apply_retention
from interlock.core.ids import SessionId
from interlock.core.protocol.logbook import day_of
from interlock.core.session.announcements import Announcement, Topic
from interlock.core.session.timestamps import timestamp
from interlock.durable.delivery import DELIVER
from interlock.durable.job import Job, JobContext, JobStep, StepResult, ask_about_jobs
from interlock.durable.notification import NOTIFY, WEBHOOK, notifying_jobs
from interlock.durable.protocol_end import PROTOCOL_END

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
JOBS: Mapping[str, Job] = {
    job.name: job for job in (PROTOCOL_END, NOTIFY, WEBHOOK, RETENTION, DELIVER)
}
_STARTED_BY: Mapping[Topic, str] = {
    "session/protocol.end": PROTOCOL_END.name,
    "retention/due": RETENTION.name,
    "unattended/deliver": DELIVER.name,
}


def jobs_for(topic: Topic, jobs: Mapping[str, Job], home: Path) -> list[Job]:
    """The jobs that an announcement of this topic starts, as far as they are among `jobs`.

    Raises:
        SettingsBroken: it is not certain whether the user wants to be notified.
    """
    names = [_STARTED_BY[topic]] if topic in _STARTED_BY else notifying_jobs(home, topic)
    return [jobs[name] for name in names if name in jobs]
