"""The daily job that removes what has expired, also when the clock is set."""
# pyright: reportPrivateUsage=false

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.jobs.executor_role import own_machine
from interlock.core.ids import SessionId
from interlock.core.session.announcements import Announcement
from interlock.durable.catalogue import JOB_DAYS, RETENTION, due_retention
from interlock.durable.executor import Executor
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.durable.job_records import list_jobs
from tests.durable.traced_executor import NAME, announce
from tests.scenes import SettableClock

SECONDS = 60
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOON_MS = 1_800_014_400_000  # 2027-01-15, 12:00 UTC
pytestmark = pytest.mark.sqlite


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(NOON_MS)


@pytest.fixture
def executor(
    home: Path, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Executor]:
    """With a job for announcements beside the one for retention."""
    monkeypatch.setattr("interlock.durable.executor.CLOSE_SECONDS", 0)

    def work(_: App, __: JobContext) -> StepResult:
        return StepResult("done")

    jobs = {RETENTION.name: RETENTION, NAME: Job(NAME, (JobStep("only", work),))}
    made = Executor(home, jobs)
    made._app = msgspec.structs.replace(made._app, clock=clock)
    yield made
    made.close()


def run_next_retention(executor: Executor) -> None:
    """As if a day had passed for the executor, whatever the clock of the machine shows."""
    executor._retention_at = 0.0
    assert executor.run_pending(seconds=SECONDS)


def test_retention_runs_once_a_day_also_when_the_clock_is_set_back(
    home: Path, app: App, executor: Executor, clock: SettableClock
) -> None:
    run_next_retention(executor)
    nothing_expired = list_jobs(app)
    expired = home / "logs" / "crash-1.txt"
    expired.parent.mkdir(exist_ok=True)
    jobs: list[int] = []
    for at_ms in (NOON_MS, NOON_MS - 6 * HOUR_MS, NOON_MS - DAY_MS, NOON_MS + DAY_MS):
        clock.at_ms = at_ms
        expired.touch()
        os.utime(expired, (0, 0))
        run_next_retention(executor)
        jobs.append(len(list_jobs(app)))

    assert nothing_expired == []
    assert jobs == [1, 1, 2, 3], "a day that was left and came again has its job already"
    assert {(job.name, job.state) for job in list_jobs(app)} == {("retention", "done")}
    assert not expired.exists()


def test_nothing_is_due_before_it_expires(home: Path, app: App, clock: SettableClock) -> None:
    timed = msgspec.structs.replace(app, clock=clock)
    journal = home / "logs" / "crash-1.txt"
    journal.parent.mkdir(exist_ok=True)
    journal.touch()
    written_ns = (NOON_MS - 30 * DAY_MS) * 1_000_000
    os.utime(journal, ns=(written_ns, written_ns))

    assert due_retention(timed, own_machine(app)) is None
    clock.at_ms += 1
    due = due_retention(timed, own_machine(app))
    assert due == Announcement(
        "retention/due", SessionId(""), "2027-01-15", machine=own_machine(app)
    )
    assert journal.exists(), "to ask removes nothing"


def test_jobs_are_forgotten_after_their_time(
    home: Path, app: App, executor: Executor, clock: SettableClock
) -> None:
    announce(home, "one")
    assert executor.run_pending(seconds=SECONDS)
    (job,) = list_jobs(app)
    timed = msgspec.structs.replace(app, clock=clock)
    forget = {step.name: step.work for step in RETENTION.steps}["forget_old_jobs"]
    context = JobContext(job.id, Announcement("retention/due", SessionId(""), "today"), {})

    clock.at_ms = job.updated_ms + JOB_DAYS * DAY_MS - HOUR_MS
    assert (forget(timed, context).value, list_jobs(app)) == (0, [job])
    clock.at_ms += 2 * HOUR_MS
    assert (forget(timed, context).value, list_jobs(app)) == (1, [])
