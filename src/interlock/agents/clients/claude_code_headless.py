"""Claude Code without a person. Tried with 2.1.325; older ones refuse the command line.

It runs in its restricted mode: of settings it takes only those on its command line, and its file
tools stay in the worktree. So nothing of the user's is changed, no hook, server or skill that the
model writes into the worktree is ever run, and the user's login works all the same. What may run
commands is its Bash alone, which our shell confines.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from interlock.agents.clients.claude_code_output import ClaudeCodeOutput
from interlock.agents.clients.headless import ClientCommand, ClientEvent, ClientStart
from interlock.agents.hosts.claude_code import HOST
from interlock.agents.hosts.claude_code_shell import (
    BRANCH_VARIABLE,
    PLAIN_VARIABLES,
    SHELL_VARIABLE,
    WORKTREE_VARIABLE,
)
from interlock.agents.hosts.host import SERVER, JsonPart
from interlock.agents.hosts.mcp_config import SECRET_VARIABLE

TOOLS = ("Bash", "Read", "Edit", "Write", "Glob", "Grep")
"""The most that it gets. Nothing works in the background, and there is neither agent nor web."""
TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
LOGIN_VARIABLES = ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN")
LOGIN_PREFIX = "ANTHROPIC_"
NETWORK_VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
STORE_VARIABLE = "INTERLOCK_STORE"
"""Our hooks find the store by it."""
_SETTINGS = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # a command ends with its call
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",  # it would run git outside of the sandbox
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    **{f"GIT_{role}_NAME": "Interlock" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "interlock@localhost" for role in ("AUTHOR", "COMMITTER")},
}
"""As the driver's own tools have it, too: commands cannot read who the user is."""


class ClaudeCodeHeadless:
    """A `HeadlessClient`. `spent_micros` is the last that was said of a resumed conversation."""

    def __init__(self, program: str, *, spent_micros: int = 0) -> None:
        self._program = program
        self._output = ClaudeCodeOutput(spent_micros)

    def command(self, start: ClientStart, environment: Mapping[str, str]) -> ClientCommand:
        settings, servers = _entries(start)
        words = [
            *(self._program, "-p", "--input-format=stream-json", "--output-format=stream-json"),
            # Without the pieces of a message nothing tells its end, nor the tokens of its output.
            *("--verbose", "--include-partial-messages"),
            *("--restricted", "--strict-mcp-config", "--permission-mode=dontAsk"),
            f"--tools={','.join(start.tools)}",
            f"--allowedTools={','.join((*start.tools, f'mcp__{SERVER}'))}",
            f"--settings={_json(settings)}",
            f"--mcp-config={_json(servers)}",
            f"--max-turns={start.turns_max}",
            f"--{'resume' if start.is_resumed else 'session-id'}={start.conversation}",
        ]
        if start.model:
            words.append(f"--model={start.model}")
        if start.rules:
            words.append(f"--append-system-prompt={start.rules}")
        if start.cost_micros_max is not None:
            words.append(f"--max-budget-usd={start.cost_micros_max / 1_000_000:.6f}")
        return ClientCommand(tuple(words), _variables(start, environment))

    def message_line(self, text: str) -> bytes:
        message = {"role": "user", "content": text}
        return _json({"type": "user", "message": message}).encode() + b"\n"

    def interrupt_line(self) -> bytes:
        request = {"subtype": "interrupt"}
        line = {"type": "control_request", "request_id": "interrupt", "request": request}
        return _json(line).encode() + b"\n"

    def read_line(self, line: bytes) -> tuple[ClientEvent, ...]:
        return self._output.read_line(line)


def _entries(start: ClientStart) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings and the server, as an install would write them."""
    shell = {SHELL_VARIABLE: start.shell} if start.shell else {}
    settings, servers = (
        part.addition
        for part in HOST.parts("user", "", str(start.home), shell)
        if isinstance(part, JsonPart)
    )
    if start.is_gated:
        settings["hooks"] = {name: settings["hooks"][name] for name in TOOL_EVENTS}
    if start.server:
        _, entry = HOST.manual_http_entry(f"{start.server.url}/mcp", SECRET_VARIABLE, "")
        servers = cast("dict[str, Any]", entry)
        servers["mcpServers"][SERVER]["headers"] |= start.server.headers
    return settings, servers


def _variables(start: ClientStart, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which there is nothing to sign in with but to the model and to us."""
    names = {*PLAIN_VARIABLES, *LOGIN_VARIABLES, *NETWORK_VARIABLES, STORE_VARIABLE}
    is_kept = {name: name in names or name.startswith(LOGIN_PREFIX) for name in environment}
    own = {"INTERLOCK_HOME": str(start.home), WORKTREE_VARIABLE: str(start.worktree)}
    if start.branch is not None:
        own[BRANCH_VARIABLE] = start.branch
    if start.shell:
        own[SHELL_VARIABLE] = start.shell
    if start.server:
        own[SECRET_VARIABLE] = start.server.bearer_file.read_text(encoding="utf-8").strip()
    user = {name: value for name, value in environment.items() if is_kept[name]}
    return {**user, **_SETTINGS, **own}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
