"""The executor: turns announcements in the outbox into jobs, and decides what has become overdue.

It looks once in a while (`TICK_SECONDS`). An announcement is removed from the outbox after its job
was started; if the process dies in between, it is started again under the same id, which does
nothing. DBOS takes long to import and some memory to run, so it is started with the first job, or
if there are jobs of before.
"""

import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.app.context import App, open_app, store_url
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.jobs.executor_role import ExecutorRole, can_have_jobs, executor_role, own_machine
from interlock.app.jobs.job_counts import announcements_for_us
from interlock.app.protocol.feature_reviews import settle_overdue_reviews
from interlock.app.runs import approvals
from interlock.core.ids import job_id
from interlock.core.session.announcements import Announcement
from interlock.durable import catalogue
from interlock.durable.catalogue import due_retention
from interlock.durable.job import Job

if TYPE_CHECKING:
    from interlock.durable.runtime import JobRuntime

TICK_SECONDS = 0.5
FAILURE_SECONDS = 5.0
OVERDUE_SECONDS = 60.0
RETENTION_FIRST_SECONDS, RETENTION_SECONDS = 60.0, 24 * 3600.0
CLOSE_SECONDS = 2
_LOG = logging.getLogger(__name__)


class Executor:
    """Runs jobs as long as it has the role for its machine."""

    def __init__(self, home: Path, jobs: Mapping[str, Job] | None = None) -> None:
        """Raises `StoreFailure` if the store cannot be used."""
        self._app = open_app(home)
        self._jobs = catalogue.JOBS if jobs is None else jobs
        self._machine = own_machine(self._app)
        self._url = store_url(home, os.environ)
        self._role: ExecutorRole = executor_role(self._app)
        self._runtime: JobRuntime | None = None
        self._held: set[str] = set()
        """The keys of messages with which nothing can be done as the settings are."""
        self._overdue_at = 0.0
        self._retention_at = time.monotonic() + RETENTION_FIRST_SECONDS

    def serve(self, stop: threading.Event) -> None:
        """Run jobs until `stop` is set. What fails is logged and tried again."""
        while not stop.is_set():
            try:
                self.tick()
            except (StoreFailure, SettingsBroken) as failure:
                _LOG.warning("Jobs cannot be run now: %s", failure)
                stop.wait(FAILURE_SECONDS)
            except Exception:  # noqa: BLE001 (one job or session must not stop all the others)
                _LOG.exception("Jobs: this is a bug in Interlock")
                stop.wait(FAILURE_SECONDS)
            stop.wait(TICK_SECONDS)

    def run_pending(self, *, seconds: float) -> bool:
        """Run jobs until none is left; False if another process does that already.

        Those that are not over after `seconds` are left to the next executor.
        """
        started = time.monotonic()
        while not self.tick():
            if time.monotonic() > started + self._role.wait_seconds:
                return False
            time.sleep(TICK_SECONDS / 10)
        while self._runtime and time.monotonic() < started + seconds:
            messages = announcements_for_us(self._app)
            is_idle = all(message.key in self._held for message, _ in messages)
            if is_idle and not self._runtime.active_jobs():
                break
            time.sleep(TICK_SECONDS / 10)
            self.tick()
        return True

    def tick(self) -> bool:
        """Look once at what there is to do; False if another process is the executor."""
        if not self._role.acquire():
            self._close_runtime()
            return False
        for message, announcement in announcements_for_us(self._app):
            try:
                self._start_jobs(message.key, announcement)
            except SettingsBroken as broken:
                # It waits until that is put right; others do not wait for it.
                if message.key not in self._held:
                    _LOG.warning("Nobody is notified: %s", broken)
                self._held.add(message.key)
                continue
            self._app.log.acknowledge([message])
        if can_have_jobs(self._app.home):
            self._running()
        if time.monotonic() >= self._overdue_at:
            self._overdue_at = time.monotonic() + OVERDUE_SECONDS  # first: it may fail
            settle_overdue(self._app)
        if time.monotonic() >= self._retention_at:
            self._retention_at = time.monotonic() + RETENTION_SECONDS
            if due := due_retention(self._app, self._machine):
                self._start_jobs(f"{due.topic}:{due.machine}:{due.subject}", due)
        return True

    def _start_jobs(self, key: str, announcement: Announcement) -> None:
        for job in catalogue.jobs_for(announcement.topic, self._jobs, self._app.home):
            self._running().start(job, job_id(job.name, key), announcement)

    def close(self) -> None:
        self._close_runtime()
        self._role.release()
        self._app.close()

    def _running(self) -> "JobRuntime":
        if self._runtime is None:
            # 700 ms, and most of the time there are no jobs.
            from interlock.durable.job_database import job_database  # noqa: PLC0415
            from interlock.durable.runtime import JobRuntime  # noqa: PLC0415

            database = job_database(self._app.home, self._url)
            self._runtime = JobRuntime(self._app.home, database, self._machine, self._jobs)
        return self._runtime

    def _close_runtime(self) -> None:
        if self._runtime is not None:
            self._runtime.close(wait_seconds=CLOSE_SECONDS)
            self._runtime = None


def run_pending_jobs(home: Path, *, seconds: float) -> bool:
    """Be the executor until nothing is left to do; False if another process is it."""
    executor = Executor(home)
    try:
        return executor.run_pending(seconds=seconds)
    finally:
        executor.close()


def serve_jobs(home: Path, stop: threading.Event) -> None:
    """Run jobs until `stop` is set."""
    while not stop.is_set():
        try:
            executor = Executor(home)
        except StoreFailure as failure:
            _LOG.warning("Jobs cannot be run now: %s", failure)
            stop.wait(FAILURE_SECONDS)
            continue
        try:
            executor.serve(stop)
        finally:
            executor.close()


def settle_overdue(app: App) -> None:
    """Decide the approvals and reviews whose deadline has passed, as the first reader does."""
    try:
        approvals.list_pending(app)
    finally:
        settle_overdue_reviews(app)
