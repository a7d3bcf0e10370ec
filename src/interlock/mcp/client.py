"""A small MCP client that starts a server over stdio, for the demo and the tests."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.mcp.protocol import HANDSHAKE_VERSIONS


class ServerGone(Exception):
    """The server ended before it answered."""


class StdioClient:
    def __init__(self, home: Path, *, workspace: Path | None = None) -> None:
        self.server = subprocess.Popen(
            [sys.executable, "-m", "interlock", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=workspace,
            env={**os.environ, "INTERLOCK_HOME": str(home)},
        )
        self._last_id = 0

    def initialize(self) -> dict[str, Any]:
        params = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": {},
            "clientInfo": {"name": "interlock-client", "version": "1"},
        }
        result = self.request("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Send a request and return its result; a protocol error fails an assertion."""
        self.post(method, params)
        while "id" not in (reply := msgspec.json.decode(self.read_line())):
            continue  # a notification
        assert "result" in reply, f"{method}: {reply['error']}"
        return reply["result"]

    def post(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Send a request without waiting for the reply."""
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}})

    def send(self, message: object) -> None:
        self.send_line(msgspec.json.encode(message))

    def send_line(self, line: bytes) -> None:
        assert self.server.stdin is not None, "stdin is a pipe"
        self.server.stdin.write(line + b"\n")
        self.server.stdin.flush()

    def read_line(self) -> bytes:
        assert self.server.stdout is not None, "stdout is a pipe"
        line = self.server.stdout.readline()
        if not line.endswith(b"\n"):
            raise ServerGone(f"the server ended with code {self.server.wait()}")
        return line

    def kill(self) -> None:
        """Kill the server with SIGKILL and wait until it is gone."""
        self.server.kill()
        self._reap()

    def close(self) -> int:
        """Close the server's stdin, as clients do, and return its exit code."""
        assert self.server.stdin is not None, "stdin is a pipe"
        self.server.stdin.close()
        return self._reap()

    def _reap(self) -> int:
        code = self.server.wait(timeout=10)
        for pipe in (self.server.stdin, self.server.stdout):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # the last bytes did not reach it
        return code
