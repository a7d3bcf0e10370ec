"""Claude Code. Tried with 2.1.325, and 2.1.197 as an older one."""

from interlock.agents.hosts import host
from interlock.agents.hosts.claude_code_shell import SHELL_VARIABLE, SHELLS
from interlock.agents.hosts.host import Event, Host, JsonPart, NestedAnswers, OwnFile
from interlock.agents.hosts.progress_reports import ReportedSubagent, any_tool, task_in, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.agents.hosts.host import Outcome, Scope, TomlPart


def _command(description: str, arguments: str, text: str) -> str:
    return f"""\
---
description: {description}
argument-hint: "{arguments}"
disable-model-invocation: true
---

{text}"""


_NOTIFICATION = "<task-notification>"
"""The start of the prompt with which the client reports the end of a background subagent."""
_OUTCOMES = {"completed": "completed", "failed": "failed", "killed": "stopped"}
_RECORDED = {
    "plan": "ExitPlanMode",
    "tasks": "TodoWrite TaskCreate TaskUpdate TaskList",
    "subagent": "Agent Task",
}
_COMMANDS = {name: _command(*command) for name, command in host.COMMANDS.items()}


class ClaudeCode(NestedAnswers, Host):
    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    skill_folders = (".claude/skills",)
    packages = ("@anthropic-ai/claude-code",)
    tools = {
        "read": "Read NotebookRead BashOutput TaskOutput TodoRead TodoWrite TaskCreate TaskGet"
        " TaskList TaskUpdate ToolSearch Skill SlashCommand ListMcpResourcesTool"
        " ReadMcpResourceTool TaskStop ListAgents CronList ReportFindings StructuredOutput",
        "search": "Glob Grep LS LSP",
        "web": "WebFetch WebSearch",
        "edit": "Write Edit MultiEdit NotebookEdit",
        "shell": "Bash PowerShell Monitor KillShell KillBash",
        "agent": "Agent Task",
        "ask": "AskUserQuestion ExitPlanMode EnterPlanMode",
    }
    recorded_tools = _RECORDED
    events = (
        Event("SessionStart", "session-start", 10),
        Event("UserPromptSubmit", "prompt-submit"),
        # Without `onFailure` a hook that cannot be started would let every tool call pass.
        Event("PreToolUse", "pre-tool", 10, "*", onFailure="block"),
        Event(
            "PostToolUse",
            "post-tool",
            matcher=any_tool("Bash", *_RECORDED.values()),
        ),
        Event("PostToolUseFailure", "tool-failed", matcher="Bash|Agent|Task"),
        Event("Stop", "stop"),
        Event("SubagentStart", "subagent-start"),
        Event("SubagentStop", "subagent-stop"),
        Event("PreCompact", "pre-compact"),
        Event("SessionEnd", "session-end"),
    )
    variables = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID")
    session_variable = "CLAUDE_CODE_SESSION_ID"
    attended_variable = "CLAUDE_CODE_SESSION_ATTENDED"
    unattended_words = ("-p", "--print")
    asks = True
    elicits = True
    fail_closed_since = (2, 1, 325)
    enforcement = "it denies, asks, and blocks a call whose hook fails or is too slow"

    def other_client(self, payload: "dict[str, Any]", environment: "Mapping[str, str]") -> str:
        if "cursor_version" in payload:
            return "cursor"
        # Claude Code sends no time. In doubt it is Claude Code: two answers are better than none.
        is_ours = environment.get("AI_AGENT", "").startswith("claude-code")
        if "timestamp" not in payload or is_ours:
            return ""
        if environment.get("GEMINI_SESSION_ID", "-") == payload.get("session_id"):
            return "gemini"
        return "copilot" if "sessionId" in payload or environment.get("COPILOT_CLI") else ""

    def outcome(self, event: str, payload: "dict[str, Any]") -> "Outcome":
        if event == "tool-failed":
            return "failure"
        response = host.as_object(payload.get("tool_response"))
        if not response:
            return "unknown"
        # It also comes for what goes on in the background, and for some exit codes besides 0.
        odd = ("backgroundTaskId", "timedOutAfterMs", "returnCodeInterpretation")
        is_odd = any(response.get(key) for key in odd) or response.get("interrupted")
        return "unknown" if is_odd else "success"

    def is_plan_approval(self, event: str, payload: "dict[str, Any]") -> bool:
        # A subagent hands its plan to the agent that it works for, and nobody has approved it.
        is_subagents = payload.get("agent_id") or host.as_object(payload.get("tool_response")).get(
            "isAgent"
        )
        is_left = event == "post-tool" and payload.get("tool_name") == "ExitPlanMode"
        return is_left and not is_subagents

    def is_notice(self, prompt: str) -> bool:
        return prompt.lstrip().startswith(_NOTIFICATION)

    def approved_plan(
        self, payload: "dict[str, Any]", environment: "Mapping[str, str]"
    ) -> "tuple[str, str]":
        is_approved = self.is_plan_approval("post-tool", payload)
        response = host.as_object(payload.get("tool_response"))
        return (text_in(response, "plan") if is_approved else ""), ""

    def reported_tasks(
        self, payload: "dict[str, Any]"
    ) -> "tuple[bool, list[tuple[str, str, str]]] | None":
        response = host.as_object(payload.get("tool_response"))
        if payload.get("tool_name") == "TodoWrite":
            return super().reported_tasks(payload)
        listed: Any = response.get("tasks")
        if type(listed) is list:
            return True, [task_in(item) for item in listed]  # pyright: ignore[reportUnknownVariableType]
        if response.get("success"):
            given = host.as_object(payload.get("tool_input"))
            names = (
                text_in(given, "taskId"),
                text_in(given, "subject"),
            )
            return False, [(*names, text_in(given, "status"))]
        return (False, [task_in(response["task"])]) if "task" in response else None

    def reported_subagent(self, event: str, payload: "dict[str, Any]") -> ReportedSubagent | None:
        if event == "prompt-submit":
            return _notified_subagent(text_in(payload, "prompt"))
        asked = super().reported_subagent(event, payload)
        if asked is None or event == "pre-tool":
            return asked
        response = host.as_object(payload.get("tool_response"))
        asked.name = text_in(response, "agentId")
        if event == "tool-failed":
            asked.status, asked.result = "failed", text_in(payload, "error")
            return asked
        if response.get("status") == "completed":
            parts = host.texts_in(response.get("content"))
            texts = [part for part in parts if part != "text" and not part.startswith("<tools-")]
            asked.status, asked.result = "completed", "\n".join(texts)
        return asked if asked.name else None

    def own_directories(
        self, environment: "Mapping[str, str]", root: str, user: int
    ) -> "tuple[str, ...]":
        config = environment.get("CLAUDE_CONFIG_DIR") or f"{environment.get('HOME', '')}/.claude"
        temporary = environment.get("TMPDIR") or "/tmp"
        return f"{config}/plans", f"{temporary.rstrip('/')}/claude-{user}"

    def settings_files(self, home: str, root: str, environment: "Mapping[str, str]") -> "list[str]":
        shared = f"{root}/.claude/settings"
        return [f"{home}/.claude/settings.json", f"{shared}.json", f"{shared}.local.json"]

    def obstacle(self, settings: "Mapping[str, Any]") -> "tuple[str, str]":
        if settings.get("disableAllHooks"):
            return "says `disableAllHooks`, so no hook runs", "Take that out of the file."
        refused: Any = settings.get("disabledMcpjsonServers")
        if type(refused) is list and host.SERVER in refused:
            what = f"lists `{host.SERVER}` under `disabledMcpjsonServers`"
            return what, "Take it out of that list."
        return "", ""

    def manual_commands(self, server: "list[str]", variables: "Mapping[str, str]") -> "list[str]":
        options = " ".join(f"-e {name}={host.quote(value)}" for name, value in variables.items())
        words = " ".join(host.quote(word) for word in server)
        return ["# Run:", f"claude mcp add {host.SERVER} {options} -- {words}", "# or:"]

    def manual_http_command(self, address: str, secret: str) -> str:
        header = f'"Authorization: Bearer {secret}"'
        return f"claude mcp add --transport http {host.SERVER} {address} --header {header}"

    def manual_entries(
        self, server: "list[str]", variables: "Mapping[str, str]"
    ) -> "list[tuple[str, str | dict[str, Any]]]":
        command, *arguments = server
        entry = {"type": "stdio", "command": command, "args": arguments, "env": {**variables}}
        servers = {"mcpServers": {host.SERVER: {**entry, "alwaysLoad": True}}}
        return [(".mcp.json of the project (alwaysLoad shows the tools at once)", servers)]

    def manual_http_entry(
        self, address: str, variable: str, secret: str
    ) -> "tuple[str, str | dict[str, Any]]":
        headers = {"Authorization": f"Bearer ${{{variable}}}"}
        entry = {"type": "http", "url": address, "headers": headers, "alwaysLoad": True}
        return ".mcp.json of the project", {"mcpServers": {host.SERVER: entry}}

    def command_part(
        self, folder: str, name: str, description: str, arguments: str, text: str
    ) -> OwnFile:
        path = f"{host.commands_beside(folder, 'commands')}/{name}.md"
        return OwnFile(path, f"the command `/{name}`", _command(description, arguments, text))

    def parts(
        self, scope: "Scope", root: str, home: str, environment: "Mapping[str, str]"
    ) -> "list[JsonPart | TomlPart | OwnFile]":
        servers = f"{root}/.mcp.json" if scope == "project" else f"{root}/.claude.json"
        settings: dict[str, Any] = {"hooks": host.matcher_groups(self, home, scope)}
        if scope == "user":
            # It has to ask again by itself: a mode that is changed elsewhere redraws nothing.
            line = f"/bin/sh {host.quote(f'{home}/{host.LAUNCHER}')} statusline"
            settings["statusLine"] = {"type": "command", "command": line, "refreshInterval": 10}
            if script := environment.get(SHELL_VARIABLE):
                settings = {"env": {SHELL_VARIABLE: script}, **settings}
        what = f"{len(self.events)} hooks{', the shell for commands' if 'env' in settings else ''}"
        return [
            JsonPart(f"{root}/.claude/settings.json", what, settings),
            JsonPart(
                *(servers, f"the MCP server `{host.SERVER}`"),
                {"mcpServers": {host.SERVER: _server(home, scope)}},
                servers="mcpServers",
            ),
            *(
                OwnFile(f"{root}/.claude/commands/{name}.md", f"the command `/{name}`", text)
                for name, text in _COMMANDS.items()
            ),
        ]


def _notified_subagent(prompt: str) -> ReportedSubagent | None:
    found: list[str] = []
    for tag in ("task-id", "status", "result", "summary"):
        found.append(prompt.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0])
    name, status, result, summary = found
    known = _OUTCOMES.get(status, "")
    return ReportedSubagent(name, "", "", known, result or summary) if name and known else None


def _server(home: str, scope: "Scope") -> "dict[str, Any]":
    command, *arguments = host.server_command(home, scope)
    return {
        "type": "stdio",
        "command": command,
        "args": arguments,
        "env": host.server_variables(home, scope),
        "alwaysLoad": True,  # otherwise the model would see only the names of the tools
    }


def plugin(home: str, version: str) -> "dict[str, str | dict[str, Any]]":
    """The files of a directory from which Claude Code installs us, by their paths in it."""
    about = {"name": host.SERVER, "version": version, "license": "Apache-2.0"}
    what = "Durable workflows and a gate before every tool call"
    owner = {"name": "Interlock"}
    market = {
        "name": f"{host.SERVER}-local",
        "description": what,
        "owner": owner,
        "plugins": [{"name": host.SERVER, "source": "./plugin", "description": what}],
    }
    hooks = host.matcher_groups(HOST, home, "user")
    for groups in hooks.values():
        for group in groups:
            # Hooks in the user's settings do the same; two of them would answer twice.
            handler = group["hooks"][0]
            handler["command"] = handler["command"].replace('"$L" hook', '"$L" shared hook')
    return {
        ".claude-plugin/marketplace.json": market,
        "plugin/.claude-plugin/plugin.json": {**about, "description": what, "author": owner},
        "plugin/hooks/hooks.json": {"description": "Interlock's gate and session", "hooks": hooks},
        "plugin/.mcp.json": {"mcpServers": {host.SERVER: _server(home, "user")}},
        **{f"plugin/commands/{name}.md": text for name, text in _COMMANDS.items()},
    }


def shell_in_use(environment: "Mapping[str, str]") -> str:
    """The shell that Claude Code would take for an agent's commands; empty if there is none."""
    from os import X_OK, access  # noqa: PLC0415 (only an install asks)
    from shutil import which  # noqa: PLC0415 (as above)

    wanted = (environment.get(SHELL_VARIABLE, ""), environment.get("SHELL", ""))
    # It tells shells apart by their paths, and takes the first that it finds.
    likes_bash = "bash" in wanted[1]
    others = [which(name, path=environment.get("PATH")) or "" for name in SHELLS]
    for shell in (*wanted, *(others if likes_bash else reversed(others))):
        is_own = shell.endswith(tuple(f"/{host.LAUNCHER}-{name}" for name in SHELLS))
        if any(name in shell for name in SHELLS) and not is_own and access(shell, X_OK):
            return shell
    return ""


HOST = ClaudeCode()
