"""The names of clients without hooks, recorded for their sessions."""

from collections.abc import Mapping
from typing import Any, cast

from interlock.app.callers.connection import HTTP, Connection
from interlock.app.context import App
from interlock.core.ids import SessionId
from interlock.core.visible_text import make_visible_line
from interlock.workspace.machine import clients, processes

CLIENT_KEY = "io.modelcontextprotocol/clientInfo"


def client_name(params: Mapping[str, Any]) -> str:
    """Return the name of the client that opens a connection, without its version."""
    info: object = params.get("clientInfo")
    known = cast("dict[str, Any]", info) if isinstance(info, dict) else {}
    return str(known.get("name") or "")


def name_in(info: object) -> str:
    """Return the name and version that a client reports; empty if it reports none."""
    known = cast("dict[str, Any]", info) if isinstance(info, dict) else {}
    words = (known.get(key) for key in ("name", "version"))
    return " ".join(make_visible_line(word) for word in words if isinstance(word, str) and word)


def record_client(
    app: App, connection: Connection, session: SessionId | None, params: Mapping[str, Any]
) -> None:
    """Record that the client of a call works in its session, once for each name."""
    if session is None:
        return
    metadata: object = params.get("_meta")
    known = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    name = name_in(known.get(CLIENT_KEY)) or connection.name
    if connection.recorded.get(session) == name:
        return
    connection.recorded[session] = name
    # A client that started this process ends it by exiting.
    is_own_server = not connection.client.startswith(HTTP)
    running = processes.running_processes([app.process]) if is_own_server else []
    process = running[0] if running else None
    if not (process or name):
        return
    try:
        clients.remember_connection(app.home, process, session, name, now_ms=app.clock.now_ms())
    except OSError:
        return  # the client is shown without its name then
