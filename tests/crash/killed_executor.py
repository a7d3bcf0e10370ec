"""An executor that is killed at one point of one job: `python -m tests.crash.killed_executor`.

Without a point it runs all jobs to their end.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.unattended import delivery
from interlock.durable.catalogue import JOBS
from interlock.durable.delivery import DELIVER
from interlock.durable.executor import Executor
from interlock.durable.job import Job, JobContext, JobStep, StepResult

SECONDS = 90.0


class KillPoint(msgspec.Struct, frozen=True):
    job: str
    step: str
    moment: str
    """`before` its effect, or `after` it, when the job does not know of it yet; `unrecorded` after
    the effect of a delivery, when the log does not know of it either.
    """

    def __str__(self) -> str:
        return f"{self.job}/{self.step}/{self.moment}"


def kill_points() -> list[KillPoint]:
    """Every point at which a process can die between two effects."""
    return [
        KillPoint(job.name, step.name, moment)
        for job in JOBS.values()
        for step in job.steps
        for moment in ("before", "after")
    ] + [KillPoint(DELIVER.name, step, "unrecorded") for step in ("push", "request", "comment")]


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _with_death(job: Job, point: KillPoint) -> Job:
    if job.name != point.job:
        return job
    steps = tuple(
        msgspec.structs.replace(step, work=_deadly(step, point))
        if step.name == point.step
        else step
        for step in job.steps
    )
    return msgspec.structs.replace(job, steps=steps)


def _deadly(step: JobStep, point: KillPoint) -> Callable[[App, JobContext], StepResult]:
    def work(app: App, context: JobContext) -> StepResult:
        if point.moment == "before":
            _die()
        if point.moment == "unrecorded":
            delivery.record_parts = _die
        result = step.work(app, context)
        _die()
        return result

    return work


def run(home: Path, point: KillPoint | None) -> None:
    jobs = {name: _with_death(job, point) if point else job for name, job in JOBS.items()}
    executor = Executor(home, jobs)
    executor.run_pending(seconds=SECONDS)
    executor.close()


if __name__ == "__main__":
    run(Path(sys.argv[1]), KillPoint(*sys.argv[2:]) if sys.argv[2:] else None)
