"""Copilot: its CLI, and the agent in VS Code. From documentation; not tried with a real client.

The two read the same hooks and differ in their payloads and answers. An answer is written in both
forms at once: each takes its own and leaves the other alone.
"""

import sys

from interlock.agents.hosts import host
from interlock.agents.hosts.host import Event, Host, JsonPart, OwnFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.agents.hosts.host import Outcome, Scope, TomlPart

_NATIVE_FIELDS = {
    "sessionId": "session_id",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "transcriptPath": "transcript_path",
    "agentId": "agent_id",
    "toolResult": "tool_response",
}
_EXIT_CODE = "completed with exit code "
_VSCODE_EVENTS = {
    "session-start": "SessionStart",
    "prompt-submit": "UserPromptSubmit",
    "pre-tool": "PreToolUse",
    "subagent-start": "SubagentStart",
    "post-tool": "PostToolUse",
}


class Copilot(Host):
    name = "copilot"
    title = "Copilot"
    program = "copilot"
    skill_folders = (".github/skills", ".claude/skills", ".agents/skills")
    packages = ("@github/copilot",)
    is_tried = False
    tools = {
        "read": "view read read_file report_intent update_todo manage_todo_list get_errors",
        "search": "grep rg glob list list_dir file_search grep_search semantic_search",
        "web": "web_fetch web_search fetch fetch_webpage",
        "edit": "create edit str_replace_editor apply_patch write create_file"
        " replace_string_in_file multi_replace_string_in_file insert_edit_into_file"
        " edit_notebook_file create_directory editFiles",
        "shell": "bash powershell shell write_bash read_bash stop_bash run_in_terminal"
        " runTerminalCommand",
        "agent": "task agent runSubagent",
        "ask": "ask_user",
    }
    events = (
        Event("sessionStart", "session-start", 10),
        Event("userPromptSubmitted", "prompt-submit"),
        Event("preToolUse", "pre-tool", 10),
        Event("postToolUse", "post-tool"),
        Event("agentStop", "stop"),
        Event("subagentStart", "subagent-start"),
        Event("preCompact", "pre-compact"),
        Event("sessionEnd", "session-end"),
    )
    variables = ("COPILOT_AGENT", "COPILOT_AGENT_SESSION_ID", "COPILOT_CLI")
    holds_one = False
    asks = True
    # Of what is said to a prompt, its documentation says that it is not read.
    heard_events = ("session-start", "pre-tool", "post-tool", "subagent-start")
    enforcement = (
        "the CLI denies and asks, and blocks the call if the hook fails, but not if it is too slow;"
        " in VS Code a call whose hook fails passes"
    )

    def read_payload(self, payload: "dict[str, Any]") -> "dict[str, Any]":
        usual = {**payload}
        for native, name in _NATIVE_FIELDS.items():
            if native in payload:
                usual[name] = payload[native]
        if type(usual.get("tool_input")) is str:
            usual["tool_input"] = _decode(usual["tool_input"])
        return usual

    def outcome(self, event: str, payload: "dict[str, Any]") -> "Outcome":
        response = payload.get("tool_response")
        text = host.as_object(response).get("textResultForLlm", response)
        if type(text) is not str or _EXIT_CODE not in text:
            return "unknown"
        code = text.rpartition(_EXIT_CODE)[2].partition(">")[0]
        return "success" if code.strip() == "0" else "failure"

    def encode_decision(self, answer: str, reason: str) -> "dict[str, Any]":
        fields = {"permissionDecision": answer, "permissionDecisionReason": reason}
        return {**fields, "hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}

    def encode_context(self, event: str, text: str, remark: str = "") -> "dict[str, Any]":
        nested = {"hookEventName": _VSCODE_EVENTS.get(event, ""), "additionalContext": text}
        told = {"additionalContext": text, "hookSpecificOutput": nested} if text else {}
        return {**told, **({"systemMessage": remark} if remark else {})}

    def encode_stop(self, reason: str) -> "dict[str, Any]":
        block = {"decision": "block", "reason": reason}
        return {**block, "hookSpecificOutput": {"hookEventName": "Stop", **block}}

    def example_call(self, session: str, cwd: str, kind: str) -> "dict[str, Any]":
        usual = super().example_call(session, cwd, kind)
        return {
            "sessionId": session,
            "timestamp": 0,
            "cwd": cwd,
            "toolName": usual["tool_name"],
            "toolArgs": {"path": usual["tool_input"]["file_path"]},
        }

    def manual_entries(
        self, server: "list[str]", variables: "Mapping[str, str]"
    ) -> "list[tuple[str, str | dict[str, Any]]]":
        command, *arguments = server
        entry = {"command": command, "args": arguments, "env": {**variables}}
        for_cli = {"mcpServers": {host.SERVER: {"type": "local", **entry, "tools": ["*"]}}}
        for_vscode = {"servers": {host.SERVER: {"type": "stdio", **entry}}}
        return [("~/.copilot/mcp-config.json", for_cli), (".vscode/mcp.json", for_vscode)]

    def manual_http_entry(
        self, address: str, variable: str, secret: str
    ) -> "tuple[str, str | dict[str, Any]]":
        asked = {
            "type": "promptString",
            "id": host.SERVER,
            "description": f"The content of {secret}",
            "password": True,
        }
        headers = {"Authorization": f"Bearer ${{input:{host.SERVER}}}"}
        entry = {"type": "http", "url": address, "headers": headers}
        servers = {"inputs": [asked], "servers": {host.SERVER: entry}}
        return f".vscode/mcp.json, which asks for the content of {secret}", servers

    def skill_home(self, scope: "Scope", root: str, environment: "Mapping[str, str]") -> str:
        # It offers every skill as `/NAME`, so that the commands are skills.
        if scope == "project":
            return f"{root}/.github/skills"
        return f"{environment.get('COPILOT_HOME') or f'{root}/.copilot'}/skills"

    def parts(
        self, scope: "Scope", root: str, home: str, environment: "Mapping[str, str]"
    ) -> "list[JsonPart | TomlPart | OwnFile]":
        hooks: dict[str, Any] = {}
        for event in self.events:
            command = self.command(event, home, scope)
            entry = {"type": "command", "bash": command, "timeoutSec": event.seconds}
            hooks.setdefault(event.native, []).append(entry)
        hooks_file = {"version": 1, "hooks": hooks}
        command, *arguments = host.server_command(home, scope)
        server = {"command": command, "args": arguments, "env": host.server_variables(home, scope)}
        for_cli = {"mcpServers": {host.SERVER: {"type": "local", **server, "tools": ["*"]}}}
        for_vscode = {"servers": {host.SERVER: {"type": "stdio", **server}}}
        what = f"the MCP server `{host.SERVER}`"
        if scope == "project":
            return [
                OwnFile(
                    *(f"{root}/.github/hooks/interlock.json", f"{len(hooks)} hooks", hooks_file),
                    is_watched=True,
                ),
                JsonPart(f"{root}/.github/mcp.json", what, for_cli, servers="mcpServers"),
                JsonPart(f"{root}/.vscode/mcp.json", what, for_vscode, servers="servers"),
            ]
        folder = environment.get("COPILOT_HOME") or f"{root}/.copilot"
        editor = f"{root}/.config/Code/User"
        if sys.platform == "darwin":
            editor = f"{root}/Library/Application Support/Code/User"
        return [
            OwnFile(
                *(f"{folder}/hooks/interlock.json", f"{len(hooks)} hooks", hooks_file),
                is_watched=True,
            ),
            JsonPart(f"{folder}/mcp-config.json", what, for_cli, servers="mcpServers"),
            JsonPart(
                *(f"{editor}/mcp.json", f"{what} in VS Code", for_vscode),
                servers="servers",
                is_optional=True,
            ),
        ]


def _decode(text: str) -> "Any":
    """An older CLI sends the arguments as the text of an object."""
    import json  # noqa: PLC0415 (only the full hook comes here)

    try:
        return json.loads(text)
    except ValueError:
        return text


HOST = Copilot()
