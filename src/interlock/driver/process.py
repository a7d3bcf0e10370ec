"""The driver process: hold the lease, read the queue, and run the next sessions.

The driver checks in with the server twice a second. The response is the lease and the queue: every
unfinished session of this machine, with what the user wants of it. Work in progress continues
first, then queued work starts in the order in which it was requested, as far as there is room.

A thread of its own checks in, because the event loop may stall for longer than the lease lasts. A
lease that lapsed all the same (the process was stopped, the server was down) is renewed under its
old epoch if no other driver has acquired it. Until then no new action starts. If another driver has
acquired it, this one ends everything and exits.
"""

import asyncio
import logging
import os
import signal
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from interlock import __version__
from interlock.agents.models.providers import import_library
from interlock.app.clock import SystemClock
from interlock.app.failures import LeaseLost, SettingsBroken, StoreFailure
from interlock.app.unattended.driver_desk import DriverBoard, WorkSheet
from interlock.app.unattended.driver_files import DriverJournal, claim_file
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.status import RunningDriver, announce_driver
from interlock.core.ids import SessionId
from interlock.driver.model_shelf import ModelShelf
from interlock.driver.server_client import CallRefused, ServerAway, ServerClient
from interlock.driver.session_context import DriverResources, SessionContext
from interlock.driver.session_work import run_session
from interlock.driver.tools.tool import choose_level

TICK_SECONDS = 0.4
STALL_TICKS_MAX = 300
"""Check-ins, about two minutes, without a response of the event loop: then the process exits.

A loop that hangs for good must not hold the lease, and its tools must not run beside those of the
next driver. Not seconds: the time for which the whole process was stopped does not count.
"""
STORAGE_RETRY_SECONDS = 10.0
DRAIN_SECONDS = 5.0
"""The time that a tool gets to end when the driver is shut down."""
SET_ASIDE_SECONDS, CHECK_OUT_SECONDS = 2.5, 1.0
END_SECONDS_MAX, HURRY_SECONDS_MAX = 9.0, 1.0
"""How long a shutdown takes at most, whatever hangs: asked for once, and asked for twice."""
EXIT_DONE, EXIT_LOST, EXIT_STALLED = 0, 5, 6
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
        self._ended_at: dict[SessionId, float] = {}
        self._confirmed_at = self._lease_until = 0.0
        self._lease_confirmed = asyncio.Event()
        self._stop = asyncio.Event()
        self._is_over = threading.Event()
        """Set when all work has ended, and the lease is needed no longer."""
        self._was_lost = False
        self._last_logged = ""

    async def run(self) -> int:
        """Work until a signal, or until another driver has the lease; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._shut_down)
        lease_thread = asyncio.create_task(asyncio.to_thread(self._keep_lease, loop))
        lease_thread.add_done_callback(lambda _: self._stop.set())
        await self._stop.wait()
        await self._end(lease_thread)
        if not lease_thread.done():  # asyncio would wait for the import or the server
            _leave()
        lease_thread.result()  # a bug there is a bug of the whole process
        return EXIT_LOST if self._was_lost else EXIT_DONE

    def _keep_lease(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check in until all work is over, and have the event loop follow each board.

        Runs in a thread. Imports the provider's library first: that takes seconds, 20 on a slow
        machine, and stalls nothing while the driver does not hold the lease.
        """
        try:
            import_library(self._settings.model if self._settings.runner == "model" else "")
        except Exception as error:  # noqa: BLE001 (the work that needs it reports it)
            _LOG.warning("The library for %s was not imported: %s", self._settings.model, error)
        following: Future[None] | None = None
        stalled_ticks = 0
        while not self._is_over.is_set():
            try:
                board = self._check_in()
            except LeaseLost as lost:
                self._lose(lost)
                return
            if following and not following.done():
                stalled_ticks += 1
                if stalled_ticks > STALL_TICKS_MAX:
                    _LOG.critical("The event loop hangs. The driver exits; the next one continues")
                    os._exit(EXIT_STALLED)
            else:
                stalled_ticks = 0
                if following:
                    following.result()
                following = board and asyncio.run_coroutine_threadsafe(
                    self._follow(board, asked_at=self._confirmed_at), loop
                )
            self._is_over.wait(TICK_SECONDS)
        if self._client.lease and not self._was_lost:
            with suppress(ServerAway, CallRefused):
                self._client.check_out(self._holder)

    def _check_in(self) -> DriverBoard | None:
        """Acquire or renew the lease; return the board if the lease is ours.

        Raises:
            LeaseLost: another driver has acquired the lease since it was ours.
        """
        # A driver that acquired the lease after us is alive, although we still hold the lock.
        is_alone = self._claim.try_acquire() and self._client.lease is None
        sent_at = time.monotonic()
        try:
            board = self._client.check_in(self._holder, is_alone=is_alone)
        except ServerAway as away:
            self._log_once(f"waiting for the server: {away}")
            return None
        except CallRefused as refused:
            _LOG.warning("The server refuses: %s", refused)
            return None
        lease, known = board.lease, self._client.lease
        self._last_logged = "" if lease.holder == self._holder else self._last_logged
        if lease.holder != self._holder:
            if known is not None:
                raise LeaseLost(f"{lease.holder} has the lease, epoch {lease.epoch}")
            self._log_once(f"standing by: {lease.holder} works for this machine")
            return None
        if known is not None and known.epoch != lease.epoch:
            raise LeaseLost(f"it had the lease after epoch {known.epoch}")
        if board.has_lapsed:
            _LOG.warning(
                "The driver's lease lapsed (the process stalled or the server was away for %.0f s)."
                " No other driver acquired it: it is renewed, and the work continues",
                sent_at - self._confirmed_at,
            )
        self._client.lease = lease
        self._confirmed_at = sent_at
        # Counted from the request: the server renewed it later, at a time unknown here.
        self._lease_until = sent_at + lease.left_ms / 1_000
        return board

    def _log_once(self, message: str) -> None:
        """Log a state that lasts, when it begins."""
        if message != self._last_logged:
            _LOG.info(message)
        self._last_logged = message

    async def _confirm_lease(self) -> None:
        """Wait until the lease is known to be ours: the process may have been stopped."""
        if time.monotonic() > self._lease_until:
            self._lease_confirmed.clear()
            await self._lease_confirmed.wait()

    def _lose(self, lost: LeaseLost) -> None:
        _LOG.error("Another driver has taken over: %s", lost)
        self._was_lost = True

    async def _follow(self, board: DriverBoard, *, asked_at: float) -> None:
        if time.monotonic() > self._lease_until:
            return  # the process was stopped after the check-in; the next one decides
        self._lease_confirmed.set()
        if self._stop.is_set():
            return
        try:
            if self._resources is None:
                self._begin(board)
            self._follow_wishes(board)
            self._start_work(board, asked_at)
        except LeaseLost as lost:
            self._lose(lost)
            self._stop.set()
        except StoreFailure as failure:
            _LOG.warning("The journal cannot be used: %s", failure)

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

    def _start_work(self, board: DriverBoard, asked_at: float) -> None:
        assert self._resources is not None, "it has begun"
        room = self._max_sessions() - len(self._tasks)
        for sheet in self._due(board, asked_at):
            if room <= 0:
                return
            room -= 1
            self._tried_at[sheet.session] = time.monotonic()
            context = SessionContext(self._resources, sheet)
            task = asyncio.create_task(self._work_on(context), name=sheet.session)
            self._tasks[sheet.session] = task

    def _max_sessions(self) -> int:
        """Return the setting as it is now: it can be changed while the driver runs."""
        try:
            return driver_settings(self._home).max_sessions
        except SettingsBroken:
            return self._settings.max_sessions

    def _due(self, board: DriverBoard, asked_at: float) -> list[WorkSheet]:
        """Return the work that can start: interrupted work first, then the oldest.

        The board is out of date for work that ended after it was requested, so that is left out.
        """
        due = [
            sheet
            for sheet in board.work
            if sheet.session not in self._tasks
            and self._ended_at.get(sheet.session, 0.0) < asked_at
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
        if state.resume_ms:
            return SystemClock().now_ms() >= state.resume_ms
        return sheet.is_answered

    async def _work_on(self, context: SessionContext) -> None:
        try:
            await run_session(context)
        except LeaseLost as lost:
            self._lose(lost)
            self._stop.set()
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 (one session must not stop all the others)
            _LOG.exception("%s: this is a bug in Interlock", context.session)
            await self._give_up(context)
        finally:
            self._tasks.pop(context.session, None)
            self._ended_at[context.session] = time.monotonic()

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

    async def _end(self, lease_thread: "asyncio.Task[None]") -> None:
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
            if not self._was_lost:  # the driver that took over has announced itself
                announce_driver(self._home, None)
        self._is_over.set()
        await asyncio.wait({lease_thread}, timeout=CHECK_OUT_SECONDS)


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
