"""Prove an installation by running it as the client would: the hooks, the launcher, the server."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.hosts.host import LAUNCHER, Host
from interlock.agents.hosts.own_entries import home_in, start_of
from interlock.app.hosts.probe import CompletedCommand, last_line, run_with_timeout
from interlock.core.canonical import Json


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


HOOK_SECONDS = 10
SERVER_SECONDS = 20
PROBE_SESSION_PREFIX = "interlock-doctor-"
"""The beginning of the names of the sessions of our own test calls."""
DENYING_EXIT_CODE = 2


def check_launchers(
    host: Host, commands: Iterable[str], home: Path, around: Path, environment: Mapping[str, str]
) -> Iterator[Check]:
    """Whether what the hooks name is there, and starts this Interlock."""
    for other in dict.fromkeys(home_in(command) or str(home) for command in commands):
        yield _check_launcher(host, f"{other}/{LAUNCHER}", around, environment)
        if os.path.realpath(other) != os.path.realpath(home):
            what = f"The hooks use the data home `{other}`, and this command `{home}`"
            yield Check("home", what, f"Set INTERLOCK_HOME to the right one. {install_hint(host)}")


def install_hint(host: Host) -> str:
    return f"Run `interlock install {host.name}`."


def _check_launcher(
    host: Host, launcher: str, around: Path, environment: Mapping[str, str]
) -> Check:
    hint = install_hint(host)
    if not os.access(launcher, os.R_OK):
        return Check("program", f"The hooks name `{launcher}`, which is not there", hint)
    command = ["/bin/sh", launcher, "--version"]
    ran = run_with_timeout(command, b"", around, environment, HOOK_SECONDS)
    if not isinstance(ran, str) and ran.code == 0:
        return Check("program", f"`{launcher}` starts {last_line(ran.out)}")
    why = ran if isinstance(ran, str) else f"does not start Interlock: {last_line(ran.err)}"
    return Check("program", f"`{launcher}` {why}", hint)


def check_server(
    host: Host, entry: Mapping[str, Json] | None, around: Path, environment: Mapping[str, str]
) -> Check:
    """Whether the server of the client's configuration starts, lists tools and can be called."""
    hint = install_hint(host)
    if not entry:
        return Check("server", f"{host.title} knows no MCP server `interlock`", hint)
    words = start_of(entry)
    if words is None:
        return Check("server", "The entry of the MCP server has no command", hint)
    command, more = words
    ran = run_with_timeout(command, LISTING, around, {**environment, **more}, SERVER_SECONDS)
    if isinstance(ran, str):
        return Check("server", f"The MCP server {ran}", hint)
    count = tools_in(ran.out)
    if not count:
        why = last_line(ran.err) or "it says nothing"
        return Check("server", f"The MCP server does not answer: {why}", hint)
    if ran.code:
        # It still lists its tools, so that the agent gets the reason with its first call.
        reason = last_line(ran.err.partition(b"\n\nhint: ")[0]) or f"it ends with code {ran.code}"
        what = f"The MCP server has {count} tools and cannot run them: {reason}"
        return Check("server", what, "Correct that, and run `interlock doctor` again.")
    return Check("server", f"The MCP server starts and has {count} tools")


def prove_gate(
    host: Host, commands: Iterable[str], root: Path, environment: Mapping[str, str], *, is_off: bool
) -> Iterator[Check]:
    """Run the gate as the client would: a writing call must be denied, a reading one passed."""
    env = {**environment, "CLAUDE_PROJECT_DIR": str(root)}
    for command in dict.fromkeys(commands):
        session = f"{PROBE_SESSION_PREFIX}{os.urandom(8).hex()}"
        for kind in ("edit", "read"):
            content = msgspec.json.encode(host.example_call(session, str(root), kind))
            ran = run_with_timeout(["/bin/sh", "-c", command], content, root, env, HOOK_SECONDS)
            yield (
                _check_write_denied(host, ran, is_off=is_off)
                if kind == "edit"
                else _check_read_passes(host, ran)
            )


def _check_write_denied(host: Host, ran: CompletedCommand | str, *, is_off: bool) -> Check:
    hint = install_hint(host)
    if isinstance(ran, str):
        return Check("block", f"The hook before tool calls {ran}", hint)
    is_denied = ran.code == DENYING_EXIT_CODE and bool(ran.err.strip())
    if is_denied or (ran.code == 0 and host.is_denial(_answer(ran.out))):
        return Check("block", "A write of an unknown session was denied")
    if is_off:
        what = "A write of an unknown session was not denied, because the gate is off"
        return Check("block", what, "Look again when the gate is on.")
    what = f"A write of an unknown session was NOT denied (exit code {ran.code})"
    return Check("block", what, f"{last_line(ran.err) or 'The hook said nothing.'} {hint}")


def _answer(out: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(out, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def _check_read_passes(host: Host, ran: CompletedCommand | str) -> Check:
    if isinstance(ran, str):
        return Check("pass", f"The hook before tool calls {ran}", install_hint(host))
    if ran.code == 0 and not ran.out.strip():
        return Check("pass", "A read passed")
    message = last_line(ran.err) or last_line(ran.out)
    what = f"A read did not pass silently (exit code {ran.code}): {message}"
    return Check("pass", what, install_hint(host))


LISTING = b"".join(
    msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "interlock-doctor", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
)
"""The input of a server that is asked for its tools."""


class _Tools(msgspec.Struct, frozen=True):
    tools: list[msgspec.Raw]


class _Reply(msgspec.Struct, frozen=True):
    id: int
    result: _Tools


def tools_in(out: bytes) -> int:
    """Return the number of tools in the output of a server; 0 where it did not list them."""
    for line in out.splitlines():
        try:
            reply = msgspec.json.decode(line, type=_Reply)
        except msgspec.MsgspecError:
            continue
        return len(reply.result.tools)
    return 0
