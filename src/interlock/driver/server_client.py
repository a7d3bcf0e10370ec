"""The driver's way to the server: MCP over HTTP for what an agent does, REST for the rest.

The server may be restarted at any moment, also on another port, so its address is looked up for
each connection, and nothing is remembered of the last one. A call that brought no answer is made
again, and is the same call: an advance names its attempt, a report its state, a child its call.
"""

import asyncio
import http.client
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from interlock.app.admin.access import load_secret
from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.failures import LeaseLost, StoreFailure
from interlock.app.sessions.session_approvals import RequestStatus
from interlock.app.unattended.driver_briefing import DriverBriefing
from interlock.app.unattended.driver_desk import (
    ChildRequest,
    DriverBoard,
    DriverLease,
    ToolPermission,
    ToolQuestion,
)
from interlock.core.canonical import Json
from interlock.core.ids import SessionId
from interlock.core.session.answer import Answer
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.conversation import ToolSpec
from interlock.core.unattended.order import UnattendedState

CALL_SECONDS = 60.0
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.2, 2.0
_LEASE_LOST_CODE = -32_001
NOTE_TOOLS = ("search_notes", "read_note", "write_note", "edit_note")
CHANGING_NOTE_TOOLS = NOTE_TOOLS[2:]
_NO_ARGUMENTS = ("workspacePath", "requestId")
"""The driver says these: a call is about the project of its session, and names itself."""
T = TypeVar("T")


class ServerAway(Exception):
    """No server answers now."""


class CallRefused(Exception):
    """The server understood the call, and says no."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.code = code


def _spec_without_workspace(tool: dict[str, Any]) -> ToolSpec:
    schema = tool["inputSchema"]
    left = {key: value for key, value in schema["properties"].items() if key not in _NO_ARGUMENTS}
    closed = {**schema, "properties": left, "additionalProperties": False}
    return ToolSpec(tool["name"], tool["description"], _complete_schema(closed))


def _complete_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Say what JSON Schema leaves open and some providers insist on."""
    complete = dict(schema)
    if "enum" in complete:
        complete.setdefault("type", "string")
    if complete.get("type") == "object":
        complete.setdefault("additionalProperties", True)
        properties = complete.get("properties", {})
        complete["properties"] = {key: _complete_schema(one) for key, one in properties.items()}
    return complete


class ServerClient:
    """Calls to the server of a data home, from any task; each waits until there is a server."""

    def __init__(self, home: Path, on_away: Callable[[str], None]) -> None:
        self._home, self._on_away = home, on_away
        self.lease: DriverLease | None = None
        self._idle = threading.local()
        self._last_id = 0
        self._note_specs: tuple[ToolSpec, ...] = ()

    def check_in(self, holder: str, *, is_alone: bool) -> DriverBoard:
        """Acquire or renew the lease. Blocks, and tries once: the next check-in comes soon.

        Raises:
            ServerAway: no server answers.
        """
        body = {"holder": holder, "isAlone": is_alone}
        return self.call_rest("/driver/check-in", body, DriverBoard)

    def check_out(self, holder: str) -> None:
        self.call_rest("/driver/check-in", {"holder": holder, "leaves": True}, object)

    async def report(self, session: SessionId, moved: UnattendedMoved) -> UnattendedState:
        path = f"/driver/sessions/{session}/report"
        return await self._insist(path, {"moved": moved}, UnattendedState)

    async def show_step(self, session: SessionId, worktree: Path) -> Answer:
        path = f"/driver/sessions/{session}/step"
        return await self._insist(path, {"worktree": str(worktree)}, Answer)

    async def brief(self, session: SessionId, worktree: Path) -> DriverBriefing:
        path = f"/driver/sessions/{session}/brief"
        return await self._insist(path, {"worktree": str(worktree)}, DriverBriefing)

    async def permit(self, session: SessionId, question: ToolQuestion) -> ToolPermission:
        path = f"/driver/sessions/{session}/permit"
        return await self._insist(path, {"question": question}, ToolPermission)

    async def approval(self, session: SessionId, approval: str) -> RequestStatus:
        path = f"/driver/sessions/{session}/approval"
        return await self._insist(path, {"approval": approval}, RequestStatus)

    async def spawn(self, session: SessionId, child: ChildRequest) -> SessionId:
        path = f"/driver/sessions/{session}/spawn"
        answer = await self._insist(path, {"child": child}, dict[str, SessionId])
        return answer["session"]

    async def note_specs(self) -> tuple[ToolSpec, ...]:
        """Return the note tools as the server describes them. A driver asks once."""
        if not self._note_specs:
            result = await self._until_answered(lambda: self._request("tools/list", {}))
            listed = {tool["name"]: tool for tool in result["tools"]}
            self._note_specs = tuple(
                _spec_without_workspace(listed[name]) for name in NOTE_TOOLS if name in listed
            )
        return self._note_specs

    async def call_tool(
        self, name: str, arguments: dict[str, Json], session: str = "driver"
    ) -> tuple[Any, str, bool]:
        """Call a tool over MCP: its structure, its text, and whether it is a refusal.

        A tool without a token finds the project by the `session`.
        """
        result = await self._until_answered(lambda: self.call_mcp(name, arguments, session))
        text = "\n".join(part.get("text", "") for part in result.get("content", ()))
        return result.get("structuredContent"), text, bool(result.get("isError"))

    async def _insist(self, path: str, body: dict[str, Any], answer: type[T]) -> T:
        def call() -> T:
            lease = self.lease
            assert lease is not None, "work begins with a lease"
            leased = {**body, "name": lease.name, "epoch": lease.epoch}
            return self.call_rest(path, leased, answer)

        return await self._until_answered(call)

    async def _until_answered(self, call: Callable[[], T]) -> T:
        wait = FIRST_WAIT_SECONDS
        while True:
            try:
                return await asyncio.to_thread(call)
            except ServerAway as away:
                self._on_away(str(away))
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)

    def call_rest(self, path: str, body: Any, answer: type[T]) -> T:
        status, content = self._send(f"/api/v2{path}", body, {})
        if status == http.client.OK:
            return msgspec.json.decode(content, type=answer)
        try:
            refusal = msgspec.json.decode(content, type=dict[str, str])
        except msgspec.MsgspecError:
            refusal = {"code": "refused", "error": f"the server answered {status}"}
        if refusal.get("code") == "lease_lost":
            raise LeaseLost(refusal.get("error", ""))
        if status >= http.client.INTERNAL_SERVER_ERROR:
            raise ServerAway(refusal.get("error", f"the server answered {status}"))
        raise CallRefused(refusal["code"], refusal.get("error", ""), refusal.get("hint", ""))

    def call_mcp(
        self, name: str, arguments: dict[str, Json], session: str = "driver"
    ) -> dict[str, Any]:
        result = self._request("tools/call", {"name": name, "arguments": arguments}, session)
        structure: dict[str, Any] = result.get("structuredContent") or {}
        code = structure.get("code")
        if result.get("isError") and code in ("store_busy", "store_failed"):
            raise ServerAway(f"the store cannot be used: {code}")
        return result

    def _request(
        self, method: str, params: dict[str, Any], session: str = "driver"
    ) -> dict[str, Any]:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        lease = self.lease
        assert lease is not None, "work begins with a lease"
        headers = {"Interlock-Lease": f"{lease.name}:{lease.epoch}", "Mcp-Session-Id": session}
        status, content = self._send("/mcp", message, headers)
        if status != http.client.OK:
            raise ServerAway(f"the server answered {status}")
        reply = msgspec.json.decode(content, type=dict[str, Any])
        if error := reply.get("error"):
            if error.get("code") == _LEASE_LOST_CODE:
                raise LeaseLost(error.get("message", ""))
            raise CallRefused("refused", str(error.get("message")))
        return reply["result"]

    def _send(self, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
        """Send a request over the connection of this thread, or over a new one."""
        server = find_server(self._home)
        if not isinstance(server, RunningServer):
            raise ServerAway("no server runs")
        kept, url = getattr(self._idle, "connection", None), getattr(self._idle, "url", "")
        for connection in (kept if url == server.url else None, None):
            is_new = connection is None
            used = connection or self._connect(server.url)
            try:
                return self._exchange(used, path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                used.close()
                self._idle.connection = None
                if is_new:
                    raise ServerAway(str(error) or type(error).__name__) from error
        raise AssertionError("a new connection answers or fails")

    def _connect(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=CALL_SECONDS
        )
        try:
            connection.connect()
        except OSError as error:
            raise ServerAway(str(error)) from error
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._idle.connection, self._idle.url = connection, url
        return connection

    def _exchange(
        self, connection: http.client.HTTPConnection, path: str, body: Any, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        try:
            bearer = load_secret(self._home).bearer
        except StoreFailure as failure:
            raise ServerAway(str(failure)) from failure
        sent = {
            "Authorization": f"Bearer {bearer}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        }
        connection.request("POST", path, msgspec.json.encode(body), sent)
        response = connection.getresponse()
        return response.status, response.read()
