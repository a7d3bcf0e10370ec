"""Several executors: one works, and another continues what that leaves."""

import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from interlock.app.context import open_app
from interlock.app.jobs.executor_role import JOBS_FILE, has_executor, own_machine
from interlock.app.jobs.job_counts import announcements_for_us
from interlock.durable.executor import FAILURE_SECONDS, serve_jobs
from interlock.durable.job_records import JobRecord, show_job
from interlock.store.open_store import STORE_FILE
from tests.durable.traced_executor import STEPS, Trace, announce, start_executor, until
from tests.postgres import Cluster


class Executors:
    """Processes that run jobs, and what they write down."""

    def __init__(self, trace: Trace, stack: ExitStack) -> None:
        self.trace, self._stack = trace, stack

    def start(self, home: Path) -> "subprocess.Popen[bytes]":
        process = start_executor(home, self.trace)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


@pytest.fixture
def executors(tmp_path: Path) -> Iterator[Executors]:
    with ExitStack() as stack:
        yield Executors(Trace(tmp_path / "trace"), stack)


def job_in(home: Path, job: str) -> JobRecord:
    app = open_app(home)
    record = show_job(app, job)
    app.close()
    assert isinstance(record, JobRecord)
    return record


def is_run(home: Path) -> bool:
    app = open_app(home)
    is_so = has_executor(app)
    app.close()
    return is_so


@pytest.mark.invariant("executor-is-one")
@pytest.mark.sqlite
@pytest.mark.slow
def test_after_kill_9_the_other_process_continues_at_the_step_that_was_not_recorded(
    home: Path, executors: Executors
) -> None:
    trace, held = executors.trace, executors.trace.hold("second")
    both = {one.pid: one for one in (executors.start(home), executors.start(home))}
    job = announce(home, "one")

    until(lambda: len(trace.of("second", "begin")) == 1)
    (holder,) = trace.of("second", "begin")
    assert is_run(home)
    both.pop(holder).kill()
    (heir,) = both
    until(lambda: trace.of("second", "begin") == [holder, heir])
    held.unlink()
    until(lambda: job_in(home, job).state == "done")

    assert [(line.step, line.what, line.process) for line in trace.lines()] == [
        ("first", "begin", holder),
        ("first", "end", holder),
        ("second", "begin", holder),
        ("second", "begin", heir),
        ("second", "end", heir),
        ("third", "begin", heir),
        ("third", "end", heir),
    ]
    record = job_in(home, job)
    assert [(step.name, step.state, step.result) for step in record.steps] == [
        ("first", "done", {"before": []}),
        ("second", "done", {"before": ["first"]}),
        ("third", "done", {"before": ["first", "second"]}),
    ]
    assert record.attempts == 2
    assert trace.log.read_text() == ""
    _assert_is_safe(home / JOBS_FILE)


def _assert_is_safe(path: Path) -> None:
    """Nobody else can read it, two processes cannot damage it, and nothing in it is code."""
    assert path.stat().st_mode & 0o777 == 0o600
    assert not path.with_name(f"{JOBS_FILE}-wal").exists()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        tables = db.execute(
            "SELECT t.name FROM sqlite_schema t, pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND c.name = 'serialization'"
        ).fetchall()
        forms = {
            form
            for (table,) in tables
            for (form,) in db.execute(f"SELECT serialization FROM {table}")
        }
        steps = [text for (text,) in db.execute("SELECT output FROM operation_outputs")]
    assert forms == {"portable_json"}
    assert [text[0] for text in steps] == ["{"] * len(STEPS)


@pytest.mark.sqlite  # it names the store itself
@pytest.mark.slow
def test_a_process_that_was_stopped_does_no_further_step_once_another_has_taken_over(
    cluster: Cluster, home: Path, executors: Executors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_STORE", cluster.empty())
    trace, held = executors.trace, executors.trace.hold("second")
    first = executors.start(home)
    until(lambda: is_run(home))
    job = announce(home, "one")
    until(lambda: trace.of("second", "begin") == [first.pid])
    second = executors.start(home)

    os.kill(first.pid, signal.SIGSTOP)
    until(lambda: trace.of("second", "begin") == [first.pid, second.pid])
    held.unlink()
    until(lambda: job_in(home, job).state == "done")
    os.kill(first.pid, signal.SIGCONT)
    until(lambda: trace.of("second", "end") == [second.pid, first.pid])
    first.terminate()  # it waits for what it has begun
    first.wait(30)

    assert first.returncode == 0
    assert trace.log.read_text() == ""
    assert trace.of("first", "begin") == [first.pid]
    assert trace.of("third", "begin") == trace.of("third", "end") == [second.pid]
    assert [step.state for step in job_in(home, job).steps] == ["done"] * len(STEPS)


@pytest.mark.sqlite  # it names the store itself
@pytest.mark.slow
def test_a_message_for_one_machine_is_left_to_it_by_the_others(
    cluster: Cluster, tmp_path: Path, executors: Executors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_STORE", cluster.empty())
    trace, here, there = executors.trace, tmp_path / "here", tmp_path / "there"
    app = open_app(here)
    announce(here, "for-here", own_machine(app))
    announce(there, "for-there")
    other = executors.start(there)
    until(lambda: trace.of("third", "end", "for-there") == [other.pid])
    waiting = [about.subject for _, about in announcements_for_us(app)]
    one = executors.start(here)
    until(lambda: trace.of("third", "end", "for-here") == [one.pid])

    assert waiting == ["for-here"]
    assert {line.process for line in trace.lines() if line.subject == "for-here"} == {one.pid}
    assert announcements_for_us(app) == []
    assert trace.log.read_text() == ""
    app.close()


class CountedStop(threading.Event):
    """It counts the pauses, and is set after the second."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        if len(self.pauses) == 2:
            self.set()
        return self.is_set()


@pytest.mark.sqlite
def test_a_store_that_cannot_be_opened_is_tried_again_after_a_pause(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / STORE_FILE).write_bytes(b"not a database" * 1_000)
    stop = CountedStop()

    serve_jobs(home, stop)

    assert stop.pauses == [FAILURE_SECONDS] * 2
