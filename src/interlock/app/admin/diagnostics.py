"""An overview of this installation: versions, store, keys, preferences, gate and server, also as a
text that can be shown to others.
"""

import platform
from pathlib import Path

import msgspec

from interlock import __version__
from interlock.app.admin import data_inventory
from interlock.app.admin.data_inventory import HomeEntry
from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.context import App
from interlock.app.gate import overrides
from interlock.app.gate.overrides import GateOverride
from interlock.core.counting import pluralise
from interlock.core.preferences import Preferences, apply_wish
from interlock.store.records import Stats
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.projects.settings import preferences_in


class KeyState(msgspec.Struct, frozen=True):
    """A key without its secret."""

    id: int
    state: str


class UserPreferences(msgspec.Struct, frozen=True):
    """The user's preferences, and where they come from."""

    path: Path
    is_written: bool
    preferences: Preferences
    fault: str = ""
    """The reason that the file cannot be used, if so; until it is corrected no run can begin."""


class InstallationOverview(msgspec.Struct, frozen=True):
    at_ms: int
    version: str
    python: str
    system: str
    home: Path
    is_private: bool
    entries: tuple[HomeEntry, ...]
    place: str
    """The location of the store."""
    stats: Stats
    keys: tuple[KeyState, ...]
    chosen: UserPreferences
    glass: GateOverride | None
    """The override that has switched the gate off, if it is off."""
    server: RunningServer | None


def installation_overview(app: App) -> InstallationOverview:
    server = find_server(app.home)
    return InstallationOverview(
        at_ms=app.clock.now_ms(),
        version=__version__,
        python=platform.python_version(),
        system=platform.platform(),
        home=app.home,
        is_private=data_inventory.is_private(app.home),
        entries=tuple(data_inventory.home_entries(app.home)),
        place=app.store_label,
        stats=app.reader.stats(),
        keys=tuple(KeyState(key.id, key.state) for key in app.keyring.keys().values()),
        chosen=_load_user_preferences(app.home / "config.toml"),
        glass=overrides.active_override(app.home),
        server=server if isinstance(server, RunningServer) else None,
    )


def diagnostics(report: InstallationOverview, user_home: Path) -> str:
    """A text for somebody who is to help: no secret, no token, nothing that an agent wrote.

    `user_home` is written as `~`, since it mostly contains the user's name.
    """
    stats, user = report.stats, report.chosen
    states = [key.state for key in report.keys]
    keys = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    preferences = f"{user.preferences.autonomy}, {user.preferences.risk_policy}"
    config_file = "config.toml" if user.is_written else "no config.toml"
    server = report.server
    lines = [
        f"Interlock {report.version}",
        f"Python {report.python}, {report.system}",
        f"{stats.engine}, schema {stats.schema}",
        f"{pluralise(stats.sessions, 'session')}, {pluralise(stats.events, 'event')},"
        f" {pluralise(stats.blobs, 'blob')}, {pluralise(stats.size, 'byte')}",
        f"keys: {keys}",
        f"preferences: {preferences} ({'broken config.toml' if user.fault else config_file})",
        f"gate: {'off for the moment' if report.glass else 'on'}",
        f"server: process {server.pid}, {server.url}, {_uptime_hours(report)} h up"
        if server
        else "",
        f"data home: {report.home}{'' if report.is_private else ' (others can look into it)'}",
        *(f"  {entry.name}: {pluralise(entry.size, 'byte')}" for entry in report.entries),
    ]
    return "\n".join(line for line in lines if line).replace(str(user_home), "~") + "\n"


def _uptime_hours(report: InstallationOverview) -> int:
    return (report.at_ms - report.server.started_ms) // 3_600_000 if report.server else 0


def _load_user_preferences(path: Path) -> UserPreferences:
    try:
        preferences = apply_wish(Preferences(), preferences_in(path))
    except SettingsBroken as broken:
        return UserPreferences(path, is_written=True, preferences=Preferences(), fault=str(broken))
    return UserPreferences(path, path.exists(), preferences)
