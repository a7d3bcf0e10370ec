"""Ways on which a call reaches a server and its answer comes back, or does not."""

import signal
from pathlib import Path
from typing import Protocol

from interlock.mcp.client import StdioClient
from tests.server.http_agent import Up


class Way(Protocol):
    def send(self, message: bytes) -> None: ...

    def reply(self) -> bytes:
        """To what was sent last."""
        ...

    def lose_the_answer(self) -> None: ...

    def kill_the_server(self) -> None:
        """Kill -9, whatever it is doing, and start another in its place."""
        ...

    def close(self) -> None: ...


class Pipe:
    """A server of its own."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self._home, self._workspace = home, workspace
        self._client = StdioClient(home, workspace=workspace)

    def send(self, message: bytes) -> None:
        self._client.send_line(message)

    def reply(self) -> bytes:
        return self._client.read_line().removesuffix(b"\n")

    def lose_the_answer(self) -> None:
        self.reply()

    def kill_the_server(self) -> None:
        self._client.kill()
        self._client = StdioClient(self._home, workspace=self._workspace)

    def close(self) -> None:
        self._client.kill()


class Connection:
    """One of several to a server that they share."""

    def __init__(self, up: Up) -> None:
        self._up = up
        self._client = up.client()

    def send(self, message: bytes) -> None:
        self._client.send("POST", message)

    def reply(self) -> bytes:
        answer = self._client.answer()
        assert answer.status == 200, answer
        return answer.body

    def lose_the_answer(self) -> None:
        self._client.hang_up()

    def kill_the_server(self) -> None:
        self._up.restart(signal.SIGKILL)

    def close(self) -> None:
        self._client.hang_up()
