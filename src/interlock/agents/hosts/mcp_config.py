"""The configuration of the server for each agent client, to be put in by hand."""

import shlex
import sys
from pathlib import Path

import msgspec

from interlock.core.gate.tools import Host

SECRET_VARIABLE = "INTERLOCK_SECRET"
"""The environment variable that clients read the secret from, where they can."""
_UNTRIED = " (from documentation, not tried)"


def command(toolsets: str | None = None) -> list[str]:
    """The server's command by its full path: clients do not have this shell's PATH."""
    script = Path(sys.executable).with_name("interlock")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "interlock"]
    return [*program, "mcp", *(("--toolsets", toolsets) if toolsets else ())]


def config(host: Host, server: list[str]) -> str:
    """The lines to run or to paste so that `host` starts `server`."""
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
            return f"# Put into ~/.cursor/mcp.json{_UNTRIED}:\n" + _json(
                {"mcpServers": {"interlock": stdio}}
            )
        case "copilot":
            return f"# Put into .vscode/mcp.json{_UNTRIED}:\n" + _json(
                {"servers": {"interlock": stdio}}
            )


def http_config(host: Host, url: str, secret: Path) -> str:
    """The same for the server that runs at `url`. The secret itself is never written down."""
    address = f"{url}/mcp"
    value = f'"{cat_expression(secret)}"'
    export = f"# First, in the shell that starts the client:\nexport {SECRET_VARIABLE}={value}\n"
    match host:
        case "claude-code":
            entry = _remote_entry(address, f"${{{SECRET_VARIABLE}}}", type="http", alwaysLoad=True)
            return (
                f"# Run:\n{claude_command(url, secret)}\n"
                "# or put into .mcp.json of the project (alwaysLoad shows the tools at once), and"
                f" set {SECRET_VARIABLE}\n# in the shell that starts the client:"
                f' export {SECRET_VARIABLE}="{cat_expression(secret)}"\n'
                + _json({"mcpServers": {"interlock": entry}})
            )
        case "codex":
            return (
                f"{export}# Add to ~/.codex/config.toml{_UNTRIED}:\n[mcp_servers.interlock]\n"
                f"url = {_compact(address)}\nbearer_token_env_var = {_compact(SECRET_VARIABLE)}"
            )
        case "gemini":
            entry = {"httpUrl": address, "headers": _bearer_header(f"${SECRET_VARIABLE}")}
            return f"{export}# Put into ~/.gemini/settings.json{_UNTRIED}:\n" + _json(
                {"mcpServers": {"interlock": entry}}
            )
        case "opencode":
            # It reads files by itself.
            entry = _remote_entry(address, f"{{file:{secret}}}", type="remote", enabled=True)
            return f"# Put into opencode.json of the project{_UNTRIED}:\n" + _json(
                {"mcp": {"interlock": entry}}
            )
        case "cursor":
            entry = _remote_entry(address, f"${{env:{SECRET_VARIABLE}}}")
            where = f"# Put into ~/.cursor/mcp.json{_UNTRIED}:\n"
            return f"{export}{where}" + _json({"mcpServers": {"interlock": entry}})
        case "copilot":
            secret_input = {
                "type": "promptString",
                "id": "interlock",
                "description": f"The content of {secret}",
                "password": True,
            }
            entry = _remote_entry(address, "${input:interlock}", type="http")
            where = "# Put into .vscode/mcp.json; it asks for the content of"
            return f"{where}\n# {secret}{_UNTRIED}:\n" + _json(
                {"inputs": [secret_input], "servers": {"interlock": entry}}
            )


def claude_command(url: str, secret: Path) -> str:
    header = f'"Authorization: Bearer {cat_expression(secret)}"'
    return f"claude mcp add --transport http interlock {url}/mcp --header {header}"


def cat_expression(secret: Path) -> str:
    """The content of the file, where a shell reads this."""
    return f"$(cat {shlex.quote(str(secret))})"


def _remote_entry(address: str, secret: str, **more: object) -> dict[str, object]:
    return {**more, "url": address, "headers": _bearer_header(secret)}


def _bearer_header(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _compact(value: object) -> str:
    """JSON on one line. Strings and lists of strings look the same in TOML."""
    return msgspec.json.encode(value).decode()


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
