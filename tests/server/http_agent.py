"""An agent that calls a server over HTTP."""

import http.client
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from interlock.mcp.protocol import HANDSHAKE_VERSIONS
from tests.scenes import linear
from tests.server.server_process import Answer, Server

SECONDS_MAX = 30
STEPS = 40


def project_in(directory: Path) -> Path:
    """With the workflows `line` and `short`."""
    workflows = directory / "project" / ".interlock" / "workflows"
    workflows.mkdir(parents=True)
    for workflow in (linear(STEPS), linear(2, "short")):
        (workflows / f"{workflow.id}.json").write_bytes(msgspec.json.encode(workflow))
    return directory / "project"


class HttpClient:
    """One connection that is kept. A new one is made where that was closed."""

    def __init__(self, server: Server, **headers: str) -> None:
        self._server, self._headers = server, headers
        self._connection: http.client.HTTPConnection | None = None
        self._last_id = 0

    def initialize(self) -> dict[str, Any]:
        """Handshake, and go on as the client that the server took us for."""
        asked = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": {},
            "clientInfo": {"name": "interlock-test", "version": "1"},
        }
        answer = self.post(self._message("initialize", asked))
        self._headers |= {
            "mcp-session-id": answer.headers["mcp-session-id"],
            "mcp-protocol-version": HANDSHAKE_VERSIONS[-1],
        }
        told = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (told.status, told.body) == (202, b"")
        return answer.json["result"]

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        answer = self.post(self._message(method, params))
        assert answer.status == 200, answer
        assert "result" in answer.json, answer.json
        return answer.json["result"]

    def post(self, message: object, **headers: str) -> Answer:
        """Send a message; a call that begins something names the project, as a client must."""
        if isinstance(message, dict):
            self._name_project(cast("dict[str, Any]", message))
        return self.ask("POST", msgspec.json.encode(message), **headers)

    def _name_project(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        if isinstance(params, dict) and params.get("name") == "start_workflow":  # pyright: ignore[reportUnknownMemberType]
            arguments = cast("dict[str, Any]", params)["arguments"]
            arguments.setdefault("workspacePath", str(self._server.workspace or Path.cwd()))

    def ask(self, verb: str, body: bytes | None = None, **headers: str) -> Answer:
        self.send(verb, body, **headers)
        return self.answer()

    def send(self, verb: str, body: bytes | None = None, **headers: str) -> None:
        """Send a request to the endpoint, and do not wait for what comes of it."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                "127.0.0.1", self._server.port, timeout=SECONDS_MAX
            )
        sent = {
            "authorization": f"Bearer {self._server.bearer}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(verb, "/mcp", body, sent | self._headers | named)

    def answer(self) -> Answer:
        """Raises `OSError` or `HTTPException` where the server is gone."""
        assert self._connection is not None, "something was sent"
        response = self._connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, named, response.read())

    def hang_up(self) -> None:
        """Without waiting for anything."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _message(self, method: str, params: Mapping[str, object] | None) -> dict[str, Any]:
        self._last_id += 1
        return {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params or {}}


class Up(Server):
    """A server with agents, who hang up when it ends."""

    def __init__(self, home: Path, *, workspace: Path | None = None) -> None:
        super().__init__(home, workspace=workspace)
        self._clients: list[HttpClient] = []

    def client(self, **headers: str) -> HttpClient:
        self._clients.append(HttpClient(self, **headers))
        return self._clients[-1]

    def stop(self, number: int = signal.SIGTERM) -> int:
        code = super().stop(number)
        for client in self._clients:
            client.hang_up()
        return code
