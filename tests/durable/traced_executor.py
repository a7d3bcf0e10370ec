"""An executor in a process of its own, whose job writes down each step that it begins or ends.

`python -m tests.durable.traced_executor HOME TRACE` runs jobs until it is told to end.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from interlock.app.context import App, open_app
from interlock.app.jobs.executor_role import own_machine
from interlock.core import canonical
from interlock.core.ids import ProjectId, SessionId, job_id
from interlock.core.project_stream import OutboxMessage, ProjectPlan
from interlock.core.session.announcements import Announcement
from interlock.durable.executor import Executor
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from tests.child_process import end_with_parent

NAME = "protocol-end"
STEPS = ("first", "second", "third")
SECONDS_MAX = 60


class TraceLine(NamedTuple):
    subject: str
    step: str
    what: str
    """`begin` or `end`."""
    process: int


class Trace:
    """A file with a line for each step that was begun or ended, and steps that are held up."""

    def __init__(self, path: Path) -> None:
        self.path, self.log = path, path.with_name("log")
        """`log`: what the executors complain about."""

    def lines(self) -> list[TraceLine]:
        text = self.path.read_text() if self.path.exists() else ""
        parts = [line.split() for line in text.splitlines()]
        return [TraceLine(subject, step, what, int(pid)) for subject, step, what, pid in parts]

    def of(self, step: str, what: str, subject: str = "") -> list[int]:
        """The processes that have begun or ended a step."""
        return [
            line.process
            for line in self.lines()
            if (line.step, line.what) == (step, what) and subject in ("", line.subject)
        ]

    def write(self, *words: object) -> None:
        with self.path.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def hold(self, step: str) -> Path:
        """Processes stay in this step until the file is gone."""
        path = self.path.with_name(f"{self.path.name}-hold-{step}")
        path.touch()
        return path

    def wait_while_held(self, step: str) -> None:
        path = self.path.with_name(f"{self.path.name}-hold-{step}")
        until(lambda: not path.exists())


def until(is_so: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)


def announce(home: Path, subject: str, machine: str = "") -> str:
    """Write a message to the outbox, and return the id of the job that it starts."""
    app = open_app(home)
    reader = machine or own_machine(app)
    about = Announcement("session/protocol.end", SessionId("ses_0"), subject, machine=reader)
    message = OutboxMessage(subject, reader, canonical.encode(about))
    app.log.append_to_project(ProjectPlan(ProjectId("shop"), subject, b"{}", 1, outbox=(message,)))
    app.close()
    return job_id(NAME, subject)


def start_executor(home: Path, trace: Trace) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.durable.traced_executor", str(home), str(trace.path)]
    with trace.log.open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            stderr=log,
            preexec_fn=end_with_parent,  # noqa: PLW1509 (it takes no lock)
        )


def traced_job(trace: Trace) -> Job:
    def step(name: str) -> JobStep:
        def work(_: App, context: JobContext) -> StepResult:
            subject = context.announcement.subject
            trace.write(subject, name, "begin", os.getpid())
            trace.wait_while_held(name)
            trace.write(subject, name, "end", os.getpid())
            return StepResult({"before": [*sorted(context.results)]})

        return JobStep(name, work)

    return Job(NAME, tuple(map(step, STEPS)))


def main(home: str, trace: str) -> None:
    stop = threading.Event()

    def end(_: int, __: object) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    executor = Executor(Path(home), {NAME: traced_job(Trace(Path(trace)))})
    executor.serve(stop)
    executor.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
