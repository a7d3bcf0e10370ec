"""The threads in which the server touches the store."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from interlock.app.context import App, open_app
from interlock.core.ids import SessionId
from interlock.server.site import open_writer_app
from interlock.server.worker import GROUP_COMMIT_MAX, Worker
from interlock.store.failures import StoreUnusable
from tests.scenes import opening, random_session


@pytest.mark.sqlite
def test_what_cannot_be_opened_is_told_to_who_wanted_it(home: Path) -> None:
    home.mkdir(parents=True)
    (home / "interlock.db").write_bytes(b"not a database at all" * 100)

    with pytest.raises(StoreUnusable):
        Worker("reader", partial(open_app, home))


def test_what_was_handed_in_is_finished_before_it_ends(home: Path) -> None:
    worker = Worker("writer", partial(open_writer_app, home))
    done: list[int] = []

    async def hand_in() -> None:
        for number in range(100):
            task = asyncio.create_task(worker.run(lambda _, n=number: done.append(n)))
            await asyncio.sleep(0)
            task.cancel()  # the client is gone
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(hand_in())
    worker.stop()

    assert done == list(range(100))


class _Batches:
    """Jobs of which all have come before the first is done."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def all_at_once(self, jobs: list[tuple[bool, Callable[[App], object]]]) -> list[object]:
        gate = threading.Event()
        held = asyncio.create_task(self._worker.run(lambda _: gate.wait()))
        await asyncio.sleep(0)
        worker = self._worker
        tasks = [
            asyncio.create_task((worker.run_grouped if is_together else worker.run)(work))
            for is_together, work in jobs
        ]
        await asyncio.sleep(0)
        gate.set()
        await held
        return await asyncio.gather(*tasks, return_exceptions=True)


def test_those_who_wait_are_written_together_up_to_a_bound(home: Path) -> None:
    worker = Worker("writer", partial(open_writer_app, home))
    other = open_app(home)
    visible: list[int] = []

    def begin(app: App) -> SessionId:
        visible.append(other.reader.stats().sessions)
        session = random_session()
        app.log.append(opening(session))
        return session

    jobs: list[tuple[bool, Callable[[App], object]]] = [(True, begin)] * (GROUP_COMMIT_MAX + 5)
    jobs += [(False, begin)]
    jobs += [(True, begin)] * 3
    sessions = asyncio.run(_Batches(worker).all_at_once(jobs))
    worker.stop()

    # What another connection sees grows with every transaction, and within none.
    whole, rest = GROUP_COMMIT_MAX, 5
    assert visible == [0] * whole + [whole] * rest + [whole + 5] + [whole + 6] * 3
    assert len(set(sessions)) == whole + rest + 4
    assert other.reader.stats().sessions == whole + rest + 4
    other.close()


def test_whoever_fails_among_them_is_told_and_nobody_else(home: Path) -> None:
    worker = Worker("writer", partial(open_writer_app, home))

    def begin(app: App) -> object:
        return app.log.append(opening(random_session()))

    def fail(app: App) -> object:
        app.log.append(opening(random_session()))
        raise ZeroDivisionError

    outcomes = asyncio.run(
        _Batches(worker).all_at_once([(True, begin), (True, fail), (True, begin), (False, fail)])
    )
    worker.stop()

    assert outcomes[0] is outcomes[2] is True
    assert isinstance(outcomes[1], ZeroDivisionError)
    assert isinstance(outcomes[3], ZeroDivisionError)
