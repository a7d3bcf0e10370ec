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

TOGETHER_MAX = 32  # so many are written with one sync; other processes wait as long

T = TypeVar("T")


class _Job(NamedTuple):
    work: Callable[[App], Any]
    is_together: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]


class _Outcome(NamedTuple):
    job: _Job
    value: Any = None
    error: BaseException | None = None


class _Stop:
    pass


class Worker:
    """One thread that does one thing after the other."""

    def __init__(self, name: str, open_app: Callable[[], App]) -> None:
        """Raises `StoreFailure` where there is nothing to work with."""
        self._jobs: queue.SimpleQueue[_Job | _Stop] = queue.SimpleQueue()
        self._open_app = open_app
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=[opened], name=name, daemon=True)
        self._thread.start()
        opened.result()

    async def run(self, work: Callable[[App], T]) -> T:
        return await self._hand(work, is_together=False)

    async def run_together(self, work: Callable[[App], T]) -> T:
        """Like `run`, but what waits at the same time is written with one sync.

        `work` must do nothing but read and append: it is not told whether the end succeeded.
        """
        return await self._hand(work, is_together=True)

    def stop(self, *, seconds: float | None = None) -> None:
        """Finish what was handed in, then end; what takes longer than this is not waited for."""
        self._jobs.put(_Stop())
        self._thread.join(seconds)

    async def _hand(self, work: Callable[[App], Any], *, is_together: bool) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(_Job(work, is_together, loop, done))
        return await done

    def _run(self, opened: Future[None]) -> None:
        try:
            app = self._open_app()
        except BaseException as error:  # noqa: BLE001 (it is raised again where the server starts)
            opened.set_exception(error)
            return
        opened.set_result(None)
        waiting: deque[_Job | _Stop] = deque()
        try:
            while isinstance(first := self._first(waiting), _Job):
                _tell(
                    _together(app, _gathered(first, waiting))
                    if first.is_together
                    else [_tried(app, first)]
                )
        finally:
            app.close()

    def _first(self, waiting: deque[_Job | _Stop]) -> _Job | _Stop:
        """The next one; what has come meanwhile waits behind it."""
        if not waiting:
            waiting.append(self._jobs.get())
        while not self._jobs.empty():
            waiting.append(self._jobs.get())
        return waiting.popleft()


def _gathered(first: _Job, waiting: deque[_Job | _Stop]) -> list[_Job]:
    """The first one, and those behind it that can be written with it."""
    jobs = [first]
    while waiting and len(jobs) < TOGETHER_MAX:
        job = waiting[0]
        if not (isinstance(job, _Job) and job.is_together):
            break
        jobs.append(job)
        waiting.popleft()
    return jobs


def _together(app: App, jobs: list[_Job]) -> list[_Outcome]:
    try:
        with app.log.group_commit():
            outcomes = [_tried(app, job) for job in jobs]
    except BaseException as error:  # noqa: BLE001 (all of them failed, and all of them are told)
        return [_Outcome(job, error=error) for job in jobs]
    return outcomes


def _tried(app: App, job: _Job) -> _Outcome:
    try:
        return _Outcome(job, job.work(app))
    except StopIteration as error:  # which a future does not take: whoever asked would wait
        return _Outcome(job, error=RuntimeError(f"Nothing was left: {error!r}"))
    except BaseException as error:  # noqa: BLE001 (it is raised again where it was asked for)
        return _Outcome(job, error=error)


def _tell(outcomes: list[_Outcome]) -> None:
    # All at once: the loop is woken once for them, and there is one loop for all.
    with contextlib.suppress(RuntimeError):  # the server has ended: there is nobody to tell
        outcomes[0].job.loop.call_soon_threadsafe(_settle, outcomes)


def _settle(outcomes: list[_Outcome]) -> None:
    for job, value, error in outcomes:
        if job.done.cancelled():
            continue  # the client is gone; what it asked for is recorded all the same
        if error is not None:
            job.done.set_exception(error)
        else:
            job.done.set_result(value)
