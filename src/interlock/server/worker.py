"""Threads that use the store for the server, each with its own `App`; the event loop never does.

Jobs run in the order in which they come. Neighbouring jobs that were submitted with `run_grouped`
run in one group commit: none of them is answered before the whole group is committed, and if that
fails, all of them fail.
"""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from interlock.app.context import App

GROUP_COMMIT_MAX = 32  # jobs that are written with one sync; other processes wait for that long

T = TypeVar("T")


class _Job(NamedTuple):
    work: Callable[[App], Any]
    is_grouped: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class _Outcome(NamedTuple):
    job: _Job
    value: Any = None
    error: BaseException | None = None


class _StopSignal:
    pass


class Worker:
    """A thread that does one job after the other."""

    def __init__(self, name: str, open_app: Callable[[], App]) -> None:
        """Raises `StoreFailure` if the store cannot be opened."""
        self._jobs: queue.SimpleQueue[_Job | _StopSignal] = queue.SimpleQueue()
        self._open_app = open_app
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=[ready], name=name, daemon=True)
        self._thread.start()
        ready.result()

    async def run(self, work: Callable[[App], T]) -> T:
        return await self._submit(work, is_grouped=False)

    async def run_grouped(self, work: Callable[[App], T]) -> T:
        """Like `run`, but jobs that wait at the same time are written with one sync.

        `work` must do nothing but read and append: it does not learn whether the commit succeeded.
        """
        return await self._submit(work, is_grouped=True)

    def stop(self, *, seconds: float | None = None) -> None:
        """Finish the submitted jobs, then end; wait no longer than `seconds` for that."""
        self._jobs.put(_StopSignal())
        self._thread.join(seconds)

    async def _submit(self, work: Callable[[App], Any], *, is_grouped: bool) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(_Job(work, is_grouped, loop, future))
        return await future

    def _run(self, ready: Future[None]) -> None:
        try:
            app = self._open_app()
        except BaseException as error:  # noqa: BLE001 (it is raised again where the server starts)
            ready.set_exception(error)
            return
        ready.set_result(None)
        waiting: deque[_Job | _StopSignal] = deque()
        try:
            while isinstance(first := self._next_job(waiting), _Job):
                _report_outcomes(
                    _run_group(app, _gather_group(first, waiting))
                    if first.is_grouped
                    else [_run_job(app, first)]
                )
        finally:
            app.close()

    def _next_job(self, waiting: deque[_Job | _StopSignal]) -> _Job | _StopSignal:
        """The next job; jobs that have come meanwhile are queued behind it."""
        if not waiting:
            waiting.append(self._jobs.get())
        while not self._jobs.empty():
            waiting.append(self._jobs.get())
        return waiting.popleft()


def _gather_group(first: _Job, waiting: deque[_Job | _StopSignal]) -> list[_Job]:
    """The first job, and those right behind it that can be committed with it."""
    jobs = [first]
    while waiting and len(jobs) < GROUP_COMMIT_MAX:
        job = waiting[0]
        if not (isinstance(job, _Job) and job.is_grouped):
            break
        jobs.append(job)
        waiting.popleft()
    return jobs


def _run_group(app: App, jobs: list[_Job]) -> list[_Outcome]:
    try:
        with app.log.group_commit():
            outcomes = [_run_job(app, job) for job in jobs]
    except BaseException as error:  # noqa: BLE001 (all of them failed, and all callers get the error)
        return [_Outcome(job, error=error) for job in jobs]
    return outcomes


def _run_job(app: App, job: _Job) -> _Outcome:
    try:
        return _Outcome(job, job.work(app))
    except StopIteration as error:  # a future does not accept it: the caller would wait for ever
        return _Outcome(job, error=RuntimeError(f"Nothing was left: {error!r}"))
    except BaseException as error:  # noqa: BLE001 (it is raised again in the caller)
        return _Outcome(job, error=error)


def _report_outcomes(outcomes: list[_Outcome]) -> None:
    # All at once, so that the loop is woken only once; all jobs have the same loop.
    with contextlib.suppress(RuntimeError):  # the server has ended: nobody waits any more
        outcomes[0].job.loop.call_soon_threadsafe(_resolve_futures, outcomes)


def _resolve_futures(outcomes: list[_Outcome]) -> None:
    for job, value, error in outcomes:
        if job.future.cancelled():
            continue  # the client is gone; its work is recorded all the same
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(value)
