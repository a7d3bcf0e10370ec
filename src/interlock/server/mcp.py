"""MCP over HTTP: a POST is one message, and its reply is JSON.

The server keeps no state between messages, so a client goes on after a restart without noticing.
The session id of the handshake only tells clients apart.
"""

from collections.abc import Callable
from typing import Any, cast

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from interlock.app.callers.connection import HTTP, Connection
from interlock.app.context import App
from interlock.app.failures import LeaseLost, StoreFailure
from interlock.core.ids import SessionId
from interlock.core.project_stream import LeaseCondition
from interlock.mcp.listing import EVERYTHING
from interlock.mcp.protocol import (
    INVALID_PARAMS,
    NOT_JSON_REPLY,
    McpProtocol,
    Reply,
    RpcError,
    error_reply,
    store_failure_reply,
)
from interlock.mcp.tools import TOOLS
from interlock.server import mcp_headers
from interlock.server.worker import Worker

SESSION_HEADER = "mcp-session-id"
SESSION_BYTES = 16
LEASE_HEADER = "interlock-lease"
"""A driver names the lease under which it writes, and its epoch, as `driver:machine:12`."""
LEASE_LOST_CODE = -32_001
_SESSION_PREFIX = "ses_"
_READ_ONLY_TOOLS = frozenset(tool.name for tool in TOOLS if tool.is_read_only)
# These only append. The others read files or publish their work elsewhere, which must not happen
# while everybody else waits, nor before the commit.
_APPENDING_TOOLS = frozenset({"continue_workflow", "checkpoint_workflow"})

CONNECTIONS_MAX = 1_000
"""How many connections are remembered."""


def _serve_all_tools(app: App, connection: Connection) -> McpProtocol:
    # The client's project is unknown and it gets no notifications, so it gets all tools.
    return McpProtocol(app, TOOLS, connection=connection, look=lambda _: EVERYTHING)


class McpEndpoint:
    def __init__(
        self,
        writer: Worker,
        reader: Worker,
        errands: Worker,
        entropy: Callable[[int], bytes],
        protocol: Callable[[App, Connection], McpProtocol] = _serve_all_tools,
    ) -> None:
        self._writer, self._reader, self._errands = writer, reader, errands
        self._entropy, self._protocol = entropy, protocol
        self._connections: dict[str, Connection] = {}
        """What each connection remembers, by the session id of its handshake."""

    async def answer(self, request: Request) -> Response:
        if request.method != "POST":
            # The server never sends anything unasked, so there is no stream to open or close.
            return Response(status_code=405, headers={"allow": "POST"})
        try:
            message: object = msgspec.json.decode(await request.body())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _json_response(NOT_JSON_REPLY, request.headers)
        try:
            mcp_headers.check(message, request.headers)
        except RpcError as error:
            return _json_response(error_reply(_message_id(message), error), request.headers)
        lease = parse_lease(request.headers.get(LEASE_HEADER, ""))
        if isinstance(lease, RpcError):
            return _json_response(error_reply(_message_id(message), lease), request.headers)
        is_new = _message_method(message) == "initialize"
        client = request.headers.get(SESSION_HEADER, "")
        if is_new:  # the client's description belongs to the new connection
            client = self._entropy(SESSION_BYTES).hex()
        try:
            reply = await self._reply(message, client, lease)
        except LeaseLost as lost:
            gone = RpcError(LEASE_LOST_CODE, f"lease_lost: another driver has taken over ({lost})")
            return _json_response(error_reply(_message_id(message), gone), request.headers)
        if reply is None:
            return Response(status_code=202)
        response = _json_response(reply, request.headers)
        if reply.error is None and is_new:
            response.headers[SESSION_HEADER] = client
        return response

    async def _reply(
        self, message: object, client: str, lease: LeaseCondition | None = None
    ) -> Reply | None:
        connection = self._connection(client, lease)

        def answer(app: App) -> Reply | None:
            leased = msgspec.structs.replace(app, lease=lease)
            return self._protocol(leased, connection).reply_to(message)

        tool = _called_tool(message)
        if tool in _APPENDING_TOOLS:
            try:
                return await self._writer.run_grouped(answer)
            except StoreFailure as failure:
                return store_failure_reply(message, failure)
        if tool is None or tool in _READ_ONLY_TOOLS:
            return await self._reader.run(answer)
        if _is_session_end(message):
            # It looks at the whole project and waits for a job: nobody else may wait for that.
            return await self._errands.run(answer)
        return await self._writer.run(answer)

    def _connection(self, client: str, lease: LeaseCondition | None) -> Connection:
        """The memory of a connection; a new one for a call that does not name its connection.

        A driver names the session in which it works instead.
        """
        if not client:
            return Connection(HTTP)
        connection = self._connections.pop(client, None)
        if connection is None:
            connection = Connection(f"{HTTP}{client}")
            if lease and client.startswith(_SESSION_PREFIX):
                connection.session = SessionId(client)
        self._connections[client] = connection  # the latest at the end
        if len(self._connections) > CONNECTIONS_MAX:
            del self._connections[next(iter(self._connections))]
        return connection


def parse_lease(header: str) -> LeaseCondition | RpcError | None:
    """The lease in a header; None without one."""
    if not header:
        return None
    name, _, epoch = header.rpartition(":")
    if not name.startswith("driver:") or not (epoch.isascii() and epoch.isdigit()):
        return RpcError(INVALID_PARAMS, "Interlock-Lease is not of the form driver:machine:epoch")
    return LeaseCondition(name, int(epoch[:18]))


def _is_session_end(message: object) -> bool:
    match message:
        case {"params": {"name": "session", "arguments": {"action": "end"}}}:
            return True
        case _:
            return False


def _json_response(reply: Reply, headers: Headers) -> Response:
    status = mcp_headers.status_of(reply.error, headers)
    return Response(reply.content, status_code=status, media_type="application/json")


def _message_method(message: object) -> str:
    return cast("dict[str, Any]", message).get("method", "") if isinstance(message, dict) else ""


def _message_id(message: object) -> int | str | None:
    message_id = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    return message_id if type(message_id) in (int, str) else None


def _called_tool(message: object) -> str | None:
    """The tool that is called; None if none is, empty for a batch, which may call several."""
    if isinstance(message, list):
        return ""
    if _message_id(message) is None or _message_method(message) != "tools/call":
        return None
    params = cast("dict[str, Any]", message).get("params")
    name = cast("dict[str, Any]", params).get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else None
