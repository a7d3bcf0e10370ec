"""The toolsets that are served, and the servers of tools that run for agent clients.

Served are the toolsets that the user names, else those that the project needs.
"""

import os
from pathlib import Path

import msgspec

from interlock.app.context import App, store_url
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.workspace.machine import tool_servers
from interlock.workspace.machine.tool_servers import ToolServer, ToolServerAnnouncement
from interlock.workspace.projects.project import CONFIG
from interlock.workspace.projects.project_identity import locate_project
from interlock.workspace.projects.settings import toolsets_in


def configured_toolsets(home: Path) -> tuple[str, ...] | None:
    """The toolsets in the user's `config.toml`; None if it names none.

    Raises:
        SettingsBroken: the file cannot be used.
    """
    return toolsets_in(home / "config.toml")


def is_coordinated(app: App, workspace: Path) -> bool:
    """Whether several agents work on the project, or may: it has opted in."""
    try:
        if (locate_project(app.home, workspace).root / CONFIG).exists():
            return True  # it has opted in; who is first must have the tools as well
        if store_url(app.home, app.environment):
            return True  # a team shares it, and to list tools nothing is connected to
        desk = open_desk(app, workspace)
        if app.reader.project_end(desk.project)[0] == 0:
            return False
        board = read_board(app, desk)
    except (SettingsBroken, StoreFailure, OSError):
        return False  # which is reported where it matters
    present = (one.value for one in board.identities.values())
    is_company = any(board.presence_of(one).status != "gone" for one in present)
    return is_company or bool(board.work or board.reservations)


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
