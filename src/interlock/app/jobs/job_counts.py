"""What is known of the jobs without DBOS, which takes long to import."""

import msgspec

from interlock.app.context import App
from interlock.app.jobs.executor_role import has_executor, own_machine
from interlock.core.project_stream import OutboxMessage
from interlock.core.session.announcements import Announcement, decode_announcement

MESSAGES_MAX = 1_000


class JobCounts(msgspec.Struct, frozen=True, rename="camel"):
    is_executor_running: bool
    """Whether a process of this machine runs jobs."""
    waiting: int
    """Announcements for this machine of which no job has been started yet."""


def count_jobs(app: App) -> JobCounts:
    """Raises `StoreFailure` if the store cannot be read."""
    return JobCounts(has_executor(app), len(announcements_for_us(app)))


def announcements_for_us(app: App) -> list[tuple[OutboxMessage, Announcement]]:
    """The announcements in the outbox that are for this machine."""
    messages = app.reader.outbox(own_machine(app), limit=MESSAGES_MAX)
    return [(message, decode_announcement(message.content)) for message in messages]
