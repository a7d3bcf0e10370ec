"""Gemini CLI. Tried with 0.61.0.

In a folder that is not trusted it runs no hook of anybody's settings, but those of extensions: so
we are one. What its hooks tell at the start becomes part of the prompt and is lost when the
conversation is compressed, which no event reports; so context is told with a prompt, and once more
when the transcript shows that it was compressed.
"""

from interlock.agents.hosts import host
from interlock.agents.hosts.host import Event, Host, JsonPart, OwnFile
from interlock.agents.hosts.progress_reports import ReportedSubagent, any_tool, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.agents.hosts.host import Outcome, Scope, TomlPart

_MILLISECONDS = 1_000
_FAILURES = ("\nExit Code: ", "\nSignal: ", "\nError: ")
"""Lines that are missing where the code is 0. A command can print one, but not take one back."""


# Without a place for arguments, what was typed is appended to the text.
def _command(description: str, text: str) -> str:
    return f'''\
description = "{description}"
prompt = """
{text}"""
'''


_COMMANDS = {
    name: _command(description, text) for name, (description, _, text) in host.COMMANDS.items()
}
_RECORDED = {
    "plan": "exit_plan_mode",
    "tasks": "write_todos",
    "subagent": "invoke_agent delegate_to_agent",
}
_OBSERVED = any_tool("run_shell_command", *_RECORDED.values())
_APPROVED = "Plan approved. Switching to "
_POLICY = f"""\
# Written by `interlock install`: without it our tools are missing where nobody can be asked.
[[rule]]
mcpName = "{host.SERVER}"
toolName = "*"
decision = "allow"
priority = 900
"""


class Gemini(Host):
    name = "gemini"
    title = "Gemini CLI"
    program = "gemini"
    skill_folders = (".gemini/skills", ".agents/skills")
    packages = ("@google/gemini-cli",)
    tools = {
        "read": "read_file read_many_files write_todos activate_skill update_topic complete_task"
        " list_background_processes read_background_output",
        "search": "list_directory glob search_file_content grep_search",
        "web": "web_fetch google_web_search",
        "edit": "write_file replace edit",
        "shell": "run_shell_command",
        "agent": "invoke_agent delegate_to_agent",
        "ask": "ask_user enter_plan_mode exit_plan_mode",
    }
    recorded_tools = _RECORDED
    events = (
        Event("SessionStart", "session-start", 10),
        Event("BeforeAgent", "prompt-submit", 10),
        Event("BeforeTool", "pre-tool", 10, "*"),
        Event("AfterTool", "post-tool", matcher=_OBSERVED),
        Event("AfterAgent", "stop"),
        Event("SessionEnd", "session-end"),
    )
    variables = ("GEMINI_CLI",)
    asks = True
    tells_at_prompt = True
    heard_events = ("prompt-submit", "post-tool")
    reads_comments = True
    cut_mark = "<state_snapshot>"
    enforcement = "it denies and asks; a call whose hook fails or is too slow passes"
    after_install = (
        "Gemini CLI starts no MCP server in a folder that you have not trusted; it asks you when it"
        " is first started there.",
    )

    def read_payload(self, payload: "dict[str, Any]") -> "dict[str, Any]":
        prompt = payload.get("prompt")
        for name, (_, _, text) in host.COMMANDS.items():
            if type(prompt) is str and prompt.lstrip().startswith(text.strip()):
                # What was typed is appended if it had arguments.
                typed = prompt.partition(text.strip())[2].strip()
                return {**payload, "prompt": typed or f"/{name}"}
        return payload

    def outcome(self, event: str, payload: "dict[str, Any]") -> "Outcome":
        response = host.as_object(payload.get("tool_response"))
        text = response.get("llmContent")
        if type(text) is not str:
            return "unknown"
        if response.get("error") or any(line in text for line in _FAILURES):
            return "failure"
        return "success" if "\nOutput: " in f"\n{text}" else "unknown"

    def approved_plan(
        self, payload: "dict[str, Any]", environment: "Mapping[str, str]"
    ) -> "tuple[str, str]":
        told = text_in(host.as_object(payload.get("tool_response")), "llmContent")
        # Without a person it approves the plan itself and continues in its mode YOLO.
        if not told.startswith(_APPROVED) or told.startswith(f"{_APPROVED}YOLO"):
            return "", ""
        given = text_in(host.as_object(payload.get("tool_input")), "plan_filename")
        folders = self.own_directories(environment, "", 0)
        is_name = given not in ("", ".", "..") and "/" not in given
        return "", (f"{folders[0]}/{given}" if folders and is_name else "")

    def reported_subagent(self, event: str, payload: "dict[str, Any]") -> ReportedSubagent | None:
        asked = super().reported_subagent(event, payload)
        response = host.as_object(payload.get("tool_response"))
        if asked and event == "post-tool":
            shown = host.as_object(response.get("returnDisplay"))
            reason, state = (
                text_in(shown, "terminateReason"),
                text_in(shown, "state"),
            )
            is_stopped = reason == "ABORTED" or state == "cancelled"
            asked.status = "stopped" if is_stopped else "failed"
            if reason == "GOAL" and not response.get("error"):
                asked.status = "completed"
            text = "\n".join(host.texts_in(response.get("llmContent")))
            asked.result = text_in(shown, "result") or text
        return asked

    def own_directories(
        self, environment: "Mapping[str, str]", root: str, user: int
    ) -> "tuple[str, ...]":
        plans = environment.get("GEMINI_PLANS_DIR", "")
        own = f"{environment.get('HOME', '')}/.gemini/tmp/"
        return (plans,) if plans.startswith(own) and "/../" not in plans else ()

    def encode_decision(self, answer: str, reason: str) -> "dict[str, Any]":
        # The user, who is asked, is shown the message and not the reason.
        return {
            "decision": answer,
            "reason": reason,
            **({"systemMessage": reason} if answer == "ask" else {}),
        }

    def encode_context(self, event: str, text: str, remark: str = "") -> "dict[str, Any]":
        told = {"hookSpecificOutput": {"additionalContext": text}} if text else {}
        return {**told, **({"systemMessage": remark} if remark else {})}

    def encode_stop(self, reason: str) -> "dict[str, Any]":
        return {"decision": "deny", "reason": reason}

    def settings_files(self, home: str, root: str, environment: "Mapping[str, str]") -> "list[str]":
        return [f"{home}/.gemini/settings.json", f"{root}/.gemini/settings.json"]

    def obstacle(self, settings: "Mapping[str, Any]") -> "tuple[str, str]":
        config = host.as_object(settings.get("hooksConfig"))
        if config.get("enabled") is False:
            return "switches hooks off (`hooksConfig.enabled`)", "Take that out of the file."
        if "interlock" in (config.get("disabled") or ()):
            return "disables our hooks (`hooksConfig.disabled`)", "Type `/hooks enable-all` there."
        return "", ""

    def missing_trust(
        self, root: str, environment: "Mapping[str, str]", told: bytes
    ) -> "list[tuple[str, str]]":
        import json  # noqa: PLC0415 (only a doctor asks)

        path = f"{environment.get('HOME', '')}/.gemini/trustedFolders.json"
        try:
            with open(environment.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or path) as file:
                rules = host.as_object(json.load(file))
        except (OSError, ValueError):
            rules = {}
        around = [folder for folder in rules if f"{root}/".startswith(f"{folder}/")]
        parents = [
            folder.rpartition("/")[0] for folder, rule in rules.items() if rule == "TRUST_PARENT"
        ]
        is_trusted = any(rules[folder] != "DO_NOT_TRUST" for folder in around)
        if is_trusted or any(f"{root}/".startswith(f"{folder}/") for folder in parents):
            return []
        what = f"Gemini CLI does not trust `{root}`, so it starts no MCP server there"
        return [(what, "Start `gemini` there and choose to trust the folder.")]

    def manual_entries(
        self, server: "list[str]", variables: "Mapping[str, str]"
    ) -> "list[tuple[str, str | dict[str, Any]]]":
        command, *arguments = server
        # Without `trust` none of its tools is offered where nobody can be asked.
        entry = {"command": command, "args": arguments, "env": {**variables}, "trust": True}
        return [("~/.gemini/settings.json", {"mcpServers": {host.SERVER: entry}})]

    def manual_http_entry(
        self, address: str, variable: str, secret: str
    ) -> "tuple[str, str | dict[str, Any]]":
        headers = {"Authorization": f"Bearer ${variable}"}
        entry = {"httpUrl": address, "headers": headers, "trust": True}
        return "~/.gemini/settings.json", {"mcpServers": {host.SERVER: entry}}

    def command_part(
        self, folder: str, name: str, description: str, arguments: str, text: str
    ) -> OwnFile:
        path = f"{host.commands_beside(folder, 'commands')}/{name}.toml"
        return OwnFile(path, f"the command `/{name}`", _command(description, text))

    def parts(
        self, scope: "Scope", root: str, home: str, environment: "Mapping[str, str]"
    ) -> "list[JsonPart | TomlPart | OwnFile]":
        hooks = host.matcher_groups(self, home, scope, _MILLISECONDS)
        for groups in hooks.values():
            for group in groups:
                group["hooks"][0]["name"] = "interlock"
        command, *arguments = host.server_command(home, scope)
        server: dict[str, Any] = {"command": command, "args": arguments}
        if variables := host.server_variables(home, scope):
            server["env"] = variables
        own = f"{root}/.gemini"
        if scope == "project":
            # `trust` offers the tools where nobody can be asked.
            shared = {"hooks": hooks, "mcpServers": {host.SERVER: {**server, "trust": True}}}
            return [
                JsonPart(
                    *(f"{own}/settings.json", "hooks and MCP server", shared), servers="mcpServers"
                ),
                *(
                    OwnFile(f"{own}/commands/{name}.toml", f"the command `/{name}`", text)
                    for name, text in _COMMANDS.items()
                ),
            ]
        extension = f"{own}/extensions/{host.SERVER}"
        about = {"name": host.SERVER, "version": "1.0.0", "mcpServers": {host.SERVER: server}}
        return [
            OwnFile(
                *(f"{extension}/gemini-extension.json", "an extension: the MCP server", about),
                is_watched=True,
            ),
            OwnFile(
                f"{extension}/hooks/hooks.json",
                f"its {len(self.events)} hooks",
                {"hooks": hooks},
                is_watched=True,
            ),
            *(
                OwnFile(f"{extension}/commands/{name}.toml", f"its command `/{name}`", text)
                for name, text in _COMMANDS.items()
            ),
            OwnFile(f"{own}/policies/interlock.toml", "the policy that allows its tools", _POLICY),
        ]


HOST = Gemini()
