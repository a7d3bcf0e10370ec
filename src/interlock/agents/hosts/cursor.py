"""Cursor. From its documentation; not tried with the real client.

One event that it does not know makes it reject the whole file, so only documented ones are here.
"""

from interlock.agents.hosts import host
from interlock.agents.hosts.host import Event, Host, JsonPart, OwnFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.agents.hosts.host import Outcome, Scope, TomlPart


class Cursor(Host):
    name = "cursor"
    title = "Cursor"
    program = "cursor-agent"
    skill_folders = (".cursor/skills", ".claude/skills", ".agents/skills")
    is_tried = False
    tools = {
        "read": "Read TodoWrite",
        "search": "Grep Glob LS SemanticSearch",
        "web": "WebFetch WebSearch",
        "edit": "Write StrReplace TabWrite Delete EditNotebook",
        "shell": "Shell",
        "agent": "Task",
        "ask": "AskQuestion",
    }
    events = (
        Event("sessionStart", "session-start", 10),
        Event("beforeSubmitPrompt", "prompt-submit"),
        Event("preToolUse", "pre-tool", 10, failClosed=True),
        Event("postToolUse", "post-tool", matcher="Shell"),
        Event("postToolUseFailure", "tool-failed", matcher="Shell"),
        Event("stop", "stop"),
        Event("preCompact", "pre-compact"),
        Event("sessionEnd", "session-end"),
    )
    variables = ("CURSOR_AGENT",)
    holds_one = False
    heard_events = ("session-start", "post-tool")
    fail_closed_since = (0,)
    enforcement = (
        "it denies but cannot ask; a hook that fails blocks the call; it does not name the server"
        " of a tool, so another server's tool passes if it has the name of one of ours"
    )

    def read_payload(self, payload: "dict[str, Any]") -> "dict[str, Any]":
        roots = payload.get("workspace_roots")
        first = roots[0] if type(roots) is list and roots else ""  # pyright: ignore[reportUnknownVariableType]
        loops = payload.get("loop_count")
        return {
            **payload,
            "session_id": payload.get("conversation_id") or payload.get("session_id"),
            "cwd": payload.get("cwd") or first,
            "stop_hook_active": type(loops) is int and loops > 0,
        }

    def outcome(self, event: str, payload: "dict[str, Any]") -> "Outcome":
        return "failure" if event == "tool-failed" else "success"

    def encode_decision(self, answer: str, reason: str) -> "dict[str, Any]":
        return {"permission": answer, "user_message": reason, "agent_message": reason}

    def encode_context(self, event: str, text: str, remark: str = "") -> "dict[str, Any]":
        if event in self.heard_events:
            return {"additional_context": text} if text else {}
        told = (text or remark) if event == "prompt-submit" else ""
        return {"user_message": told} if told else {}

    def encode_stop(self, reason: str) -> "dict[str, Any]":
        return {"followup_message": reason}

    def example_call(self, session: str, cwd: str, kind: str) -> "dict[str, Any]":
        usual = super().example_call(session, cwd, kind)
        return {**usual, "conversation_id": session, "workspace_roots": [cwd]}

    def manual_entries(
        self, server: "list[str]", variables: "Mapping[str, str]"
    ) -> "list[tuple[str, str | dict[str, Any]]]":
        command, *arguments = server
        entry = {"type": "stdio", "command": command, "args": arguments, "env": {**variables}}
        return [("~/.cursor/mcp.json", {"mcpServers": {host.SERVER: entry}})]

    def manual_http_entry(
        self, address: str, variable: str, secret: str
    ) -> "tuple[str, str | dict[str, Any]]":
        headers = {"Authorization": f"Bearer ${{env:{variable}}}"}
        entry = {"url": address, "headers": headers}
        return "~/.cursor/mcp.json", {"mcpServers": {host.SERVER: entry}}

    def command_part(
        self, folder: str, name: str, description: str, arguments: str, text: str
    ) -> OwnFile:
        path = f"{host.commands_beside(folder, 'commands')}/{name}.md"
        return OwnFile(path, f"the command `/{name}`", text)

    def parts(
        self, scope: "Scope", root: str, home: str, environment: "Mapping[str, str]"
    ) -> "list[JsonPart | TomlPart | OwnFile]":
        folder = f"{root}/.cursor"
        hooks: dict[str, Any] = {}
        for event in self.events:
            entry = {"command": self.command(event, home, scope), "timeout": event.seconds}
            matcher = {"matcher": event.matcher} if event.matcher else {}
            more = event.more if scope == "user" else {}
            hooks.setdefault(event.native, []).append({**entry, **matcher, **more})
        command, *arguments = host.server_command(home, scope)
        server = {
            "type": "stdio",
            "command": command,
            "args": arguments,
            "env": host.server_variables(home, scope),
        }
        return [
            JsonPart(
                *(f"{folder}/hooks.json", f"{len(self.events)} hooks"),
                {"version": 1, "hooks": hooks},
            ),
            JsonPart(
                *(f"{folder}/mcp.json", f"the MCP server `{host.SERVER}`"),
                {"mcpServers": {host.SERVER: server}},
                servers="mcpServers",
            ),
            *(
                OwnFile(f"{folder}/commands/{name}.md", f"the command `/{name}`", text)
                for name, (_, _, text) in host.COMMANDS.items()
            ),
        ]


HOST = Cursor()
