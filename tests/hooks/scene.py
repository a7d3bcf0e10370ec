"""A project with a conversation in it, before which the fast and the full hook are compared."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from interlock.agents.hosts.host import Host
from interlock.agents.hosts.registry import PLAIN_NAMES, all_hosts, host_named
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import Mode
from interlock.core.gate.tools import class_of
from interlock.core.protocol.gated_session import Conversation
from interlock.hooks import fast
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent, HookResult
from tests.hooks.clients import TOOLS
from tests.sessions import begin_recorded

HOST = "claude-code"
PLAIN_HOSTS = PLAIN_NAMES
"""The hosts whose payloads the fast hook reads."""
UNLISTED = (
    *("mcp__interlock__session", "mcp__plugin_interlock_interlock__session", "mcp_interlock_x"),
    *("mcp_interlock_session", "interlock_session", "interlock_x", "interlock_write_note"),
    *("MCP:session", "interlock-session", "MCP:interlock session"),
    *("mcp__other__thing", "mcp_other", "MCP:other x"),
    *("Brandnew", "brandnew_tool", "Read ", "READ", "mcp", "interlock", "", "Über"),
)
NOTED: tuple[HookEvent, ...] = ("post-tool", "tool-failed", "session-end")
"""The events of which only a line is left."""


def inputs_of(host: str) -> dict[str, dict[str, Any]]:
    """The usual input of a tool of a host, by its class."""
    return {"edit": TOOLS[host]["edit"][1], "shell": {"command": "ls src"}}


INPUTS = inputs_of(HOST)


def tools_of(host: str) -> tuple[str, ...]:
    """The tools that a host lists, those that others list, and some that nobody knows."""
    own = [name for names in host_named(host).tools.values() for name in names.split()]
    others = [name for other in all_hosts() for name in other.tools["edit"].split()[:1]]
    return (*dict.fromkeys((*own, *others, "bash", "read", "apply_patch", *UNLISTED)),)


class Scene:
    """A project, and a conversation that is bound to a session in it."""

    def __init__(self, app: App, home: Path, base: Path, host: str = HOST) -> None:
        self.app, self.home, self.base = app, home, base
        self.host: Host = host_named(host)
        self.project = base / "project"
        self.project.mkdir()
        self.cwd: Path | str = self.project
        opt_in(self.project, "standard")
        self.config = self.project / ".interlock" / "config.toml"
        self.session = begin_recorded(app, self.project, Conversation(host, "host-1")).session

    def goes_to(self, mode: Mode) -> None:
        gated_sessions.change_mode(self.app, self.session, mode, by="user", task="T-1")

    def kind(self, tool: str) -> str:
        """The class of a tool, as the full hook sees it."""
        return class_of(self.host.class_of(tool), tool)

    def payload(self, tool: str, given: object = None, **more: object) -> bytes:
        text = json.dumps(given).replace("<PROJECT>", str(self.project))
        fields = {"session_id": "host-1", "cwd": str(self.cwd), "tool_name": tool, **more}
        return json.dumps({**fields, "tool_input": json.loads(text)}).encode()

    def is_fast(self, content: bytes, event: HookEvent = "pre-tool") -> bool:
        """Whether the fast hook does without the full one."""
        try:
            return fast.run(self.host.name, event, str(self.home), content)
        except Exception:  # noqa: BLE001 (as `fast.main` takes it)
            return False

    def full(self, content: bytes, event: HookEvent = "pre-tool") -> HookResult:
        """The answer of the full hook."""
        return run_hook(self.host, event, self.home, content)

    def agrees(self, content: bytes) -> bool:
        """Whether the fast hook was enough; what it allows, the full one allows in silence."""
        is_fast = self.is_fast(content)
        if is_fast:
            assert self.full(content) == HookResult(), content[:500]
        return is_fast

    def sql(self, statement: str) -> None:
        with sqlite3.connect(self.home / "gate.db") as db:
            db.executescript(statement)
        db.close()

    def asks(self, text: str) -> None:
        """The config says so now, and the gate was told."""
        self.config.write_text(text)
        gated_sessions.change_status(self.app, self.session, "paused", "")
        gated_sessions.change_status(self.app, self.session, "active", "")
