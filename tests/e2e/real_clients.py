"""The real clients: how each is configured for a scripted model, started and asked to go on."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.e2e.codex_server import CodexServer, trust_hooks
from tests.e2e.desk import HERE, Desk, merge_json
from tests.e2e.terminal import KEY, ClaudeTerminal, Terminal

FETCHED = HERE / "node_modules"
OFFLINE = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "npm_config_offline": "true",
}
SUMMARY = "THE-SUMMARY"
QUESTION = "The agent asks to switch to coding"
PLAN = "Make the cache smaller, then measure it"
TASK, SUBTASK, FINDING = "Write the smaller fix", "Look for leaks", "LEAK-IN-THE-CACHE"


class RealClient:
    """A client, and what its tools are called."""

    name = ""
    version = ""
    program = Path()
    options: tuple[str, ...] = ()
    """Words without which it would ask whether its tools may be used."""
    context = 100_000

    def is_here(self) -> bool:
        return self.program.exists()

    bulk = "Much was said. " * 800
    """What makes a conversation long enough to be summed up."""
    has_dialogs = True
    """Whether it can put a question to its user."""

    def plan(self, desk: Desk) -> list[object]:
        """The turns in which it makes a plan in a mode of its own, which the user approves."""
        return []

    def play_attended(
        self, desk: Desk, *turns: object, prompt: str = "go", **more: object
    ) -> list[dict[str, Any]]:
        """As `play`, with a user who says yes to what it asks."""
        with desk.model(*turns, **more) as (address, log):
            environment = desk.environment(**OFFLINE, **self.configure(desk, address))
            self.attend(desk, environment, prompt)
            return desk.requests(log)

    def attend(self, desk: Desk, environment: dict[str, str], prompt: str) -> None:
        """Be the user: give the prompt, and say yes to the questions of `play_attended`."""
        raise NotImplementedError

    def prepare(self, desk: Desk) -> None:
        """Whatever the user has to do before and after an install, besides the model."""

    def configure(self, desk: Desk, address: str) -> dict[str, str]:
        """Tell the client where the model is; the variables for that."""
        raise NotImplementedError

    def command(self, prompt: str, *, goes_on: bool) -> list[str]:
        raise NotImplementedError

    def connect(self, desk: Desk, printed: str) -> None:
        """Put a printed configuration of a server where it says."""
        raise NotImplementedError

    def write(self, path: Path) -> dict[str, Any]:
        raise NotImplementedError

    def shell(self, command: str) -> dict[str, Any]:
        raise NotImplementedError

    def progress(self) -> list[object]:
        """The turns in which it makes a task list, and a subagent finds something."""
        raise NotImplementedError

    def subagent_rule(self) -> dict[str, Any]:
        """The rule by which the model replies to the subagent of `progress`."""
        when = {"turn": 0, "last": SUBTASK}
        return {"name": "subagent", "when": when, "reply": self.finding()}

    def finding(self) -> object:
        return FINDING

    def play(
        self,
        desk: Desk,
        *turns: object,
        prompt: str = "go",
        goes_on: bool = False,
        secret: bool = False,
        **more: object,
    ) -> list[dict[str, Any]]:
        """Let the client play `turns`; what it asked the model, request by request."""
        with desk.model(*turns, **more) as (address, log):
            environment = desk.environment(**OFFLINE, **self.configure(desk, address))
            if secret:
                environment["INTERLOCK_SECRET"] = (desk.home / "agent-secret").read_text().strip()
            desk.run([*self.command(prompt, goes_on=goes_on), *self.options], environment)
            return desk.requests(log)

    def compact(self, desk: Desk) -> list[dict[str, Any]]:
        """Let the conversation grow until the client sums it up; what it asked the model."""
        full = {"input": self.context * 98 // 100, "output": 5}
        return self.play(
            desk,
            {"blocks": [self.shell("cat seen.txt")], "usage": full},
            {"blocks": [{"text": self.bulk}], "usage": full},
            {"blocks": [self.shell("ls")], "usage": {"input": 100, "output": 5}},
            prompt="work",
            goes_on=True,
            index="count",
            aux=f"<state_snapshot>{SUMMARY}</state_snapshot>",
        )


class ClaudeCode(RealClient):
    name = "claude-code"
    version = "2.1.325"
    options = ("--allowedTools=Write,Bash,Read,Agent,TaskCreate,mcp__interlock",)
    program = FETCHED / "@anthropic-ai" / "claude-code-linux-x64" / "claude"

    def configure(self, desk: Desk, address: str) -> dict[str, str]:
        # With newer models it offers its task tools only if it is told to.
        variables = {"ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": address}
        return {**variables, "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}

    def progress(self) -> list[object]:
        asked = {"description": "Leaks", "prompt": SUBTASK, "subagent_type": "Explore"}
        return [
            {"tool": "TaskCreate", "input": {"subject": TASK, "description": "all of it"}},
            {"tool": "Agent", "input": {**asked, "run_in_background": False}},
        ]

    def plan(self, desk: Desk) -> list[object]:
        path = {"from": "all", "re": rf"({desk.user}/\.claude/plans/[^\s\"\\]+\.md)"}
        write = {"tool": "Write", "input": {"file_path": "${path}", "content": PLAN}}
        return [
            {"tool": "EnterPlanMode", "input": {}},
            {"extract": {"path": path}, "blocks": [write]},
            {"tool": "ExitPlanMode", "input": {}},
        ]

    def attend(self, desk: Desk, environment: dict[str, str], prompt: str) -> None:
        environment = {**environment, "ANTHROPIC_API_KEY": KEY}
        terminal = ClaudeTerminal(self.program, desk.project, environment, prompt)
        terminal.say_yes(f"{QUESTION}|proceed", "Would you like to proceed", leave="/exit")

    def command(self, prompt: str, *, goes_on: bool) -> list[str]:
        options = ["--output-format=json"]
        again = ["--continue"] if goes_on else []
        return [str(self.program), "-p", prompt, *options, *again]

    def connect(self, desk: Desk, printed: str) -> None:
        merge_json(desk.project / ".mcp.json", printed)
        settings = desk.project / ".claude" / "settings.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text('{"enableAllProjectMcpServers": true}')

    def compact(self, desk: Desk) -> list[dict[str, Any]]:
        summary = f"<summary>{SUMMARY}</summary>"
        return self.play(
            *(desk, summary), prompt="/compact", goes_on=True, index="count", aux=summary
        )

    def write(self, path: Path) -> dict[str, Any]:
        return {"tool": "Write", "input": {"file_path": str(path), "content": "x"}}

    def shell(self, command: str) -> dict[str, Any]:
        return {"tool": "Bash", "input": {"command": command, "description": "try"}}


class OlderClaudeCode(ClaudeCode):
    version = "2.1.197"
    program = FETCHED / "claude-code-older/node_modules/@anthropic-ai/claude-code-linux-x64/claude"


class Codex(RealClient):
    name = "codex"
    model = "gpt-5.5"
    """With a model that it knows, it hides tools of servers until the model searches for them."""
    # It asks for the summary as it asks for any other turn.
    bulk = f"{SUMMARY}. {RealClient.bulk}"
    version = "0.166.0"
    program = FETCHED / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"

    def prepare(self, desk: Desk) -> None:
        """Trust the hooks, as the user does at the first start."""
        trust_hooks(desk.user / ".codex")

    def configure(self, desk: Desk, address: str) -> dict[str, str]:
        config = desk.user / ".codex" / "config.toml"
        config.parent.mkdir(exist_ok=True)
        known = config.read_text() if config.exists() else ""
        mark = "# the end of what the tests write\n"
        config.write_text(
            f"""\
model = "{self.model}"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "danger-full-access"
model_auto_compact_token_limit = {self.context - 20_000}
check_for_update_on_startup = false
tools.update_plan.enabled = true

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{address}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
{mark}{known.rpartition(mark)[2]}"""
        )
        return {"SCRIPTED_KEY": "dummy", "OPENAI_API_KEY": "dummy"}

    def connect(self, desk: Desk, printed: str) -> None:
        config = desk.user / ".codex" / "config.toml"
        config.write_text(printed[printed.index("[mcp_servers") :] + "\n")

    def command(self, prompt: str, *, goes_on: bool) -> list[str]:
        off = [
            word
            for name in ("apps", "plugins", "remote_plugin", "daemon_auto_start")
            for word in ("--disable", name)
        ]
        start = ["exec", *off, "--skip-git-repo-check"]
        return [str(self.program), *start, *(["resume", "--last"] if goes_on else []), prompt]

    def progress(self) -> list[object]:
        return [
            {"tool": "update_plan", "input": {"plan": [{"step": TASK, "status": "pending"}]}},
            {"tool": "spawn_agent", "input": {"message": SUBTASK, "agent_type": "explorer"}},
            {"blocks": [self.shell("sleep 1")], "delay_ms": 500},
        ]

    def attend(self, desk: Desk, environment: dict[str, str], prompt: str) -> None:
        server = CodexServer(self.program, desk.project, environment)
        try:
            server.play(prompt)
        finally:
            server.close()
        (asked,) = server.asked
        assert asked.startswith(QUESTION)

    def write(self, path: Path) -> dict[str, Any]:
        patch = f"*** Begin Patch\n*** Add File: {path.name}\n+x\n*** End Patch\n"
        return {"tool": "apply_patch", "input": patch}

    def shell(self, command: str) -> dict[str, Any]:
        tools = ["shell_command", "exec_command", "shell"]
        return {"tool": tools, "input": {"command": command, "cmd": command}}


class Gemini(RealClient):
    name = "gemini"
    version = "0.61.0"
    program = FETCHED / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    context = 700_000

    def finding(self) -> object:
        report: dict[str, Any] = {"SummaryOfFindings": FINDING}
        report |= {"ExplorationTrace": [], "RelevantLocations": []}
        return {"tool": "complete_task", "input": {"report": report}}

    def plan(self, desk: Desk) -> list[object]:
        folder = {"from": "all", "re": r"(\.gemini/tmp/[^/\s]+/[^/\s]+/plans)"}
        path = f"{desk.user}/${{folder}}/plan.md"
        write = {"tool": "write_file", "input": {"file_path": path, "content": PLAN}}
        return [
            {"tool": "enter_plan_mode", "input": {"reason": "to plan"}},
            {"extract": {"folder": folder}, "blocks": [write]},
            {"tool": "exit_plan_mode", "input": {"plan_filename": "plan.md"}},
        ]

    def attend(self, desk: Desk, environment: dict[str, str], prompt: str) -> None:
        words = ["node", str(self.program), "-i", prompt, "-m", "gemini-2.5-pro"]
        terminal = Terminal(words, desk.project, environment)
        asked = (
            f"{QUESTION}|Allow once",
            "Do you want to proceed",
            "Ready to start implementation",
        )
        terminal.say_yes(*asked, leave="/quit")

    def prepare(self, desk: Desk) -> None:
        folder = desk.user / ".gemini"
        folder.mkdir(exist_ok=True)
        (folder / "trustedFolders.json").write_text(json.dumps({str(desk.project): "TRUST_FOLDER"}))
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False},
        }
        (folder / "settings.json").write_text(json.dumps(settings))

    def configure(self, desk: Desk, address: str) -> dict[str, str]:
        return {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": address}

    def connect(self, desk: Desk, printed: str) -> None:
        merge_json(desk.user / ".gemini" / "settings.json", printed)

    def command(self, prompt: str, *, goes_on: bool) -> list[str]:
        words = ["node", str(self.program), "-p", prompt, "--output-format", "stream-json"]
        again = ["-r", "latest"] if goes_on else []
        return [*words, "--approval-mode", "yolo", "-m", "gemini-2.5-pro", *again]

    def progress(self) -> list[object]:
        return [
            {
                "tool": "write_todos",
                "input": {"todos": [{"description": TASK, "status": "pending"}]},
            },
            {
                "tool": "invoke_agent",
                "input": {"agent_name": "codebase_investigator", "prompt": SUBTASK},
            },
        ]

    def write(self, path: Path) -> dict[str, Any]:
        return {"tool": "write_file", "input": {"file_path": str(path), "content": "x"}}

    def shell(self, command: str) -> dict[str, Any]:
        return {"tool": "run_shell_command", "input": {"command": command}}


class OpenCode(RealClient):
    name = "opencode"
    version = "1.18.33"
    has_dialogs = False
    program = FETCHED / "opencode-linux-x64" / "bin" / "opencode"

    def configure(self, desk: Desk, address: str) -> dict[str, str]:
        # A process that ends while it looks for a package leaves a lock, and the next one waits a
        # minute for it.
        shutil.rmtree(desk.user / ".local" / "state" / "opencode" / "locks", ignore_errors=True)
        folder = desk.user / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        limits = {"context": self.context, "output": 4_000}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{address}/v1", "apiKey": "x"},
            "models": {"m": {"name": "m", "limit": limits}},
        }
        settings = {
            "model": "scripted/m",
            "small_model": "scripted/m",
            "autoupdate": False,
            "provider": {"scripted": provider},
        }
        # Beside the file of an install: it reads both.
        (folder / "opencode.jsonc").write_text(json.dumps(settings))
        return {}

    def connect(self, desk: Desk, printed: str) -> None:
        merge_json(desk.project / "opencode.json", printed)

    def command(self, prompt: str, *, goes_on: bool) -> list[str]:
        return [str(self.program), "run", *(["-c"] if goes_on else []), prompt]

    def progress(self) -> list[object]:
        asked = {"description": "Leaks", "prompt": SUBTASK, "subagent_type": "explore"}
        todos = [{"content": TASK, "status": "pending", "priority": "high"}]
        return [
            {"tool": "todowrite", "input": {"todos": todos}},
            {"tool": "task", "input": asked},
        ]

    def write(self, path: Path) -> dict[str, Any]:
        return {"tool": "write", "input": {"filePath": str(path), "content": "x"}}

    def shell(self, command: str) -> dict[str, Any]:
        return {"tool": "bash", "input": {"command": command, "description": "try"}}


CLIENTS: tuple[RealClient, ...] = (
    ClaudeCode(),
    OlderClaudeCode(),
    Codex(),
    Gemini(),
    OpenCode(),
)
