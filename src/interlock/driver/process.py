"""The process of the driver: hold the lease, look at the board, and work on what is next.

It checks in with the server twice a second. The answer is the lease, and the board: every session
of this machine whose work is not over, with what the user wants of it. Work that was begun goes
on first, then what is queued, in the order in which it was asked for, as far as there is room. If
the server is away, what goes on waits for it; if the lease is lost, everything is ended at once,
because another driver has taken over.
"""

import asyncio
import logging
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from interlock import __version__
from interlock.app.clock import SystemClock
from interlock.app.failures import LeaseLost, StoreFailure
from interlock.app.unattended.driver_desk import LEASE_MS, DriverBoard, WorkSheet
from interlock.app.unattended.driver_files import DriverJournal, claim_file
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.status import RunningDriver, announce_driver
from interlock.core.ids import SessionId
from interlock.driver.model_shelf import ModelShelf
from interlock.driver.server_client import CallRefused, ServerAway, ServerClient
from interlock.driver.session_context import DriverResources, SessionContext
from interlock.driver.session_work import run_session
from interlock.driver.workplaces import choose_level

TICK_SECONDS = 0.4
STORAGE_RETRY_SECONDS = 10.0
DRAIN_SECONDS = 5.0
"""The time that a tool gets to end when the driver is shut down."""
SET_ASIDE_SECONDS, CHECK_OUT_SECONDS = 2.5, 1.0
END_SECONDS_MAX, HURRY_SECONDS_MAX = 9.0, 1.0
"""How long a shutdown takes at most, whatever hangs: asked for once, and asked for twice."""
EXIT_DONE, EXIT_LOST = 0, 5
_LOG = logging.getLogger(__name__)


class Driver:
    def __init__(self, home: Path) -> None:
        """Raises `SettingsBroken` or `StoreFailure` if the data home cannot be used."""
        self._home = home
        self._settings = driver_settings(home)
        self._holder = f"{os.uname().nodename}:{os.getpid()}:{os.urandom(4).hex()}"
        self._client = ServerClient(home, lambda why: _LOG.warning("The server is away: %s", why))
        self._claim = claim_file(home)
        self._resources: DriverResources | None = None
        self._tasks: dict[SessionId, asyncio.Task[object]] = {}
        self._tried_at: dict[SessionId, float] = {}
        self._confirmed_at = 0.0
        self._lease_confirmed = asyncio.Event()
        self._stop = asyncio.Event()
        self._was_lost = False

    async def run(self) -> int:
        """Work until a signal, or until another driver has the lease; the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._shut_down)
        watch = asyncio.create_task(self._watch())
        watch.add_done_callback(lambda _: self._stop.set())
        await self._stop.wait()
        watch.cancel()
        await self._end()
        with suppress(asyncio.CancelledError):
            await watch  # a bug there is a bug of the whole process
        return EXIT_LOST if self._was_lost else EXIT_DONE

    async def _watch(self) -> None:
        """Check in again and again, until another driver has the lease."""
        while True:
            try:
                await self._tick()
            except LeaseLost as lost:
                _LOG.error("Another driver has taken over: %s", lost)
                self._was_lost = True
                return
            except StoreFailure as failure:
                _LOG.warning("The journal cannot be used: %s", failure)
            await asyncio.sleep(TICK_SECONDS)

    async def _confirm_lease(self) -> None:
        """Wait until the lease is known to be ours: this process may have been stopped for long."""
        if time.monotonic() - self._confirmed_at > LEASE_MS / 1_000:
            self._lease_confirmed.clear()
            await self._lease_confirmed.wait()

    async def _tick(self) -> None:
        try:
            is_alone = self._claim.try_acquire()
            board = await self._client.check_in(self._holder, is_alone=is_alone)
        except ServerAway as away:
            _LOG.info("waiting for the server: %s", away)
            return
        except CallRefused as refused:
            _LOG.warning("The server refuses: %s", refused)
            return
        if board.lease.holder != self._holder:
            if self._resources is not None:
                raise LeaseLost(f"{board.lease.holder} has it, since epoch {board.lease.epoch}")
            _LOG.info("standing by: %s works for this machine", board.lease.holder)
            return
        known = self._client.lease
        if known is not None and known.epoch != board.lease.epoch:
            raise LeaseLost(f"it was another's since epoch {known.epoch}")
        self._client.lease = board.lease
        self._confirmed_at = time.monotonic()
        self._lease_confirmed.set()
        if self._resources is None:
            self._begin(board)
        self._follow_wishes(board)
        self._start_work(board)

    def _begin(self, board: DriverBoard) -> None:
        """This process is the driver now."""
        clock = SystemClock()
        self._resources = DriverResources(
            self._home,
            self._settings,
            self._client,
            DriverJournal(self._home, epoch=board.lease.epoch),
            ModelShelf(self._settings),
            clock,
            {},
            self._confirm_lease,
            asyncio.Lock(),
            self._stop,
        )
        level = choose_level(self._settings.sandbox, is_read_only=False)
        announce_driver(
            self._home,
            RunningDriver(
                os.getpid(),
                self._holder,
                __version__,
                clock.now_ms(),
                level,
                self._settings.max_sessions,
            ),
        )
        _LOG.info("the driver of this machine, epoch %d, sandbox %s", board.lease.epoch, level)

    def _follow_wishes(self, board: DriverBoard) -> None:
        assert self._resources is not None, "it has begun"
        sheets = {sheet.session: sheet for sheet in board.work}
        for session, context in list(self._resources.contexts.items()):
            sheet = sheets.get(session)
            if sheet is None:
                continue  # it has just ended
            context.sheet = sheet
            if sheet.state.wish in ("cancel", "pause_now") and session in self._tasks:
                self._tasks[session].cancel()

    def _start_work(self, board: DriverBoard) -> None:
        assert self._resources is not None, "it has begun"
        room = self._settings.max_sessions - len(self._tasks)
        for sheet in self._due(board):
            if room <= 0:
                return
            room -= 1
            self._tried_at[sheet.session] = time.monotonic()
            context = SessionContext(self._resources, sheet)
            task = asyncio.create_task(self._work_on(context), name=sheet.session)
            self._tasks[sheet.session] = task

    def _due(self, board: DriverBoard) -> list[WorkSheet]:
        """The work that can begin: what was begun already comes first, then the oldest."""
        due = [
            sheet
            for sheet in board.work
            if sheet.session not in self._tasks
            and sheet.state.order.parent is None
            and self._can_begin(sheet)
        ]
        return sorted(due, key=lambda sheet: sheet.state.status != "working")

    def _can_begin(self, sheet: WorkSheet) -> bool:
        state = sheet.state
        if state.status in ("queued", "working"):
            return True
        if state.reason == "storage":  # it needs nobody, only room
            last = self._tried_at.get(sheet.session, 0.0)
            return time.monotonic() - last > STORAGE_RETRY_SECONDS
        return sheet.is_answered

    async def _work_on(self, context: SessionContext) -> None:
        try:
            await run_session(context)
        except LeaseLost:
            self._was_lost = True
            self._stop.set()
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 (one session must not stop all the others)
            _LOG.exception("%s: this is a bug in Interlock", context.session)
            await self._give_up(context)
        finally:
            self._tasks.pop(context.session, None)

    async def _give_up(self, context: SessionContext) -> None:
        """Park what failed by a bug of ours: tried again and again, it would cost money."""
        detail = "a bug in Interlock stopped it; the log of the driver says more"
        try:
            await context.report("parked", reason="failed", detail=detail)
        except (LeaseLost, CallRefused, StoreFailure):
            return

    def _shut_down(self) -> None:
        """Asked once, let tools end; asked twice, do not wait."""
        is_hurried = self._stop.is_set()
        if is_hurried:
            for task in self._tasks.values():
                task.cancel()
        seconds_max = HURRY_SECONDS_MAX if is_hurried else END_SECONDS_MAX
        asyncio.get_running_loop().call_later(seconds_max, _leave)
        self._stop.set()

    async def _end(self) -> None:
        tasks = list(self._tasks.values())
        if tasks and not self._was_lost:
            await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=SET_ASIDE_SECONDS)
        if self._resources is not None:
            await self._resources.shelf.close()
            self._resources.journal.close()
            announce_driver(self._home, None)
        if not self._was_lost:
            try:
                await asyncio.wait_for(self._client.check_out(self._holder), CHECK_OUT_SECONDS)
            except (ServerAway, CallRefused, TimeoutError):
                return


def _leave() -> None:
    """End now. All that counts is written, and tools end with the process, as after a kill."""
    os._exit(EXIT_DONE)


def serve_driver(home: Path) -> int:
    """Be the driver of this machine until a signal; the exit code.

    Raises:
        SettingsBroken: the user's config cannot be used.
    """
    return asyncio.run(_serve(home))


async def _serve(home: Path) -> int:
    return await Driver(home).run()
