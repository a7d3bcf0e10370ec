"""Our endpoint for a suite that cannot sign in: it is signed in on its behalf, and nothing else.

Host and Origin reach the guard as the suite sent them.
"""

import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.app.admin.access import LoginStore, load_secret
from interlock.app.callers.connection import Connection
from interlock.app.clock import SystemClock
from interlock.app.context import App, open_app
from interlock.mcp.protocol import INVALID_PARAMS, McpProtocol, RpcError
from interlock.server.guard import Guard
from interlock.server.mcp import McpEndpoint
from interlock.server.site import build_site
from interlock.server.worker import Worker

NAMES = ("127.0.0.1", "localhost")
MISSING_CAPABILITY = -32021
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "text", "text": "This is a simple text response for testing."}
_PIXEL = {
    "type": "image",
    "mimeType": "image/png",
    "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmM"
    "IQAAAABJRU5ErkJggg==",
}
_SOUND = {
    "type": "audio",
    "mimeType": "audio/wav",
    "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=",
}
_RESOURCE = {
    "type": "resource",
    "resource": {"uri": "test://embedded", "mimeType": "text/plain", "text": "Embedded."},
}
_CONTENTS: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [_TEXT],
    "test_image_content": [_PIXEL],
    "test_audio_content": [_SOUND],
    "test_embedded_resource": [_RESOURCE],
    "test_multiple_content_types": [_TEXT, _PIXEL, _RESOURCE],
    "test_error_handling": [{"type": "text", "text": "This tool always fails."}],
    "test_streaming_elicitation": [_TEXT],
    "test_logging_tool": [_TEXT],
    "json_schema_2020_12_tool": [_TEXT],
}
_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
_ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
_SCHEMA: dict[str, Any] = {
    "$schema": _DIALECT,
    "type": "object",
    "$defs": {"address": _ADDRESS},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
    "if": {"required": ["name"]},
    "then": {"properties": {"name": {"minLength": 1}}},
    "else": {"required": ["address"]},
    "additionalProperties": False,
}


class Fixture(McpProtocol):
    """Our protocol with the tools that the suite wants, where they only have to be answered."""

    def __init__(self, app: App, connection: Connection) -> None:
        super().__init__(app, (), connection=connection)

    def _tools_list(self, params: dict[str, Any]) -> dict[str, Any]:
        tools = [
            {
                "name": name,
                "description": "For the conformance suite",
                "inputSchema": _SCHEMA if name == "json_schema_2020_12_tool" else _NO_ARGUMENTS,
            }
            for name in (*_CONTENTS, "test_missing_capability")
        ]
        return {**super()._tools_list(params), "tools": tools}

    def _tools_call(self, params: dict[str, Any]) -> dict[str, Any]:
        name = params.get("name")
        if name == "test_missing_capability":
            required: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
            raise RpcError(MISSING_CAPABILITY, "Sampling is needed", required)
        if name not in _CONTENTS:
            raise RpcError(INVALID_PARAMS, f"No tool `{name}`")
        return {"content": _CONTENTS[name], "isError": name == "test_error_handling"}


@contextmanager
def product(home: Path) -> Generator[str]:
    """All that the server answers, as it is."""
    with _listening() as listening:
        port = listening.getsockname()[1]
        secret, clock = load_secret(home), SystemClock()
        built = build_site(
            home, names=NAMES, port=port, secret=secret, clock=clock, entropy=os.urandom
        )
        with _serving(_signed_in(built.asgi_app, secret.bearer), listening) as url:
            yield url


@contextmanager
def fixture(home: Path) -> Generator[str]:
    """The guard and the endpoint alone, with the tools of the suite."""
    worker = Worker("fixture", partial(open_app, home))
    with _listening() as listening:
        secret = load_secret(home)
        mcp = McpEndpoint(worker, worker, worker, os.urandom, Fixture)
        guard = Guard(
            Starlette(routes=[Route("/mcp", mcp.answer, methods=["GET", "POST", "DELETE"])]),
            names=NAMES,
            port=listening.getsockname()[1],
            secret=secret,
            logins=LoginStore(home),
            clock=SystemClock(),
            login_page=str,
        )
        with _serving(_signed_in(guard, secret.bearer), listening) as url:
            yield url
    worker.stop()


def _signed_in(inner: ASGIApp, bearer: str) -> ASGIApp:
    async def signed_in(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            name = (b"authorization", f"Bearer {bearer}".encode())
            scope = {**scope, "headers": [*scope["headers"], name]}
        await inner(scope, receive, send)

    return signed_in


@contextmanager
def _listening() -> Generator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        yield listening


@contextmanager
def _serving(app: ASGIApp, listening: socket.socket) -> Generator[str]:
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", access_log=False))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        # What comes before it is ready waits in the socket.
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()
