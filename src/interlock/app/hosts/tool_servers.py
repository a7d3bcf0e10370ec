"""The servers of tools that run for agent clients: announce one, and list them."""

import os
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.hosts.toolsets import is_coordinated
from interlock.workspace.machine import tool_servers
from interlock.workspace.machine.tool_servers import ToolServer, ToolServerAnnouncement


class ListedToolServer(msgspec.Struct, frozen=True):
    server: ToolServer
    client: str
    """The client that started it, for people; empty if that is not known."""
    is_coordinated: bool
    """Whether several agents work on its project, so that they have tools for that."""


def announce_server(
    app: App, toolsets: tuple[str, ...], *, is_chosen: bool
) -> ToolServerAnnouncement | None:
    """Let the console know what this process serves; None if it cannot: the agent needs no file."""
    try:
        server = ToolServer(os.getpid(), os.getcwd(), toolsets, is_chosen, at_ms=app.clock.now_ms())
        return ToolServerAnnouncement(app.home, server)
    except OSError:
        return None


def list_tool_servers(app: App) -> list[ListedToolServer]:
    """The servers that run now, the oldest first."""
    from interlock.app.callers.agent_detection import client_title  # noqa: PLC0415 (no server needs it)

    return [
        ListedToolServer(
            server,
            client_title(app.home, server.pid),
            is_coordinated(app, Path(server.directory)),
        )
        for server in tool_servers.running_servers(app.home)
    ]
