"""The toolsets that are served, and the servers of tools that run for agent clients.

Served are the toolsets that the user names, else all.
"""

import os
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.workspace.machine import tool_servers
from interlock.workspace.machine.tool_servers import ToolServer, ToolServerAnnouncement
from interlock.workspace.projects.settings import toolsets_in


def configured_toolsets(home: Path) -> tuple[str, ...] | None:
    """The toolsets in the user's `config.toml`; None if it names none.

    Raises:
        SettingsBroken: the file cannot be used.
    """
    return toolsets_in(home / "config.toml")


class ListedToolServer(msgspec.Struct, frozen=True):
    server: ToolServer
    client: str
    """The client that started it, for people; empty if that is not known."""


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
        ListedToolServer(server, client_title(app.home, server.pid))
        for server in tool_servers.running_servers(app.home)
    ]
