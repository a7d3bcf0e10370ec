"""A listener at `/live`, like an open page."""

import socket
import time
from types import TracebackType
from typing import NamedTuple, Self

from tests.server.http_agent import SECONDS_MAX, Up


class Told(NamedTuple):
    position: int
    """The id of the event."""


class Ended(Exception):
    """The server closed the stream."""


class Listener:
    """Connected, and known to the server, when it is made."""

    def __init__(self, up: Up, query: str = "", *, last_event_id: str = "") -> None:
        self._socket = socket.create_connection(("127.0.0.1", up.port), timeout=SECONDS_MAX)
        head = [
            f"GET /live{query} HTTP/1.1",
            f"Host: 127.0.0.1:{up.port}",
            f"Authorization: Bearer {up.bearer}",
            *([f"Last-Event-ID: {last_event_id}"] if last_event_id else []),
        ]
        self._socket.sendall("\r\n".join([*head, "", ""]).encode())
        self._read = b""
        while b": here\n\n" not in self._read:
            self._receive()
        assert self._read.startswith(b"HTTP/1.1 200")
        self._read = self._read.partition(b": here\n\n")[2]

    def wait(self, seconds: float = SECONDS_MAX) -> Told | None:
        """The next event, or nothing where none comes for so long."""
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

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self) -> list[Told]:
        """What has come and was not taken yet. The socket has something to read."""
        self._receive()
        return list(iter(self._next, None))

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self) -> None:
        received = self._socket.recv(65_536)
        self._read += received
        if not received or self._read.endswith(b"\r\n0\r\n\r\n"):  # the last chunk
            raise Ended

    def _next(self) -> Told | None:
        before, found, after = self._read.partition(b"event: changed\nid: ")
        if not found or b"\n\n" not in after:
            return None
        kinds = {line for line in before.split(b"\n") if line.startswith(b"event")}
        assert kinds <= {b"event: waiting"}, "there is no other event"
        number, _, rest = after.partition(b"\n")
        self._read = rest.partition(b"\n\n")[2]
        return Told(int(number))
