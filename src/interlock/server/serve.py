"""Run the server until a signal ends it."""

import asyncio
import errno
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import msgspec
import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlock import __version__
from interlock.app.admin.access import load_secret, publish_agent_bearer
from interlock.app.admin.server_process import (
    RunningServer,
    ServerLease,
    StartingServer,
    become_server,
)
from interlock.app.clock import SystemClock
from interlock.app.triggers.watch import TriggerWatch
from interlock.app.unattended.driver_process import DriverSupervisor
from interlock.server.site import Site, build_site

HOST_NAMES = ("127.0.0.1", "localhost", "[::1]")
SHUTDOWN_SECONDS = 3
REQUEST_SECONDS = 30
"""The time for a whole request to arrive, from the first byte of its head to the last of its body.
The largest body takes a second on this machine."""
KEEP_ALIVE_SECONDS = 75
"""The time that an idle connection is kept: longer than clients keep theirs, so that none sends a
call just when the server closes."""


class PortTaken(msgspec.Struct, frozen=True):
    reason: str


def serve(
    home: Path, *, port: int, on_ready: Callable[[RunningServer], None]
) -> RunningServer | StartingServer | PortTaken | None:
    """Serve `home` on this port (0: any that is free) of this machine only, until a signal.

    Raises:
        StoreFailure: the home cannot be used.
    """
    lease = become_server(home)
    if not isinstance(lease, ServerLease):
        return lease
    try:
        try:
            sockets = _listening_sockets(port)
        except OSError as error:
            return PortTaken(error.strerror or str(error))
        uvloop.run(_serve(home, lease, sockets, on_ready))
    finally:
        lease.release()
    return None


async def _serve(
    home: Path,
    lease: ServerLease,
    sockets: list[socket.socket],
    on_ready: Callable[[RunningServer], None],
) -> None:
    port = sockets[0].getsockname()[1]
    clock = SystemClock()
    secret = load_secret(home)
    publish_agent_bearer(home, secret)
    site = build_site(
        home, names=HOST_NAMES, port=port, secret=secret, clock=clock, entropy=os.urandom
    )
    config = uvicorn.Config(
        site.asgi_app,
        http=TimedHttp,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        date_header=True,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ws="none",
    )
    running = RunningServer(os.getpid(), f"http://127.0.0.1:{port}", clock.now_ms(), __version__)

    supervisor = DriverSupervisor(home)
    driver = threading.Thread(target=supervisor.serve, name="driver", daemon=True)
    stop = threading.Event()
    executor = threading.Thread(target=_run_jobs, args=(home, stop), name="executor")
    executor.daemon = True  # a step that takes long does not hold up the end
    watch = TriggerWatch(home, site.book)
    triggers = threading.Thread(target=watch.serve, args=(stop,), name="triggers", daemon=True)

    def announce() -> None:
        lease.announce(running)
        on_ready(running)
        executor.start()
        driver.start()
        triggers.start()

    try:
        await _Server(config, site, announce, supervisor).serve(sockets=sockets)
    finally:
        supervisor.stop()
        stop.set()
        if executor.ident is not None:
            executor.join(SHUTDOWN_SECONDS)


def _run_jobs(home: Path, stop: threading.Event) -> None:
    """Run jobs until the server ends. What that takes is imported now, when the server is ready."""
    from interlock.durable.executor import serve_jobs  # noqa: PLC0415 (700 ms)

    serve_jobs(home, stop)


class TimedHttp(HttpToolsProtocol):
    """A connection that ends if a request does not arrive in time; uvicorn waits without end."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        self._await_request()
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._await_request()  # the one before may have ended in the same packet
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._stop_timer()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Server(uvicorn.Server):
    """A server that ends its driver first, which still has to report, and then its streams."""

    def __init__(
        self,
        config: uvicorn.Config,
        site: Site,
        on_started: Callable[[], None],
        supervisor: DriverSupervisor,
    ) -> None:
        super().__init__(config)
        self._site, self._on_started, self._supervisor = site, on_started, supervisor
        self._is_ending = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._supervisor.has_child and not self._is_ending:
            self._is_ending = True
            threading.Thread(target=self._end_driver, args=(sig, frame), daemon=True).start()
            return
        for stream in self._site.streams:
            stream.end()
        # The signal is not stored, as uvicorn does: raised again, it would end us before cleanup.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    def _end_driver(self, sig: int, frame: FrameType | None) -> None:
        self._supervisor.stop()
        self.handle_exit(sig, frame)


def _listening_sockets(port: int) -> list[socket.socket]:
    """Sockets on this machine's IPv4 and IPv6 loopback addresses, as far as it has them."""
    first = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        first.bind(("127.0.0.1", port))
    except OSError:
        first.close()
        raise
    sockets = [first]
    if socket.has_ipv6:
        second = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        try:
            second.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            second.bind(("::1", first.getsockname()[1]))
            sockets.append(second)
        except OSError as error:
            second.close()
            if port and error.errno == errno.EADDRINUSE:
                # Its holder would get our requests to `localhost`.
                first.close()
                raise
            # Otherwise a machine without IPv6.
    return sockets
