"""The server in a thread of the tests' own process, for tests whose subject is not its process.

It answers over a real socket, as `Server` does, and starts in milliseconds. It has neither a driver
nor jobs nor triggers, and its HOME and directory are those of the test. Whoever changes its store
with Python's `sqlite3` needs a `Server`: two SQLite libraries in a process do not see each other's
locks.
"""

import asyncio
import logging
import os
import socket
import threading

import uvicorn

from interlock.app.admin.access import load_secret, publish_agent_bearer
from interlock.app.clock import SystemClock
from interlock.app.context import open_app
from interlock.server.serve import HOST_NAMES, KEEP_ALIVE_SECONDS, TimedHttp
from interlock.server.site import Site, build_site
from tests.server.http_agent import Up
from tests.server.process import Process

START_SECONDS = 30


class SiteServer(Process, Up):
    """`with SiteServer(home) as server:`, as `Server`. The port stays the same over restarts."""

    _thread: threading.Thread | None = None
    _uvicorn: uvicorn.Server
    _site: Site
    _log: logging.FileHandler

    def start(self) -> None:
        open_app(self.home).close()
        self._log = logging.FileHandler(self.home.parent / "server.err")
        self._log.setLevel(logging.WARNING)
        logging.getLogger().addHandler(self._log)
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        secret = load_secret(self.home)
        publish_agent_bearer(self.home, secret)
        self._site = build_site(
            self.home,
            names=HOST_NAMES,
            port=self.port,
            secret=secret,
            clock=SystemClock(),
            entropy=os.urandom,
        )
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                self._site.asgi_app,
                http=TimedHttp,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                ws="none",
            )
        )
        listening.listen(100)  # whoever asks before the loop runs waits for it
        self._thread = threading.Thread(target=self._run, args=(listening,), daemon=True)
        self._thread.start()

    def _run(self, listening: socket.socket) -> None:
        asyncio.run(self._uvicorn.serve(sockets=[listening]))

    def stop(self, number: int = 0) -> int:  # noqa: ARG002
        """End it as a signal does, whatever its number."""
        assert self._thread is not None, "it runs"
        for client in self._clients:
            client.hang_up()
        for stream in self._site.streams:
            stream.end()
        self._uvicorn.should_exit = True
        self._thread.join(START_SECONDS)
        assert not self._thread.is_alive(), "it did not end"
        self._thread = None
        logging.getLogger().removeHandler(self._log)
        self._log.close()
        return 0

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self.stop()
