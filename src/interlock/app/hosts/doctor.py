"""Check that the installation in a client works, and prove it by a call that must fail."""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code_shell import SHELLS, shell_script
from interlock.agents.hosts.host import Host, JsonPart, OwnFile, TomlPart
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.own_entries import home_in, own_hooks, server_in, shell_in
from interlock.app.failures import SettingsBroken
from interlock.app.gate import integrity, overrides, policy
from interlock.app.hosts import clients, proofs
from interlock.app.hosts.install import PLUGIN, Scope, install, parts_of
from interlock.app.hosts.install_plan import InstallRefusal, Part
from interlock.app.hosts.markers import is_installed_for_user
from interlock.app.hosts.proofs import Check, install_hint
from interlock.core.canonical import Json
from interlock.core.counting import pluralise
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from interlock.workspace.files import file_replacement, json_patch, toml_patch
from interlock.workspace.files.json_patch import UnusableJson
from interlock.workspace.files.toml_patch import UnusableToml
from interlock.workspace.projects import project


class _ScopeInstall(NamedTuple):
    """An install in one scope, as it was found."""

    scope: Scope
    root: Path
    parts: list[Part]
    commands: list[str]
    """The hooks before tool calls, as the client would run them."""


def examine(
    host: Host,
    home: Path,
    directory: Path,
    program: Program,
    *,
    environment: Mapping[str, str],
    now_ms: int,
) -> list[Check]:
    """Every check for the project around `directory`, and for the user. Repairs nothing."""
    root = integrity.governed_root(home, directory)
    around = root or Path(os.path.realpath(directory))
    checks = [_project(root, around), *_check_policy(home, root, now_ms)]
    checks += _check_integrity(home, root)
    checks += _check_settings(host, around, environment)
    places: tuple[tuple[Scope, Path], ...] = (("user", Path.home()), ("project", around))
    found = [_find_installed(host, program, *place) for place in places]
    installed = [each for each in found if each.commands]
    checks += _check_files(host, home, program, installed, directory)
    commands = [command for each in installed for command in each.commands]
    plugin = home / PLUGIN / "plugin"
    if host is claude_code.HOST and plugin.exists() and not installed:
        values = _read(host, plugin / "hooks" / "hooks.json")
        hooks = own_hooks(host, values) if isinstance(values, dict) else ()
        commands = [command for _, command in hooks if " pre-tool" in command]
        servers = JsonPart(f"{plugin}/.mcp.json", "", {}, servers="mcpServers")
        found.append(_ScopeInstall("user", home, [servers], commands))
    checks += proofs.check_launchers(host, commands, home, around, environment)
    scopes = [each.scope for each in installed]
    checks += _check_sandbox(host, around, home) if "user" in scopes else []
    checks += clients.check_version(host, environment)
    checks += clients.check_trust(host, around, environment) if installed else []
    checks.append(proofs.check_server(host, _server(found, around), around, environment))
    override = _check_override(home, now_ms)
    checks.append(override)
    if root is not None:
        is_off = not override.is_ok
        is_users = is_installed_for_user(home, host.name)
        answering = [x for x in commands if home_in(x) or not is_users]
        checks += proofs.prove_gate(host, answering, root, environment, is_off=is_off)
        checks.append(clients.check_hooks_heard(host, home, root, environment, now_ms))
        checks += clients.check_running(host, home, root)
    return checks


def _project(root: Path | None, around: Path) -> Check:
    if root is None:
        what = f"`{around}` has not opted in, so hooks stay silent there"
        return Check("project", what, "`interlock init` opts it in.")
    try:
        profile = project.policy_in(root).profile
    except SettingsBroken as broken:
        hint = "Correct the file. Until then only reading is allowed there."
        return Check("project", str(broken), hint)
    return Check("project", f"`{root}` has opted in (profile {profile})")


def _check_policy(home: Path, root: Path | None, now_ms: int) -> list[Check]:
    """Checks for the settings that do not count."""
    try:
        effective = policy.load_effective_policy(home, root, at_ms=now_ms) if root else None
    except SettingsBroken:
        return []  # reported already
    if effective is None:
        return []
    checks = [Check("config", fault, "Correct the file.") for fault in effective.faults]
    if effective.ignored_settings:
        what = f"Nobody has trusted {', '.join(effective.ignored_settings)} of the project's config"
        hint = "`interlock trust --show` says what they would loosen."
        checks.append(Check("config", what, hint))
    return checks


def _check_integrity(home: Path, root: Path | None) -> list[Check]:
    """Checks for the files that somebody else has changed."""
    hint = "`interlock doctor --repair` puts it back."
    return [
        Check("integrity", f"`{changed.path}` {changed.what}", hint, integrity.diff(changed))
        for changed in integrity.differences(home, root)
    ]


def _check_settings(host: Host, around: Path, environment: Mapping[str, str]) -> Iterator[Check]:
    """Whether the client's settings can be read, and do not switch us off."""
    for path in host.settings_files(str(Path.home()), str(around), environment):
        values = _read(host, Path(path))
        if isinstance(values, Check) and host.reads_comments:
            yield Check("settings", f"`{path}` is not plain JSON, and was not looked into")
        elif isinstance(values, Check):
            yield values
        elif values is not None:
            what, hint = host.obstacle(values)
            yield Check("settings", f"`{path}` {what or 'can be read'}", hint)


def _read(host: Host, path: Path) -> dict[str, Json] | Check | None:
    """The content of a file of the client; None if there is none."""
    try:
        content = file_replacement.content_of(path)
    except OSError as error:
        hint = "Make it a file that can be read."
        return Check("settings", f"`{path}` cannot be read: {error.strerror}", hint)
    if content is None:
        return None
    if path.suffix == ".toml":
        found = toml_patch.read(content)
        values = UnusableJson(found.what) if isinstance(found, UnusableToml) else found[1]
    else:
        text = json_patch.decode(content)
        values = text if isinstance(text, UnusableJson) else json_patch.read(text)
    if isinstance(values, UnusableJson):
        hint = f"Correct the file: {host.title} takes nothing from it as it is."
        return Check("settings", f"`{path}` {values.what}", hint)
    assert not isinstance(values, str), "a text was read into what it holds"
    return values


def _find_installed(host: Host, program: Program, scope: Scope, root: Path) -> _ScopeInstall:
    parts = parts_of(program, host, scope, root)
    commands: list[str] = []
    for part in parts:
        values = _values_of(host, part)
        hooks = [command for _, command in own_hooks(host, values)]
        commands += [command for command in hooks if " pre-tool" in command]
        if isinstance(part, OwnFile) and part.is_watched and not values:
            # A plugin: it starts the same launcher with the same words.
            content = _content_of(part.path)
            is_there = b"Written by `interlock install" in content
            gate = next(event for event in host.events if event.name == "pre-tool")
            commands += [host.command(gate, program.home, scope)] if is_there else []
    return _ScopeInstall(scope, root, parts, commands)


def _content_of(path: str) -> bytes:
    try:
        return file_replacement.content_of(Path(path)) or b""
    except OSError:
        return b""


def _values_of(host: Host, part: Part) -> dict[str, Json]:
    if isinstance(part, OwnFile) and isinstance(part.content, str):
        return {}
    values = _read(host, Path(part.path))
    return values if isinstance(values, dict) else {}


def _check_files(
    host: Host, home: Path, program: Program, installed: Sequence[_ScopeInstall], directory: Path
) -> Iterator[Check]:
    """Whether everything is as an install would leave it."""
    has_plugin = host is claude_code.HOST and (home / PLUGIN).exists()
    if not installed and not has_plugin:
        what = f"No hook of Interlock is in the files of {host.title}"
        yield Check("hooks", what, install_hint(host))
    for each in installed:
        scope, root = each.scope, each.root
        try:
            report = install(home, host, scope, root, program, at_ms=0, is_dry=True)
        except SettingsBroken as broken:
            yield Check("hooks", str(broken), "Correct the file, or move it away.")
            continue
        again = f"Run `interlock install {host.name} --scope {scope}`."
        if isinstance(report, InstallRefusal):
            yield Check("hooks", report.what, report.hint)
        elif report.changes:
            changed = ", ".join(f"`{change.path}`" for change in report.changes)
            yield Check("hooks", f"Not as an install leaves it: {changed}", again)
        else:
            whose = "yours" if scope == "user" else "the project's"
            yield Check("hooks", f"{len(host.events)} hooks in files of {host.title}, {whose}")
    scopes = [each.scope for each in installed]
    if scopes == ["project"] and os.path.realpath(directory) != str(installed[0].root):
        what = f"Only the project's files name Interlock, and this is not `{installed[0].root}`"
        hint = f"Start {host.title} there, or run `interlock install {host.name}` for all places."
        yield Check("start", what, hint)
    if len(scopes) > 1:
        yield Check("twice", "Installed for you and in the project: the project's stay silent")


def _server(found: Sequence[_ScopeInstall], around: Path) -> Mapping[str, Json] | None:
    """The entry of the server that the client would start: a project's comes first."""
    for each in reversed(found):
        for part in each.parts:
            entry = _server_of(part, around)
            if entry:
                return entry
    return None


def _server_of(part: Part, around: Path) -> Mapping[str, Json] | None:
    try:
        content = file_replacement.content_of(Path(part.path)) or b""
        if isinstance(part, TomlPart):
            return toml_patch.find_table(tomllib.loads(content.decode()), part.table)
        if isinstance(part, JsonPart) or isinstance(part.content, dict):
            values = msgspec.json.decode(content, type=dict[str, Json]) if content else {}
            key = part.servers if isinstance(part, JsonPart) else "mcpServers"
            return server_in(values, key, str(around)) if key else None
    except (OSError, ValueError):
        pass  # reported already
    return None


def _check_sandbox(host: Host, around: Path, home: Path) -> list[Check]:
    """Whether commands run where they cannot write. Without it, the gate asks about them."""
    if host is not claude_code.HOST:
        return []
    asked = "so the gate asks before a command that may write"
    if (abi := landlock_abi()) < ABI_MIN:
        return [Check("sandbox", f"This machine cannot confine commands, {asked}")]
    own_shells = [shell_script(str(home), name) for name in SHELLS]
    if not all(own_shells):
        return [Check("sandbox", f"The path `{home}` contains the name of a shell, {asked}")]
    settings = host.settings_files(str(Path.home()), str(around), os.environ)
    files = [_read(host, Path(path)) for path in settings]
    shells = [name for file in files if isinstance(file, dict) and (name := shell_in(file))]
    if not shells:
        hint = f"Run `interlock install {host.name}` (for the user, not for the project)."
        return [Check("sandbox", f"Claude Code's commands are not confined, {asked}", hint)]
    # Those of a project come later, and win.
    if shells[-1] not in own_shells:
        return [Check("sandbox", f"The settings name a shell (`{shells[-1]}`), {asked}")]
    if not os.access(shells[-1], os.X_OK):
        what = f"The shell `{shells[-1]}` is not there, {asked}"
        return [Check("sandbox", what, install_hint(host))]
    return [Check("sandbox", f"In analysis and planning commands cannot write (Landlock {abi})")]


class _StoredOverride(msgspec.Struct, frozen=True, rename="camel"):
    until_ms: int
    who: str = "unknown"


def _check_override(home: Path, now_ms: int) -> Check:
    path = home / overrides.OVERRIDE_FILE
    try:
        content = file_replacement.content_of(path)
        stored = msgspec.json.decode(content, type=_StoredOverride) if content is not None else None
    except (OSError, msgspec.MsgspecError):
        what = f"`{path}` cannot be read; the gate is on as if it were not there"
        return Check("gate", what, "Remove the file.")
    if stored is None or stored.until_ms <= now_ms:
        return Check("gate", "The gate is on")
    minutes = -((now_ms - stored.until_ms) // 60_000)  # rounded up
    what = f"The gate was switched off by {stored.who}, for {pluralise(minutes, 'more minute')}"
    return Check("gate", what, f"It comes back by itself, or at once without `{path}`.")
