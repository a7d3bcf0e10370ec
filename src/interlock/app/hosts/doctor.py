"""Check that the installation in Claude Code works, and prove it by a call that must fail."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import NamedTuple

import msgspec

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code import InstalledHook
from interlock.agents.hosts.claude_code_shell import LAUNCHER, SHELLS, shell_script
from interlock.app.clock import Clock
from interlock.app.context import has_store, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.gate import integrity, policy, tool_calls
from interlock.app.hosts.install import HOST
from interlock.app.hosts.probe import CompletedCommand, last_line, run_with_timeout
from interlock.app.hosts.tool_listing import LISTING, tools_in
from interlock.core.canonical import Json
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from interlock.workspace.files import file_replacement, json_patch
from interlock.workspace.files.json_patch import UnusableJson
from interlock.workspace.machine import install_manifest, spool
from interlock.workspace.projects import project

HOOK_SECONDS = 10
SERVER_SECONDS = 20
DAY_MS = 86_400_000
RUNS_MAX = 200
PROBE_SESSION_PREFIX = "interlock-doctor-"
"""The beginning of the names of the sessions of our own test calls."""
HOST_PROGRAM = "claude"
_INSTALL = f"Run `interlock install {HOST}`."


class Check(msgspec.Struct, frozen=True):
    name: str
    what: str
    """The fact that was found."""
    hint: str = ""
    """The next step; empty if all is well."""
    diff: tuple[str, ...] = ()
    """The lines that tell a file from what it should be."""

    @property
    def is_ok(self) -> bool:
        return not self.hint


class _Settings(NamedTuple):
    path: Path
    content: dict[str, Json]


def examine(
    home: Path, directory: Path, environment: Mapping[str, str], clock: Clock
) -> list[Check]:
    """Every check for the project around `directory`, and for the user. Repairs nothing."""
    root = integrity.governed_root(home, directory)
    around = root or Path(os.path.realpath(directory))
    now_ms = clock.now_ms()
    checks = [_project(root, around), *_check_policy(home, root, now_ms)]
    checks += _check_integrity(home, root)
    files: list[_Settings] = []
    for path in _settings_files(around):
        settings = _read(path)
        if isinstance(settings, Check):
            checks.append(settings)
        elif settings is not None:
            files.append(_Settings(path, settings))
            checks.append(_switches(path, settings))
    hooks = [(file, hook) for file in files for hook in claude_code.installed_hooks(file.content)]
    checks.append(_hooks(hooks))
    checks += _programs([hook for _, hook in hooks], home, around, environment)
    checks += [_check_sandbox(files, home)] if hooks else []
    checks += _check_client(environment)
    checks.append(_server(around, environment))
    override = _check_override(home, now_ms)
    checks.append(override)
    if root is not None:
        checks += _proofs([hook for _, hook in hooks], root, environment, is_off=not override.is_ok)
        checks.append(_check_hooks_heard(home, root, environment, now_ms))
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
    hint = f"`interlock doctor {HOST} --repair` puts it back."
    return [
        Check("integrity", f"`{changed.path}` {changed.what}", hint, integrity.diff(changed))
        for changed in integrity.differences(home, root)
    ]


def _settings_files(around: Path) -> tuple[Path, ...]:
    shared = claude_code.client_files("project", around).settings
    return (
        claude_code.client_files("user", Path.home()).settings,
        shared,
        shared.with_name("settings.local.json"),
    )


def _read(path: Path) -> dict[str, Json] | Check | None:
    """The content of a file of the client; None if there is none."""
    try:
        content = file_replacement.content_of(path)
    except OSError as error:
        return Check(
            "settings",
            f"`{path}` cannot be read: {error.strerror}",
            "Make it a file that can be read.",
        )
    if content is None:
        return None
    text = json_patch.decode(content)
    values = text if isinstance(text, UnusableJson) else json_patch.read(text)
    if isinstance(values, UnusableJson):
        hint = "Correct the file: Claude Code takes nothing from it as it is."
        return Check("settings", f"`{path}` {values.what}", hint)
    assert not isinstance(values, str), "a text was read into what it holds"
    return values


def _switches(path: Path, content: Mapping[str, Json]) -> Check:
    if content.get("disableAllHooks"):
        what = f"`{path}` says `disableAllHooks`, so no hook runs"
        return Check("settings", what, "Take that out of the file.")
    refused = content.get("disabledMcpjsonServers")
    if isinstance(refused, list) and claude_code.NAME in refused:
        what = f"`{path}` lists `{claude_code.NAME}` under `disabledMcpjsonServers`"
        return Check("settings", what, "Take it out of that list.")
    return Check("settings", f"`{path}` can be read")


def _hooks(hooks: Sequence[tuple[_Settings, InstalledHook]]) -> Check:
    if not hooks:
        return Check("hooks", "No hook of Interlock is in Claude Code's settings", _INSTALL)
    there = {hook.event for _, hook in hooks}
    if missing := [hook.event for hook in claude_code.HOOKS if hook.event not in there]:
        return Check("hooks", f"Hooks are missing: {', '.join(missing)}", _INSTALL)
    for file, hook in hooks:
        if hook.event == "PreToolUse" and (fault := claude_code.weakness(file.content, hook)):
            return Check("hooks", f"In `{file.path}` the PreToolUse hook {fault}", _INSTALL)
    paths = dict.fromkeys(str(file.path) for file, _ in hooks)
    return Check("hooks", f"{len(claude_code.HOOKS)} hooks in {', '.join(paths)}")


def _programs(
    hooks: Sequence[InstalledHook], home: Path, around: Path, environment: Mapping[str, str]
) -> Iterator[Check]:
    for other in dict.fromkeys(hook.home for hook in hooks):
        yield _check_launcher(f"{other}/{LAUNCHER}", around, environment)
        if os.path.realpath(other) != os.path.realpath(home):
            what = f"The hooks use the data home `{other}`, and this command `{home}`"
            yield Check("home", what, f"Set INTERLOCK_HOME to the right one. {_INSTALL}")


def _check_launcher(launcher: str, around: Path, environment: Mapping[str, str]) -> Check:
    if not os.access(launcher, os.R_OK):
        return Check("program", f"The hooks name `{launcher}`, which is not there", _INSTALL)
    command = ["/bin/sh", launcher, "--version"]
    ran = run_with_timeout(command, b"", around, environment, HOOK_SECONDS)
    if not isinstance(ran, str) and ran.code == 0:
        return Check("program", f"`{launcher}` starts {last_line(ran.out)}")
    why = ran if isinstance(ran, str) else f"does not start Interlock: {last_line(ran.err)}"
    return Check("program", f"`{launcher}` {why}", _INSTALL)


def _check_sandbox(files: Sequence[_Settings], home: Path) -> Check:
    """Whether commands run where they cannot write. Without it, the gate asks about them."""
    asked = "so the gate asks before a command that may write"
    if (abi := landlock_abi()) < ABI_MIN:
        return Check("sandbox", f"This machine cannot confine commands, {asked}")
    own_shells = [shell_script(str(home), name) for name in SHELLS]
    if not all(own_shells):
        return Check("sandbox", f"The path `{home}` contains the name of a shell, {asked}")
    shells = [name for file in files if (name := claude_code.shell_in(file.content)) is not None]
    if not shells:
        hint = f"Run `interlock install {HOST}` (for the user, not for the project)."
        return Check("sandbox", f"Claude Code's commands are not confined, {asked}", hint)
    # Those of a project come later, and win.
    if shells[-1] not in own_shells:
        return Check("sandbox", f"The settings name a shell (`{shells[-1]}`), {asked}")
    if not os.access(shells[-1], os.X_OK):
        return Check("sandbox", f"The shell `{shells[-1]}` is not there, {asked}", _INSTALL)
    return Check("sandbox", f"In analysis and planning commands cannot write (Landlock {abi})")


def _check_client(environment: Mapping[str, str]) -> list[Check]:
    """The client's version, and whether it blocks tool calls when a hook fails."""
    program = which(HOST_PROGRAM, path=environment.get("PATH"))
    if program is None:
        return []
    ran = run_with_timeout([program, "--version"], b"", Path("/"), environment, HOOK_SECONDS)
    version = last_line(ran.out).partition(" ")[0] if not isinstance(ran, str) else ""
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if not numbers:
        return []
    if numbers < claude_code.BLOCKS_ON_FAILURE:
        known = ".".join(map(str, claude_code.BLOCKS_ON_FAILURE))
        what = f"Claude Code {version}: a hook that takes too long lets the tool call pass"
        return [Check("client", what, f"Update it: {known} is known to block then.")]
    return [Check("client", f"Claude Code {version}: a hook that fails blocks the tool call")]


def _server(around: Path, environment: Mapping[str, str]) -> Check:
    entry = None
    for path in (
        claude_code.client_files("project", around).servers,
        claude_code.client_files("user", Path.home()).servers,
    ):
        content = _read(path)
        if isinstance(content, Check):
            return msgspec.structs.replace(content, name="server")
        if content and (entry := claude_code.server_in(content, around)):
            break
    if not entry:
        return Check("server", "Claude Code knows no MCP server `interlock`", _INSTALL)
    words = claude_code.start_of(entry)
    if words is None:
        return Check("server", f"The entry of the MCP server in `{path}` has no command", _INSTALL)
    command, more = words
    ran = run_with_timeout(command, LISTING, around, {**environment, **more}, SERVER_SECONDS)
    if isinstance(ran, str):
        return Check("server", f"The MCP server in `{path}` {ran}", _INSTALL)
    count = tools_in(ran.out)
    if not count:
        what = (
            f"The MCP server in `{path}` does not answer: {last_line(ran.err) or 'it says nothing'}"
        )
        return Check("server", what, _INSTALL)
    return Check("server", f"The MCP server starts and has {count} tools")


def _proofs(
    hooks: Sequence[InstalledHook], root: Path, environment: Mapping[str, str], *, is_off: bool
) -> Iterator[Check]:
    """Run the gate as the client would: a writing call must be denied, a reading one passed."""
    env = {**environment, "CLAUDE_PROJECT_DIR": str(root)}
    commands = dict.fromkeys(hook.command for hook in hooks if hook.event == "PreToolUse")
    for command in commands:
        session = f"{PROBE_SESSION_PREFIX}{os.urandom(8).hex()}"
        path = str(root / f"{session}.txt")
        for tool, tool_input in (
            ("Write", {"file_path": path, "content": "x"}),
            ("Read", {"file_path": path}),
        ):
            payload = {
                "session_id": session,
                "cwd": str(root),
                "permission_mode": "default",
                "hook_event_name": "PreToolUse",
                "tool_name": tool,
                "tool_input": tool_input,
                "tool_use_id": f"toolu_{session}",
            }
            content = msgspec.json.encode(payload)
            ran = run_with_timeout(["/bin/sh", "-c", command], content, root, env, HOOK_SECONDS)
            yield (
                _check_write_denied(ran, is_off=is_off)
                if tool == "Write"
                else _check_read_passes(ran)
            )


def _check_write_denied(ran: CompletedCommand | str, *, is_off: bool) -> Check:
    if isinstance(ran, str):
        return Check("block", f"The PreToolUse hook {ran}", _INSTALL)
    if ran.code == 2 and ran.err.strip():  # noqa: PLR2004 (the code with which a hook denies)
        return Check("block", "A write of an unknown session was denied")
    try:
        decision = msgspec.json.decode(ran.out, type=_Answer).hook_specific_output
    except msgspec.MsgspecError:
        decision = _Decision()
    if ran.code == 0 and decision.permission_decision == "deny":
        return Check("block", "A write of an unknown session was denied")
    if is_off:
        what = "A write of an unknown session was not denied, because the gate is off"
        return Check("block", what, "Look again when the gate is on.")
    what = f"A write of an unknown session was NOT denied (exit code {ran.code})"
    hint = f"{last_line(ran.err) or 'The hook said nothing.'} {_INSTALL}"
    return Check("block", what, hint)


class _Decision(msgspec.Struct, frozen=True, rename="camel"):
    permission_decision: str = ""


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    hook_specific_output: _Decision = _Decision()


def _check_read_passes(ran: CompletedCommand | str) -> Check:
    if isinstance(ran, str):
        return Check("pass", f"The PreToolUse hook {ran}", _INSTALL)
    if ran.code == 0 and not ran.out.strip():
        return Check("pass", "A read passed")
    message = last_line(ran.err) or last_line(ran.out)
    what = f"A read did not pass silently (exit code {ran.code}): {message}"
    return Check("pass", what, _INSTALL)


class _StoredOverride(msgspec.Struct, frozen=True, rename="camel"):
    until_ms: int
    who: str = "unknown"


def _check_override(home: Path, now_ms: int) -> Check:
    path = home / tool_calls.OVERRIDE_FILE
    try:
        content = file_replacement.content_of(path)
        stored = msgspec.json.decode(content, type=_StoredOverride) if content is not None else None
    except (OSError, msgspec.MsgspecError):
        what = f"`{path}` cannot be read; the gate is on as if it were not there"
        return Check("gate", what, "Remove the file.")
    if stored is None or stored.until_ms <= now_ms:
        return Check("gate", "The gate is on")
    minutes = -((now_ms - stored.until_ms) // 60_000)  # rounded up
    what = f"The gate was switched off by {stored.who}, for {minutes} more minutes"
    return Check("gate", what, f"It comes back by itself, or at once without `{path}`.")


def _check_hooks_heard(
    home: Path, root: Path, environment: Mapping[str, str], now_ms: int
) -> Check:
    """Whether the client's hooks have run while there was work."""
    since = now_ms - DAY_MS
    try:
        known_installs = install_manifest.load(home)
        for scope, place in (("project", root), ("user", Path.home())):
            if known := install_manifest.find_install(known_installs, HOST, scope, place):
                since = max(since, known.at_ms)
        if any(
            line.host == HOST
            and line.at_ms >= since
            and not line.host_session.startswith(PROBE_SESSION_PREFIX)
            for line in spool.lines(home)
        ):
            return Check("heard", "Hooks were heard of within the last day")
        count = _sessions_since(home, root, environment, since)
    except SettingsBroken as broken:
        return Check("heard", str(broken), "Correct the file, or move it away.")
    except StoreFailure as failure:
        return Check("heard", str(failure), failure.hint)
    if count:
        what = f"{count} sessions went on here, and no hook of Claude Code was heard of"
        hint = "Restart Claude Code; `/hooks` in it shows which hooks it has taken up."
        return Check("heard", what, hint)
    return Check("heard", "No work went on here within the last day")


def _sessions_since(home: Path, root: Path, environment: Mapping[str, str], since_ms: int) -> int:
    if not has_store(home, environment):
        return 0
    app = open_app(home)
    try:
        rows = app.reader.newest_runs(limit=RUNS_MAX)
    finally:
        app.close()
    recent = [row for row in rows if row.updated_ms >= since_ms]
    return len({row.session for row in recent if f"{row.workspace}/".startswith(f"{root}/")})
