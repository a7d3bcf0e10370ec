"""Unattended work without a driver: what one would report and write down is done by the test."""

import os
from pathlib import Path

import msgspec

from interlock import __version__
from interlock.app.context import App
from interlock.app.unattended import driver_desk, orders
from interlock.app.unattended.orders import OrderedWork, OrderRequest, order_work
from interlock.app.unattended.status import RunningDriver, announce_driver
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.conversation import Usage
from interlock.core.unattended.journal import Entry
from interlock.core.unattended.order import Spent, UnattendedState
from interlock.store.driver_journal import DriverJournal
from tests.workspace.git.test_state import run

MODEL = "scripted:/nowhere"
HOLDER = "this-machine:1:abc"


def make_repository(path: Path) -> Path:
    run(path.parent, "init", "-q", "-b", "main", str(path))
    (path / "a.txt").write_text("one\n")
    run(path, "add", "-A")
    run(path, "commit", "-q", "-m", "one")
    return path


def order(app: App, repository: Path, goal: str = "Build a shed") -> SessionId:
    request = OrderRequest(WorkflowId("hello"), goal, repository, MODEL)
    ordered = order_work(app, request, place="in a test")
    assert isinstance(ordered, OrderedWork), ordered
    return ordered.session


def report(app: App, session: SessionId, moved: UnattendedMoved) -> UnattendedState:
    state = orders.record_move(app, session, moved)
    assert isinstance(state, UnattendedState), state
    return state


def spend(turns: int, cost_micros: int | None = 10_000) -> Spent:
    return Spent(turns, turns * 30_000, Usage(1_000 * turns, 10 * turns, cost_micros=cost_micros))


def begin_driver(app: App, *, max_sessions: int = 1) -> None:
    """A driver has checked in, and says that it is this process."""
    driver_desk.check_in(app, HOLDER)
    driver = RunningDriver(
        os.getpid(), HOLDER, __version__, app.clock.now_ms(), "workspace", max_sessions
    )
    announce_driver(app.home, driver)


class JournalWriter:
    """The journal of one session, written as a driver does."""

    def __init__(self, app: App, session: SessionId) -> None:
        self._app, self._session, self._seq = app, session, 0

    def write(self, *entries: Entry) -> None:
        journal = DriverJournal(self._app.home, epoch=1)
        for entry in entries:
            journal.append(self._session, self._seq, entry, at_ms=self._app.clock.now_ms())
            self._seq += 1
        journal.close()


def encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
