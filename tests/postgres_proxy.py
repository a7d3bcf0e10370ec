"""A socket in front of PostgreSQL that counts how often a client waits for an answer."""

import contextlib
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

PORT = ".s.PGSQL.5432"


class CountingProxy:
    def __init__(self, url: str) -> None:
        """For the clients of the database at `url`, which is reached by a socket."""
        head, _, directory = url.partition("?host=")
        self._server = f"{directory}/{PORT}"
        # Short: the path of a socket has at most 107 characters.
        self._directory = Path(tempfile.mkdtemp(prefix="proxy-"))
        self.url = f"{head}?host={self._directory}"
        self.round_trips = 0
        self.connections = 0
        """Those that are open."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._directory / PORT))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._listener.close()
        shutil.rmtree(self._directory)

    def take_count(self) -> int:
        """The round trips since the last time."""
        count, self.round_trips = self.round_trips, 0
        return count

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self.connections += 1
                threading.Thread(target=_Link(self, client, server).send, daemon=True).start()


class _Link:
    def __init__(self, proxy: CountingProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._unread = b""
        self._is_begun = False
        threading.Thread(target=self._answer, daemon=True).start()

    def send(self) -> None:
        with contextlib.suppress(OSError), self._client, self._server:
            while content := self._client.recv(65_536):
                self._proxy.round_trips += self._count_ends(content)
                self._server.sendall(content)
        self._proxy.connections -= 1

    def _count_ends(self, content: bytes) -> int:
        """The messages after which a client waits: the first, a Query and a Sync.

        Not the pauses in what is sent: on a busy machine one request is answered in several parts.
        """
        self._unread += content
        ends = 0
        while True:
            head = 1 if self._is_begun else 0  # only the first has no letter for its kind
            if len(self._unread) < head + 4:
                return ends
            size = head + int.from_bytes(self._unread[head : head + 4], "big")
            if len(self._unread) < size:
                return ends
            ends += not self._is_begun or self._unread[:1] in (b"Q", b"S")
            self._is_begun, self._unread = True, self._unread[size:]

    def _answer(self) -> None:
        with contextlib.suppress(OSError):
            while content := self._server.recv(65_536):
                self._client.sendall(content)
            self._client.shutdown(socket.SHUT_RDWR)
