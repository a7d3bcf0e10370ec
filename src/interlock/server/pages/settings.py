"""Settings and health: what runs here, what is kept, and how it goes."""

import shlex
from pathlib import Path

import msgspec
from starlette.routing import Route

from interlock.app.admin.access import COOKIE_MS
from interlock.app.admin.data_inventory import (
    client_installs,
    forget_all_command,
    is_private,
    is_shared_store,
    list_stored_data,
)
from interlock.app.admin.diagnostics import diagnostics, installation_overview
from interlock.app.failures import SettingsBroken
from interlock.app.hosts.toolsets import ListedToolServer, configured_toolsets, list_tool_servers
from interlock.core.preferences import AUTONOMIES, RISK_POLICIES
from interlock.mcp.tools import TOOLSETS
from interlock.server.console import Console, Page, PageRequest


def routes(console: Console) -> list[Route]:
    return [console.page("/settings", settings), console.page("/settings/data", data)]


class ServedToolsets(msgspec.Struct, frozen=True):
    """A server of tools, and the toolsets that it would serve if it were started now."""

    listed: ListedToolServer
    due: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return set(self.due) != set(self.listed.server.toolsets)


def settings(request: PageRequest) -> Page:
    overview = installation_overview(request.app)
    try:
        configured, fault = configured_toolsets(request.app.home), ""
    except SettingsBroken as broken:
        configured, fault = None, str(broken)
    facts = {
        "toolsets": tuple(TOOLSETS),
        "configured": configured,
        "toolsets_fault": fault,
        "served": [_compare(one, configured) for one in list_tool_servers(request.app)],
        "about": overview,
        "size": sum(entry.size for entry in overview.entries),
        "diagnostics": diagnostics(overview, Path.home()),
        "autonomies": AUTONOMIES,
        "risk_policies": RISK_POLICIES,
    }
    return Page("settings.html", "Settings", facts)


def _compare(listed: ListedToolServer, configured: tuple[str, ...] | None) -> ServedToolsets:
    if listed.server.is_chosen:
        return ServedToolsets(listed, listed.server.toolsets)
    return ServedToolsets(listed, configured if configured is not None else tuple(TOOLSETS))


def data(request: PageRequest) -> Page:
    home = request.app.home
    stored_data, installs = list_stored_data(home, request.app.store_label), client_installs(home)
    facts = {
        "home": home,
        "quoted": shlex.quote(str(home)),
        "is_private": is_private(home),
        "kept": stored_data,
        "size": sum(entry.size for entry in stored_data),
        "installs": [] if isinstance(installs, str) else installs,
        "unknown": installs if isinstance(installs, str) else "",
        "forget_all": forget_all_command(home, () if isinstance(installs, str) else installs),
        "place": request.app.store_label if is_shared_store(request.app.store_label) else "",
        "cookie_days": COOKIE_MS // 86_400_000,
    }
    return Page("data.html", "What is stored about me", facts)
