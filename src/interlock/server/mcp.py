"""MCP over HTTP: a POST is one message, its answer is JSON.

The server keeps no state between messages, so a client goes on after a restart without noticing.
The session id of the handshake only tells clients apart.
"""

from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.mcp.protocol import NOT_JSON, Protocol, undone
from interlock.mcp.tools import TOOLS
from interlock.server.worker import Worker

SESSION_HEADER = "mcp-session-id"
SESSION_BYTES = 16
_READS = frozenset(tool.name for tool in TOOLS if tool.is_read_only)
# These only append. The others look through files or publish what they did elsewhere, which must
# neither be done while everybody else waits nor before it is certain.
_APPENDS = frozenset({"continue_workflow", "checkpoint_workflow"})


class Mcp:
    def __init__(self, writer: Worker, reader: Worker, entropy: Any) -> None:
        self._writer, self._reader = writer, reader
        self._entropy = entropy

    async def answer(self, request: Request) -> Response:
        if request.method != "POST":
            # Nothing is ever sent unasked, so there is no stream to open and none to close.
            return Response(status_code=405, headers={"allow": "POST"})
        try:
            message = msgspec.json.decode(await request.body())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _json(NOT_JSON, status=400)
        caller = request.headers.get(SESSION_HEADER, "")
        reply = await self._reply(message, caller)
        if reply is None:
            return Response(status_code=202)
        response = _json(reply)
        if _method(message) == "initialize":
            response.headers[SESSION_HEADER] = self._entropy(SESSION_BYTES).hex()
        return response

    async def _reply(self, message: object, caller: str) -> bytes | None:
        def answer(app: App) -> bytes | None:
            as_caller = msgspec.structs.replace(app, caller=f"http:{caller}")
            return Protocol(as_caller, TOOLS).answer_to(message)

        tool = _tool(message)
        if tool in _APPENDS:
            try:
                return await self._writer.run_together(answer)
            except StoreFailure as failure:
                return undone(message, failure)
        if tool is None or tool in _READS:
            return await self._reader.run(answer)
        return await self._writer.run(answer)


def _method(message: object) -> str:
    return cast("dict[str, Any]", message).get("method", "") if isinstance(message, dict) else ""


def _tool(message: object) -> str | None:
    """The tool that is called; None where none is, and nothing at all where several may be."""
    if isinstance(message, list):
        return ""
    if not isinstance(message, dict):
        return None
    called = cast("dict[str, Any]", message)
    if called.get("method") != "tools/call":
        return None
    params = called.get("params")
    name = cast("dict[str, Any]", params).get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else None


def _json(content: bytes, *, status: int = 200) -> Response:
    return Response(content, status_code=status, media_type="application/json")
