"""The features of Interlock that a project uses, which determine the listed tools."""

import os
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.agents.hosts.registry import all_hosts
from interlock.app.context import App, store_url
from interlock.app.coordination.project_desk import open_desk, read_board
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.gate.integrity import governed_root
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.core.ids import SessionId
from interlock.workspace.machine import tool_servers

FIXED_LISTING_CLIENTS = frozenset(host.fixed_listing_name for host in all_hosts()) - {""}
"""The names of clients that list the tools of a server once for each conversation."""


class ProjectUse(msgspec.Struct, frozen=True):
    is_opted_in: bool = False
    is_coordinated: bool = False
    """Whether other agents work on the project, or it has reservations or work items."""
    has_notes: bool = False


def project_use(app: App, workspace: Path, own_sessions: Set[SessionId]) -> ProjectUse:
    """Return what the project around a directory uses; an unreadable part counts as unused."""
    with suppress(SettingsBroken, StoreFailure, OSError):  # reported elsewhere
        if root := governed_root(app.home, workspace):
            return ProjectUse(
                is_opted_in=True,
                is_coordinated=_is_coordinated(app, root, own_sessions),
                has_notes=_has_notes(app.home, root),
            )
    return ProjectUse()


def _is_coordinated(app: App, root: Path, own_sessions: Set[SessionId]) -> bool:
    if store_url(app.home, app.environment):
        return True  # a team shares it, and listing tools must not connect to it
    # Another agent's server starts before its session, so both agents get the tools in time.
    for server in tool_servers.running_servers(app.home):
        if server.pid != os.getpid() and Path(server.directory).is_relative_to(root):
            return True
    with suppress(SettingsBroken, StoreFailure):
        desk = open_desk(app, root)
        if app.reader.project_end(desk.project)[0] == 0:
            return False
        board = read_board(app, desk)
        others = (
            one.value for one in board.identities.values() if one.value.session not in own_sessions
        )
        is_company = any(board.presence_of(one).status == "active" for one in others)
        return is_company or bool(board.work or board.live_reservations())
    return False


def _has_notes(home: Path, root: Path) -> bool:
    location = notes_location(home, root)
    if not isinstance(location, NotesLocation):
        return False
    return any(name.endswith(".md") for _, _, files in os.walk(location.folder) for name in files)
