"""Clients as the tests play them: each sends and reads in the form of its own host."""

import json
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.agents.hosts.host import Host
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.callers import agent_detection
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import Mode
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookEvent, HookResult
from interlock.workspace.machine import processes
from interlock.workspace.machine.processes import Process
from tests.sessions import begin_recorded

ASKING = tuple(name for name in NAMES if host_named(name).asks)
"""The hosts that can put a question to the user."""
TOOLS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "claude-code": {
        "read": ("Read", {"file_path": "<PROJECT>/a.py"}),
        "edit": ("Write", {"file_path": "<PROJECT>/a.py", "content": "x"}),
        "shell": ("Bash", {"command": "make", "description": "build"}),
        "own": ("mcp__interlock__session", {}),
    },
    "codex": {
        "read": ("view_image", {"path": "<PROJECT>/a.png"}),
        "edit": ("apply_patch", {"command": "*** Begin Patch\n*** Add File: a.py\n+x\n"}),
        "shell": ("Bash", {"command": "make"}),
        "own": ("mcp__interlock__session", {}),
    },
    "gemini": {
        "read": ("read_file", {"file_path": "<PROJECT>/a.py"}),
        "edit": ("write_file", {"file_path": "<PROJECT>/a.py", "content": "x"}),
        "shell": ("run_shell_command", {"command": "make", "description": "build"}),
        "own": ("mcp_interlock_session", {}),
    },
    "opencode": {
        "read": ("read", {"filePath": "<PROJECT>/a.py"}),
        "edit": ("write", {"filePath": "<PROJECT>/a.py", "content": "x"}),
        "shell": ("bash", {"command": "make", "description": "build"}),
        "own": ("interlock_session", {}),
    },
    "cursor": {
        "read": ("Read", {"file_path": "<PROJECT>/a.py"}),
        "edit": ("Write", {"file_path": "<PROJECT>/a.py", "content": "x"}),
        "shell": ("Shell", {"command": "make", "working_directory": "<PROJECT>"}),
        "own": ("MCP:session", {}),
    },
    "copilot": {
        "read": ("view", {"path": "<PROJECT>/a.py"}),
        "edit": ("create", {"path": "<PROJECT>/a.py", "file_text": "x"}),
        "shell": ("bash", {"command": "make", "description": "build", "mode": "sync"}),
        "own": ("interlock-session", {}),
    },
}
"""Calls of the tools of each host, by their class. The command may do more than read."""
COPILOT_NAMES = {
    "session_id": "sessionId",
    "tool_name": "toolName",
    "tool_input": "toolArgs",
    "tool_response": "toolResult",
    "transcript_path": "transcriptPath",
    "agent_id": "agentId",
}
_numbers = count(1)


class Decision(NamedTuple):
    answer: str
    """allow, where nothing is said; deny or ask."""
    reason: str
    raw: dict[str, Any]


class Client:
    """A client with one conversation in a project that has opted in."""

    def __init__(self, app: App, home: Path, project: Path, host: str) -> None:
        self.app, self.home, self.project = app, home, project
        self.host: Host = host_named(host)
        self.conversation = f"talk-{next(_numbers)}"
        if not (project / ".interlock" / "config.toml").exists():
            opt_in(project, "standard")

    def begin(self, mode: Mode = "analysis") -> SessionId:
        """Have a session in this mode, of which something is recorded."""
        conversation = Conversation(self.host.name, self.conversation)
        session = begin_recorded(self.app, self.project, conversation).session
        gated_sessions.change_mode(self.app, session, mode, by="user", task="T-1")
        return session

    def payload(self, event: HookEvent, **fields: Any) -> dict[str, Any]:
        """The payload of an event, in the form of the host."""
        usual = {"session_id": self.conversation, "cwd": str(self.project), **fields}
        match self.host.name:
            case "cursor":
                own = {"conversation_id": usual.pop("session_id"), "cursor_version": "3.14.7"}
                is_again = usual.pop("stop_hook_active", False)
                more = {"loop_count": int(is_again)} if event == "stop" else {}
                return {**own, "workspace_roots": [usual["cwd"]], **usual, **more}
            case "copilot":
                renamed = {COPILOT_NAMES.get(key, key): value for key, value in usual.items()}
                return {"timestamp": 1_788_547_866_546, **renamed}
            case "gemini":
                own = {"timestamp": "2026-11-17T00:06:33.522Z"}
                return {**own, "hook_event_name": self.host.native_event(event), **usual}
            case _:
                return {"hook_event_name": self.host.native_event(event), **usual}

    def send(self, event: HookEvent, **fields: Any) -> HookResult:
        content = json.dumps(self.payload(event, **fields)).encode()
        return run_hook(self.host, event, self.home, content)

    def told(self, event: HookEvent, **fields: Any) -> dict[str, Any]:
        """The answer to an event; nothing if there is none."""
        outcome = self.send(event, **fields)
        assert (outcome.code, outcome.err) == (0, "")
        return json.loads(outcome.out) if outcome.out else {}

    def tool(self, kind: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
        """The fields of a call of this class; its input can be changed."""
        name, given = TOOLS[self.host.name][kind]
        text = json.dumps({**given, **(changes or {})}).replace("<PROJECT>", str(self.project))
        fields = {"tool_name": name, "tool_input": json.loads(text)}
        has_id = self.host.name not in ("gemini", "copilot")
        return {**fields, **({"tool_use_id": f"call-{next(_numbers)}"} if has_id else {})}

    def call(self, kind: str, changes: dict[str, Any] | None = None, **fields: Any) -> Decision:
        """The answer to a call of this class. `fields` are those beside the tool."""
        raw = self.told("pre-tool", **self.tool(kind, changes), **fields)
        return read_decision(self.host.name, raw)

    def mode(self) -> str:
        """The mode of the session."""
        from interlock.app.gate import bound_conversations  # noqa: PLC0415 (only some ask)

        state = bound_conversations.state_of(self.home, self.host.name, self.conversation)
        return state.mode if state else ""


def read_decision(host: str, answer: dict[str, Any]) -> Decision:
    """A decision as the client of this host reads it."""
    match host:
        case "claude-code" | "codex":
            found = answer.get("hookSpecificOutput", {})
            names = ("permissionDecision", "permissionDecisionReason")
        case "cursor":
            found, names = answer, ("permission", "agent_message")
        case "copilot":
            found, names = answer, ("permissionDecision", "permissionDecisionReason")
        case _:
            found, names = answer, ("decision", "reason")
    return Decision(found.get(names[0], "allow"), found.get(names[1], ""), answer)


def text_of(answer: dict[str, Any]) -> str:
    """The words to the model in an answer, or those to the user where there are no others."""
    nested = answer.get("hookSpecificOutput", {})
    found = [answer.get(key) for key in ("context", "additional_context", "user_message")]
    return next(filter(None, (nested.get("additionalContext"), *found)), "")


def attend(patch: pytest.MonkeyPatch, host: Host, *words: str, has_terminal: bool = True) -> None:
    """A client of this host runs the hooks, at a terminal or not, with these arguments."""
    patch.delenv("CLAUDE_CODE_SESSION_ATTENDED", raising=False)
    process = Process(4_242, "1@boot", host.program)
    told = has_terminal, (host.program, *words)
    patch.setattr(agent_detection, "ancestors", lambda _: [process])  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    patch.setattr(processes, "terminal_and_words", lambda _: told)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    # Somebody else may have this number: what its input is would decide.
    patch.setattr(processes, "reads_terminal", lambda _: has_terminal)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
