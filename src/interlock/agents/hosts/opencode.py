"""OpenCode. Tried with 1.18.33.

It has no hooks that are commands. A small plugin of ours (`opencode_plugin.js`) runs in its process
and starts our hook with payloads in the usual form, so what is read here is what we wrote there.
"""

from interlock.agents.hosts import host
from interlock.agents.hosts.host import Event, Host, JsonPart, OwnFile
from interlock.agents.hosts.progress_reports import ReportedSubagent, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.agents.hosts.host import Outcome, Scope, TomlPart

_PLUGIN = f"{__file__.rpartition('/')[0]}/opencode_plugin.js"


def _command(description: str, text: str) -> str:
    return f"---\ndescription: {description}\n---\n\n{text}"


_COMMANDS = {
    name: _command(description, text) for name, (description, _, text) in host.COMMANDS.items()
}


class OpenCode(Host):
    name = "opencode"
    title = "OpenCode"
    program = "opencode"
    skill_folders = (".opencode/skill", ".opencode/skills", ".claude/skills", ".agents/skills")
    packages = ("opencode-ai",)
    tools = {
        "read": "read todowrite todoread skill",
        "search": "list glob grep lsp",
        "web": "webfetch websearch codesearch",
        "edit": "write edit patch multiedit apply_patch",
        "shell": "bash",
        "agent": "task",
        "ask": "question plan_enter plan_exit",
    }
    recorded_tools = {"tasks": "todowrite", "subagent": "task"}
    events = (
        Event("session-start", "session-start"),
        Event("prompt-submit", "prompt-submit"),
        Event("pre-tool", "pre-tool"),
        Event("post-tool", "post-tool"),
        Event("subagent-start", "subagent-start"),
        Event("pre-compact", "pre-compact"),
        Event("session-end", "session-end"),
    )
    variables = ("OPENCODE", "OPENCODE_CLIENT")
    holds_one = False
    unattended_words = ("run", "serve", "acp")
    enforcement = (
        "it denies but cannot ask; where the plugin cannot be loaded nothing holds, and it says so"
        " nowhere"
    )
    after_install = (
        "OpenCode fetches a package from npm at its start as soon as there is any plugin; without"
        " a network that takes it more than a minute (`npm_config_offline=true` ends the wait).",
    )

    def outcome(self, event: str, payload: "dict[str, Any]") -> "Outcome":
        code = host.as_object(payload.get("tool_response")).get("exit")
        if type(code) is not int:
            return "unknown"
        return "failure" if code else "success"

    def reported_subagent(self, event: str, payload: "dict[str, Any]") -> ReportedSubagent | None:
        asked = super().reported_subagent(event, payload)
        response = host.as_object(payload.get("tool_response"))
        if asked and event == "post-tool":
            asked.name = text_in(response, "subagent")
            text = text_in(response, "output")
            state = text.partition(' state="')[2].partition('"')[0]
            asked.status = {"completed": "completed", "error": "failed"}.get(state, "running")
            tag = "task_error" if state == "error" else "task_result"
            asked.result = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] or text
        return asked

    def own_directories(
        self, environment: "Mapping[str, str]", root: str, user: int
    ) -> "tuple[str, ...]":
        data = environment.get("XDG_DATA_HOME") or f"{environment.get('HOME', '')}/.local/share"
        return f"{root}/.opencode/plans", f"{data}/opencode/plans"

    def encode_decision(self, answer: str, reason: str) -> "dict[str, Any]":
        return {"decision": answer, "reason": reason}

    def encode_context(self, event: str, text: str, remark: str = "") -> "dict[str, Any]":
        return {"context": text} if text else {}

    def manual_entries(
        self, server: "list[str]", variables: "Mapping[str, str]"
    ) -> "list[tuple[str, str | dict[str, Any]]]":
        entry = {"type": "local", "command": server, "environment": {**variables}, "enabled": True}
        return [("opencode.json of the project", {"mcp": {host.SERVER: entry}})]

    def manual_http_entry(
        self, address: str, variable: str, secret: str
    ) -> "tuple[str, str | dict[str, Any]]":
        headers = {"Authorization": f"Bearer {{file:{secret}}}"}  # it reads files by itself
        entry = {"type": "remote", "url": address, "headers": headers, "enabled": True}
        return "opencode.json of the project", {"mcp": {host.SERVER: entry}}

    def skill_home(self, scope: "Scope", root: str, environment: "Mapping[str, str]") -> str:
        if scope == "project":
            return f"{root}/.opencode/skills"
        return f"{environment.get('XDG_CONFIG_HOME') or f'{root}/.config'}/opencode/skills"

    def command_part(
        self, folder: str, name: str, description: str, arguments: str, text: str
    ) -> OwnFile:
        # Without a place for arguments, what was typed is appended to the text.
        path = f"{host.commands_beside(folder, 'command')}/{name}.md"
        return OwnFile(path, f"the command `/{name}`", _command(description, text))

    def parts(
        self, scope: "Scope", root: str, home: str, environment: "Mapping[str, str]"
    ) -> "list[JsonPart | TomlPart | OwnFile]":
        config = environment.get("XDG_CONFIG_HOME") or f"{root}/.config"
        folder, settings = f"{config}/opencode", f"{config}/opencode/opencode.json"
        if scope == "project":
            folder, settings = f"{root}/.opencode", f"{root}/opencode.json"
        server = {
            "type": "local",
            "command": host.server_command(home, scope),
            "environment": host.server_variables(home, scope),
            "enabled": True,
        }
        with open(_PLUGIN, encoding="utf-8") as file:
            plugin = file.read()
        launcher = host.toml_text(f"{home}/{host.LAUNCHER}" if scope == "user" else "")
        return [
            OwnFile(
                f"{folder}/plugin/interlock.js",
                "the plugin, which is its hooks",
                plugin.replace('"@LAUNCHER@"', launcher),
                is_watched=True,
            ),
            JsonPart(
                *(settings, f"the MCP server `{host.SERVER}`"),
                {"mcp": {host.SERVER: server}},
                servers="mcp",
            ),
            *(
                OwnFile(f"{folder}/command/{name}.md", f"the command `/{name}`", text)
                for name, text in _COMMANDS.items()
            ),
        ]


HOST = OpenCode()
