"""The jobs that there are, and the announcements that start them."""

from collections.abc import Mapping
from pathlib import Path

from interlock.core.session.announcements import Topic
from interlock.durable.delivery import DELIVER
from interlock.durable.job import Job
from interlock.durable.notification import NOTIFY, WEBHOOK, notifying_jobs
from interlock.durable.protocol_end import PROTOCOL_END
from interlock.durable.retention import RETENTION

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
