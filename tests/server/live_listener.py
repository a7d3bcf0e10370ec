"""A listener at `/live`, like an open page."""

import socket
import time
from typing import Self

from tests.server.http_agent import SECONDS_MAX
from tests.server.server_process import Server


class Ended(Exception):
    """The server closed the stream."""


class Listener:
    """Connected, and known to the server, when it is made."""

    def __init__(
        self, server: Server, query: str = "", *, path: str = "/live", last_event_id: str = ""
    ) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX)
        head = [
            f"GET {path}{query} HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            f"Authorization: Bearer {server.bearer}",
            *([f"Last-Event-ID: {last_event_id}"] if last_event_id else []),
        ]
        self._socket.sendall("\r\n".join([*head, "", ""]).encode())
        self._read = b""
        while b": here\n\n" not in self._read:
            self._receive()
        assert self._read.startswith(b"HTTP/1.1 200")
        self._read = self._read.partition(b": here\n\n")[2]

    def wait(self, seconds: float = SECONDS_MAX) -> str | None:
        """Return the id of the next event: the state that it tells of. None: none comes in time."""
        until = time.monotonic() + seconds
        while (told := self._next()) is None:
            left = until - time.monotonic()
            if left <= 0:
                return None
            self._socket.settimeout(left)
            try:
                self._receive()
            except TimeoutError:
                return None
        return told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _receive(self) -> None:
        received = self._socket.recv(65_536)
        self._read += received
        if not received or self._read.endswith(b"\r\n0\r\n\r\n"):  # the last chunk
            raise Ended

    def _next(self) -> str | None:
        before, found, after = self._read.partition(b"event: changed\nid: ")
        if not found or b"\n\n" not in after:
            return None
        kinds = {line for line in before.split(b"\n") if line.startswith(b"event")}
        assert kinds <= {b"event: waiting"}, "there is no other event"
        state, _, rest = after.partition(b"\n")
        self._read = rest.partition(b"\n\n")[2]
        return state.decode()
