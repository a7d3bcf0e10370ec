"""Where the server touches the store: threads with an `App` of their own, never the event loop."""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from interlock.app.context import App

GROUP_COMMIT_MAX = 32  # so many are written with one sync; other processes wait as long

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
    """One thread that does one thing after the other."""

    def __init__(self, name: str, open_app: Callable[[], App]) -> None:
        """Raises `StoreFailure` where there is nothing to work with."""
        self._jobs: queue.SimpleQueue[_Job | _StopSignal] = queue.SimpleQueue()
        self._open_app = open_app
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=[opened], name=name, daemon=True)
        self._thread.start()
        opened.result()

    async def run(self, work: Callable[[App], T]) -> T:
        return await self._submit(work, is_grouped=False)

    async def run_grouped(self, work: Callable[[App], T]) -> T:
        """Like `run`, but what waits at the same time is written with one sync.

        `work` must do nothing but read and append: it is not told whether the end succeeded.
        """
        return await self._submit(work, is_grouped=True)

    def stop(self, *, seconds: float | None = None) -> None:
        """Finish what was handed in, then end; what takes longer than this is not waited for."""
        self._jobs.put(_StopSignal())
        self._thread.join(seconds)

    async def _submit(self, work: Callable[[App], Any], *, is_grouped: bool) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(_Job(work, is_grouped, loop, done))
        return await done

    def _run(self, opened: Future[None]) -> None:
        try:
            app = self._open_app()
        except BaseException as error:  # noqa: BLE001 (it is raised again where the server starts)
            opened.set_exception(error)
            return
        opened.set_result(None)
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
        """The next one; what has come meanwhile waits behind it."""
        if not waiting:
            waiting.append(self._jobs.get())
        while not self._jobs.empty():
            waiting.append(self._jobs.get())
        return waiting.popleft()


def _gather_group(first: _Job, waiting: deque[_Job | _StopSignal]) -> list[_Job]:
    """The first one, and those behind it that can be written with it."""
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
    except BaseException as error:  # noqa: BLE001 (all of them failed, and all of them are told)
        return [_Outcome(job, error=error) for job in jobs]
    return outcomes


def _run_job(app: App, job: _Job) -> _Outcome:
    try:
        return _Outcome(job, job.work(app))
    except StopIteration as error:  # which a future does not take: whoever asked would wait
        return _Outcome(job, error=RuntimeError(f"Nothing was left: {error!r}"))
    except BaseException as error:  # noqa: BLE001 (it is raised again where it was asked for)
        return _Outcome(job, error=error)


def _report_outcomes(outcomes: list[_Outcome]) -> None:
    # All at once: the loop is woken once for them, and there is one loop for all.
    with contextlib.suppress(RuntimeError):  # the server has ended: there is nobody to tell
        outcomes[0].job.loop.call_soon_threadsafe(_resolve_futures, outcomes)


def _resolve_futures(outcomes: list[_Outcome]) -> None:
    for job, value, error in outcomes:
        if job.future.cancelled():
            continue  # the client is gone; what it asked for is recorded all the same
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(value)
