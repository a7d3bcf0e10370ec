"""Jobs as people look at them, with the real DBOS: list, show, cancel, retry."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.app.context import App, open_app
from interlock.app.failures import StoreFailure
from interlock.app.jobs.executor_role import JOBS_FILE
from interlock.app.jobs.job_counts import JobCounts, count_jobs
from interlock.durable.executor import Executor
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.durable.job_records import (
    JobNotInState,
    JobRecord,
    NoSuchJob,
    cancel_job,
    list_jobs,
    retry_job,
    show_job,
)
from tests.durable.traced_executor import NAME, announce, until

SECONDS = 60


class Worked:
    """Two steps, the second of which fails as long as there is a problem."""

    def __init__(self) -> None:
        self.problem: Exception | None = None
        self.done: list[str] = []
        self.on_second: Callable[[], object] = bool

    def jobs(self, *, attempts_max: int) -> dict[str, Job]:
        second = JobStep("second", self._second, attempts_max)
        return {NAME: Job(NAME, (JobStep("first", self._first), second))}

    def _first(self, _: App, __: JobContext) -> StepResult:
        self.done.append("first")
        return StepResult("seen")

    def _second(self, _: App, context: JobContext) -> StepResult:
        self.done.append("second")
        self.on_second()
        if self.problem:
            raise self.problem
        return StepResult(dict(context.results))


@pytest.fixture
def worked() -> Worked:
    return Worked()


@pytest.fixture
def executor(home: Path, worked: Worked) -> Iterator[Executor]:
    made = Executor(home, worked.jobs(attempts_max=2))
    yield made
    made.close()


def shown(app: App, job: str) -> JobRecord:
    record = show_job(app, job)
    assert isinstance(record, JobRecord)
    return record


@pytest.mark.both_stores
def test_a_failed_job_is_continued_where_it_failed(
    home: Path, app: App, executor: Executor, worked: Worked
) -> None:
    worked.problem = OSError("No route \x1b[31m<b>")
    job = announce(home, "one")
    waiting = count_jobs(app)
    assert executor.run_pending(seconds=SECONDS)
    failed, counted = shown(app, job), count_jobs(app)
    retried = retry_job(app, job)
    worked.problem = None
    assert executor.run_pending(seconds=SECONDS)
    done = shown(app, job)

    assert (waiting, counted) == (
        JobCounts(is_executor_running=False, waiting=1),
        JobCounts(is_executor_running=True, waiting=0),
    )
    assert (failed.state, failed.error) == ("failed", "No route \x1b[31m<b>")
    assert [(one.name, one.state, one.error, one.attempts) for one in failed.steps] == [
        ("first", "done", "", 1),
        ("second", "failed", "No route \x1b[31m<b>", 2),
    ]
    assert isinstance(retried, JobRecord)
    assert (retried.state, [one.name for one in retried.steps]) == ("waiting", ["first"])
    assert (done.state, done.error, done.session) == ("done", "", "ses_0")
    assert [(one.result, one.attempts) for one in done.steps] == [
        ("seen", 1),
        ({"first": "seen"}, 1),
    ]
    assert worked.done == ["first", "second", "second", "second"]
    assert retry_job(app, job) == JobNotInState(job, "done", "retried")
    assert cancel_job(app, job) == JobNotInState(job, "done", "cancelled")


@pytest.mark.sqlite
def test_a_mistake_of_ours_is_not_repeated(
    home: Path, app: App, executor: Executor, worked: Worked
) -> None:
    worked.problem = AssertionError("never empty")
    job = announce(home, "one")
    assert executor.run_pending(seconds=SECONDS)

    step = shown(app, job).steps[-1]
    assert (step.state, step.error, step.attempts) == ("failed", "never empty", 1)


@pytest.mark.sqlite
def test_a_job_that_is_cancelled_in_a_step_does_not_begin_its_next_try(
    home: Path, app: App, executor: Executor, worked: Worked
) -> None:
    worked.problem, outcomes = OSError("Not now"), list[object]()
    job = announce(home, "one")

    def cancel() -> None:
        own = open_app(home)  # it is another thread
        outcomes.append(cancel_job(own, job))
        own.close()

    worked.on_second = cancel
    assert executor.run_pending(seconds=SECONDS)
    until(lambda: shown(app, job).state == "cancelled")
    worked.problem, worked.on_second = None, bool
    retry_job(app, job)
    assert executor.run_pending(seconds=SECONDS)

    assert [one.state for one in outcomes if isinstance(one, JobRecord)] == ["cancelled"]
    assert shown(app, job).state == "done"
    assert worked.done == ["first", "second", "second"]


@pytest.mark.sqlite
def test_jobs_are_found_by_the_beginning_of_their_id(
    home: Path, app: App, executor: Executor
) -> None:
    nothing = (list_jobs(app), show_job(app, "job_"), cancel_job(app, "job_"))
    names = [announce(home, f"s{number}") for number in range(2)]
    assert executor.run_pending(seconds=SECONDS)
    ambiguous = show_job(app, "job_")

    assert nothing == ([], NoSuchJob("job_"), NoSuchJob("job_"))
    assert sorted(one.id for one in list_jobs(app)) == sorted(names)
    assert len(list_jobs(app, limit=1)) == 1
    assert shown(app, names[0][:-1]).id == names[0]
    assert isinstance(ambiguous, NoSuchJob)
    assert sorted(ambiguous.candidates) == sorted(names)
    assert show_job(app, "") == NoSuchJob("")


@pytest.mark.sqlite
def test_a_database_that_cannot_be_used_is_a_failure_and_not_an_empty_list(app: App) -> None:
    (app.home / JOBS_FILE).write_bytes(b"This is not a database. " * 100)

    with pytest.raises(StoreFailure, match="file is not a database"):
        list_jobs(app)
