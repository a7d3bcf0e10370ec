"""Codex CLI. Tried with 0.166.0.

Its answers are Claude Code's, but for two: a question, and a call that is allowed without changing
it, make it ignore the hook. Its terminal sessions share one process in the background, so neither
process nor environment tell them apart; every payload names the conversation, and so does every
call of a tool of our server.
"""

from interlock.agents.hosts import host
from interlock.agents.hosts.host import Event, Host, JsonPart, NestedAnswers, OwnFile, TomlPart
from interlock.agents.hosts.progress_reports import ReportedSubagent, any_tool, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.agents.hosts.host import Scope

_RECORDED = {
    "tasks": "update_plan",
    "subagent": "spawn_agent multi_agent_v1spawn_agent collaborationspawn_agent",
}


class Codex(NestedAnswers, Host):
    name = "codex"
    title = "Codex"
    program = "codex"
    skill_folders = (".codex/skills", ".agents/skills")
    packages = ("@openai/codex",)
    fixed_listing_name = "codex-mcp-client"
    tools = {
        "read": "view_image update_plan list_mcp_resources read_mcp_resource",
        "web": "web_search",
        "edit": "apply_patch Write Edit",
        "shell": "Bash shell local_shell exec_command write_stdin unified_exec",
        "agent": "Agent spawn_agent multi_agent_v1spawn_agent send_input wait wait_agent"
        " close_agent resume_agent multi_agent_v1wait_agent collaborationspawn_agent"
        " collaborationwait_agent collaborationsend_message collaborationfollowup_task"
        " collaborationclose_agent collaborationlist_agents",
        "ask": "request_user_input",
    }
    recorded_tools = _RECORDED
    events = (
        Event("SessionStart", "session-start", 10),
        Event("UserPromptSubmit", "prompt-submit"),
        Event("PreToolUse", "pre-tool", 10, "*"),
        Event(
            "PostToolUse",
            "post-tool",
            matcher=any_tool("Bash", *_RECORDED.values()),
        ),
        Event("Stop", "stop"),
        Event("SubagentStart", "subagent-start"),
        Event("SubagentStop", "subagent-stop"),
        Event("PreCompact", "pre-compact"),
        Event("SessionEnd", "session-end", 3),  # it warns about more at every start
    )
    variables = ("CODEX_CI", "CODEX_SANDBOX", "CODEX_THREAD_ID", "CODEX_SESSION_ID")
    session_variable = "CODEX_SESSION_ID"
    call_session_key = "sessionId"
    mode_command = "$mode"
    elicits = True
    holds_one = False
    unattended_words = ("exec", "e", "review", "mcp-server")
    attended_words = ("app-server",)
    enforcement = (
        "it denies but cannot ask, tells no exit codes, and lets a call pass whose hook fails; it"
        " does not report which shell or directory the model chooses for a command, nor what the"
        " model types into one that runs"
    )
    after_install = (
        "Codex runs hooks only after you have trusted them: start `codex` and choose “Trust all and"
        " continue”, or type `/hooks`. Until then it skips them without a word.",
        "There, the commands are `$mode`, `$autonomy`, `$approve` and `$deny`.",
    )

    def reported_subagent(self, event: str, payload: "dict[str, Any]") -> ReportedSubagent | None:
        asked = super().reported_subagent(event, payload)
        if asked and event == "post-tool":
            import json  # noqa: PLC0415 (the fast hook does not ask)

            try:
                response = host.as_object(json.loads(str(payload.get("tool_response"))))
            except ValueError:
                return None
            asked.name = text_in(response, "agent_id")
        return asked

    def settings_files(self, home: str, root: str, environment: "Mapping[str, str]") -> "list[str]":
        own = environment.get("CODEX_HOME") or f"{home}/.codex"
        return [f"{own}/config.toml", f"{root}/.codex/config.toml"]

    def obstacle(self, settings: "Mapping[str, Any]") -> "tuple[str, str]":
        if host.as_object(settings.get("features")).get("hooks") is False:
            return "says `hooks = false`, so no hook runs", "Take that out of the file."
        return "", ""

    def trust_question(self, cwd: str) -> "tuple[list[str], list[dict[str, Any]]] | None":
        about = {"clientInfo": {"name": "interlock", "version": "1"}}
        return ["app-server"], [
            {"id": 0, "method": "initialize", "params": about},
            {"method": "initialized"},
            {"id": 1, "method": "hooks/list", "params": {"cwds": [cwd]}},
        ]

    def missing_trust(
        self, root: str, environment: "Mapping[str, str]", told: bytes
    ) -> "list[tuple[str, str]]":
        import json  # noqa: PLC0415 (only a doctor asks)

        for line in told.splitlines():
            try:
                reply = json.loads(line)
                listed = reply["result"]["data"][0] if reply.get("id") == 1 else None
            except (ValueError, KeyError, IndexError, TypeError, AttributeError):
                continue
            if listed is None:
                continue
            ours = [x for x in listed["hooks"] if self.is_own_command(str(x.get("command")))]
            left = [x for x in ours if x.get("trustStatus") not in ("trusted", "managed")]
            if left:
                what = f"Codex does not trust {len(left)} of {len(ours)} hooks, and skips them"
                return [(what, self.after_install[0])]
        return []

    def manual_entries(
        self, server: "list[str]", variables: "Mapping[str, str]"
    ) -> "list[tuple[str, str | dict[str, Any]]]":
        return [("~/.codex/config.toml", _table(server, variables))]

    def manual_http_entry(
        self, address: str, variable: str, secret: str
    ) -> "tuple[str, str | dict[str, Any]]":
        lines = (
            f"[mcp_servers.{host.SERVER}]",
            f"url = {host.toml_text(address)}",
            f"bearer_token_env_var = {host.toml_text(variable)}",
        )
        return "~/.codex/config.toml", "\n".join(lines)

    def skill_home(self, scope: "Scope", root: str, environment: "Mapping[str, str]") -> str:
        own = environment.get("CODEX_HOME") if scope == "user" else ""
        return f"{own or f'{root}/.codex'}/skills"

    def command_part(
        self, folder: str, name: str, description: str, arguments: str, text: str
    ) -> OwnFile:
        about = f"{description} (`${name} {arguments}`)"
        part = super().command_part(folder, name, about, arguments, text)
        return OwnFile(part.path, f"the skill `${name}`", part.content)

    def parts(
        self, scope: "Scope", root: str, home: str, environment: "Mapping[str, str]"
    ) -> "list[JsonPart | TomlPart | OwnFile]":
        folder = f"{root}/.codex"
        if scope == "user":
            folder = environment.get("CODEX_HOME") or folder
        return [
            JsonPart(
                *(f"{folder}/hooks.json", f"{len(self.events)} hooks"),
                {"hooks": host.matcher_groups(self, home, scope)},
            ),
            TomlPart(
                *(f"{folder}/config.toml", f"the MCP server `{host.SERVER}`"),
                f"mcp_servers.{host.SERVER}",
                _table(host.server_command(home, scope), host.server_variables(home, scope)),
            ),
            *(
                self.command_part(f"{folder}/skills", name, *command)
                for name, command in host.COMMANDS.items()
            ),
        ]


def _table(server: "list[str]", variables: "Mapping[str, str]") -> str:
    command, *arguments = server
    lines = [
        f"[mcp_servers.{host.SERVER}]",
        f"command = {host.toml_text(command)}",
        f"args = {host.toml_text(arguments)}",
    ]
    if variables:
        # It hands on next to nothing of its own environment.
        pairs = ", ".join(f"{name} = {host.toml_text(text)}" for name, text in variables.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


HOST = Codex()
