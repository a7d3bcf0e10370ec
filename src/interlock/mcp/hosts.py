"""How each agent client is told of the server: the lines that a person would put in by hand."""

import shlex
import sys
from pathlib import Path
from typing import Literal, get_args

import msgspec

Host = Literal["claude-code", "codex", "gemini", "opencode", "cursor", "copilot"]
HOSTS: tuple[Host, ...] = get_args(Host)


def command(toolsets: str | None = None) -> list[str]:
    """The server's command by its full path: clients do not have this shell's PATH."""
    script = Path(sys.executable).with_name("interlock")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "interlock"]
    return [*program, "mcp", *(("--toolsets", toolsets) if toolsets else ())]


def config(host: Host, server: list[str]) -> str:
    """What to do for `host` so that it starts `server`, as lines to run or to paste."""
    program, *arguments = server
    stdio = {"type": "stdio", "command": program, "args": arguments}
    match host:
        case "claude-code":
            return (
                "# Run:\n"
                f"claude mcp add interlock -- {shlex.join(server)}\n"
                "# or put into .mcp.json of the project (alwaysLoad shows the tools at once):\n"
                + _json({"mcpServers": {"interlock": {**stdio, "alwaysLoad": True}}})
            )
        case "codex":
            return (
                "# Add to ~/.codex/config.toml:\n"
                "[mcp_servers.interlock]\n"
                f"command = {_compact(program)}\nargs = {_compact(arguments)}"
            )
        case "gemini":
            entry = {"command": program, "args": arguments}
            return "# Put into ~/.gemini/settings.json:\n" + _json(
                {"mcpServers": {"interlock": entry}}
            )
        case "opencode":
            entry = {"type": "local", "command": server, "enabled": True}
            return "# Put into opencode.json of the project:\n" + _json(
                {"mcp": {"interlock": entry}}
            )
        case "cursor":
            return "# Put into ~/.cursor/mcp.json (from documentation, not tried):\n" + _json(
                {"mcpServers": {"interlock": stdio}}
            )
        case "copilot":
            return "# Put into .vscode/mcp.json (from documentation, not tried):\n" + _json(
                {"servers": {"interlock": stdio}}
            )


def _compact(value: object) -> str:
    """JSON on one line. Strings and lists of strings look the same in TOML."""
    return msgspec.json.encode(value).decode()


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
