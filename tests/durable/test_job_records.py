"""Jobs as people look at them, with the real DBOS: list, show, cancel, retry."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.app.context import App, open_app
from interlock.app.failures import StoreFailure
from interlock.app.jobs.executor_role import JOBS_FILE
from interlock.app.jobs.job_counts import JobCounts, count_jobs
from interlock.core.refusal import PlainRefusal
from interlock.durable import catalogue
from interlock.durable.executor import Executor
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.durable.job_records import (
    JobRecord,
    NoSuchJob,
    cancel_job,
    list_jobs,
    retry_job,
    show_job,
)
from tests.durable.traced_executor import NAME, announce, until
from tests.stores import place_of

SECONDS = 60


class Worked:
    """Two steps, the second of which fails as long as there is a problem."""

    def __init__(self) -> None:
        self.problem: Exception | None = None
        self.failures = 1_000
        """How many tries of the second step fail at most."""
        self.done: list[str] = []
        self.on_second: Callable[[], object] = bool

        self.reasons: list[tuple[str, str, str]] = []
        """The jobs and announcements that were given up, and why."""

    def jobs(self, **limits: int) -> dict[str, Job]:
        second = JobStep("second", self._second, **limits)
        return {NAME: Job(NAME, (JobStep("first", self._first), second), self._give_up)}

    def _first(self, _: App, __: JobContext) -> StepResult:
        self.done.append("first")
        return StepResult("seen")

    def _second(self, _: App, context: JobContext) -> StepResult:
        self.done.append("second")
        self.on_second()
        if self.problem and self.failures:
            self.failures -= 1
            raise self.problem
        return StepResult(dict(context.results))

    def _give_up(self, _: App, context: JobContext, reason: str) -> None:
        self.reasons.append((context.job, context.announcement.subject, reason))


def refusal_text(outcome: object) -> str:
    assert isinstance(outcome, PlainRefusal), outcome
    return outcome.error


@pytest.fixture
def worked() -> Worked:
    return Worked()


@pytest.fixture
def limits() -> dict[str, int]:
    return {"attempts_max": 2}


@pytest.fixture
def executor(
    home: Path, worked: Worked, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Executor]:
    monkeypatch.setattr("interlock.durable.runtime.FIRST_RETRY_SECONDS", 0.01)
    monkeypatch.setattr("interlock.durable.executor.CLOSE_SECONDS", 0)
    jobs = worked.jobs(**limits)
    monkeypatch.setattr(catalogue, "JOBS", jobs)
    made = Executor(home, jobs)
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
    failed, counted, cancel_failed = shown(app, job), count_jobs(app), cancel_job(app, job)
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
    assert (retried.state, [one.state for one in retried.steps]) == ("waiting", ["done", "pending"])
    assert (done.state, done.error, done.session) == ("done", "", "ses_0")
    assert [(one.result, one.attempts) for one in done.steps] == [
        ("seen", 1),
        ({"first": "seen"}, 1),
    ]
    assert worked.done == ["first", "second", "second", "second"]
    assert worked.reasons == [(job, "one", "No route \x1b[31m<b>")]
    assert refusal_text(cancel_failed) == f"Job `{job}` cannot be cancelled: it is failed"
    assert refusal_text(retry_job(app, job)) == f"Job `{job}` cannot be retried: it is done"
    assert refusal_text(cancel_job(app, job)) == f"Job `{job}` cannot be cancelled: it is done"


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("limits", "failures", "state", "attempts"),
    [
        ({}, 3, "done", 4),
        ({}, 4, "failed", 4),
        ({"attempts_max": 2}, 1, "done", 2),
        ({"attempts_max": 1}, 1, "failed", 1),
    ],
)
def test_a_step_is_tried_as_often_as_it_may_be_and_four_times_by_default(
    home: Path,
    app: App,
    executor: Executor,
    worked: Worked,
    *,
    failures: int,
    state: str,
    attempts: int,
) -> None:
    worked.problem, worked.failures = OSError("Not now"), failures
    job = announce(home, "one")
    assert executor.run_pending(seconds=SECONDS)

    record = shown(app, job)
    assert (record.state, record.steps[-1].state) == (state, state)
    assert record.steps[-1].attempts == worked.done.count("second") == attempts
    assert record.error == ("Not now" if state == "failed" else "")
    assert len(worked.reasons) == (state == "failed")


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
        outcomes.extend((retry_job(own, job), cancel_job(own, job), cancel_job(own, job)))
        own.close()

    worked.on_second = cancel
    assert executor.run_pending(seconds=SECONDS)
    until(lambda: shown(app, job).state == "cancelled")
    worked.problem, worked.on_second = None, bool
    retry_job(app, job)
    assert executor.run_pending(seconds=SECONDS)

    refused, cancelled, again = outcomes
    assert refusal_text(refused) == f"Job `{job}` cannot be retried: it is running"
    assert isinstance(cancelled, JobRecord)
    assert (cancelled.state, [one.state for one in cancelled.steps]) == (
        "cancelled",
        ["done", "pending"],
    )
    assert refusal_text(again) == f"Job `{job}` cannot be cancelled: it is cancelled"
    assert worked.reasons == [(job, "one", "it was cancelled")]
    assert shown(app, job).state == "done"
    assert worked.done == ["first", "second", "second"]


@pytest.mark.both_stores
@pytest.mark.parametrize("has_database", [True, False])
def test_a_database_of_jobs_without_tables_has_no_jobs(
    home: Path, app: App, *, has_database: bool
) -> None:
    """An executor that was killed while it made the database, or that was never started."""
    if has_database:
        (home / JOBS_FILE).touch()
        if (place := place_of(home)).url:
            place.run("CREATE SCHEMA interlock_jobs")

    assert list_jobs(app) == []
    for ask in (show_job, cancel_job, retry_job):
        assert ask(app, "job_0123456789") == NoSuchJob("job_0123456789")


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
