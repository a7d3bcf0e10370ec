"""What is known of the jobs without DBOS, which takes long to import."""

import os

import msgspec

from interlock.app.context import App, store_url
from interlock.app.jobs.executor_role import (
    JOBS_FILE,
    has_executor,
    own_machine,
    postgres_parameters,
)
from interlock.core.project_stream import OutboxMessage
from interlock.core.session.announcements import Announcement, decode_announcement
from interlock.store.failed_jobs import count_failed_in_file, count_failed_in_postgres

MESSAGES_MAX = 1_000


class JobCounts(msgspec.Struct, frozen=True, rename="camel"):
    is_executor_running: bool
    """Whether a process of this machine runs jobs."""
    waiting: int
    """Announcements for this machine of which no job has been started yet."""
    failed: int


def count_jobs(app: App) -> JobCounts:
    """Raises `StoreFailure` if the store or the database of the jobs cannot be read."""
    return JobCounts(has_executor(app), len(announcements_for_us(app)), _count_failed(app))


def announcements_for_us(app: App) -> list[tuple[OutboxMessage, Announcement]]:
    """The announcements in the outbox that are for this machine, or for any."""
    machine = own_machine(app)
    decoded = [
        (message, decode_announcement(message.content))
        for message in app.reader.outbox(limit=MESSAGES_MAX)
    ]
    return [pair for pair in decoded if pair[1].machine in ("", machine)]


def _count_failed(app: App) -> int:
    if url := store_url(app.home, os.environ):
        return count_failed_in_postgres(*postgres_parameters(url))
    return count_failed_in_file(app.home / JOBS_FILE)
