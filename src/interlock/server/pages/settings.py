"""Settings and health: what runs here, what is kept, and how it goes."""

import shlex
from pathlib import Path

from starlette.routing import Route

from interlock.app.admin.access import COOKIE_MS
from interlock.app.admin.data_inventory import (
    client_installs,
    forget_all_command,
    is_private,
    is_shared_store,
    list_stored_data,
)
from interlock.app.admin.diagnostics import about, diagnostics
from interlock.core.preferences import AUTONOMIES, RISK_POLICIES
from interlock.server.console import Console, Page, PageRequest


def routes(console: Console) -> list[Route]:
    return [console.page("/settings", settings), console.page("/settings/data", data)]


def settings(asked: PageRequest) -> Page:
    found = about(asked.app)
    facts = {
        "about": found,
        "size": sum(entry.size for entry in found.entries),
        "diagnostics": diagnostics(found, Path.home()),
        "autonomies": AUTONOMIES,
        "risk_policies": RISK_POLICIES,
    }
    return Page("settings.html", "Settings", facts)


def data(asked: PageRequest) -> Page:
    home = asked.app.home
    found, installs = list_stored_data(home, asked.app.store_label), client_installs(home)
    facts = {
        "home": home,
        "quoted": shlex.quote(str(home)),
        "is_private": is_private(home),
        "kept": found,
        "size": sum(one.size for one in found),
        "installs": [] if isinstance(installs, str) else installs,
        "unknown": installs if isinstance(installs, str) else "",
        "forget_all": forget_all_command(home, () if isinstance(installs, str) else installs),
        "place": asked.app.store_label if is_shared_store(asked.app.store_label) else "",
        "cookie_days": COOKIE_MS // 86_400_000,
    }
    return Page("data.html", "What is stored about me", facts)
