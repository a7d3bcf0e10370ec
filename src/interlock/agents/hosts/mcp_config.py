"""The configuration of the server for each agent client, to be put in by hand."""

import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.hosts.host import SERVER
from interlock.agents.hosts.registry import NAMES, host_named

SECRET_VARIABLE = "INTERLOCK_SECRET"
"""The environment variable that clients read the secret from, where they can."""
AMP = "amp"
"""A client without hooks, so that it is no host: it can only be told of the server."""
CLIENTS = (*NAMES, AMP)
_UNTRIED = " (from documentation, not tried)"


def command(toolsets: str | None = None) -> list[str]:
    """The server's command by its full path: clients do not have this shell's PATH."""
    script = Path(sys.executable).with_name("interlock")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "interlock"]
    return [*program, "mcp", *(("--toolsets", toolsets) if toolsets else ())]


def config(client: str, server: list[str], home: Path) -> str:
    """The lines to run or to paste so that a client starts `server` with this data home."""
    variables = {"INTERLOCK_HOME": str(home)}
    if client == AMP:
        first, *rest = server
        entry = {"command": first, "args": rest, "env": variables}
        return f"# Put into ~/.config/amp/settings.json{_UNTRIED}:\n" + _json(
            {"amp.mcpServers": {SERVER: entry}}
        )
    host = host_named(client)
    blocks = [
        f"# Put into {path}{'' if host.is_tried else _UNTRIED}:\n{_text(content)}"
        for path, content in host.manual_entries(server, variables)
    ]
    return "\n".join([*host.manual_commands(server, variables), *blocks])


def http_config(client: str, url: str, secret: Path) -> str:
    """The same for the server that runs at `url`. The secret itself is never written down."""
    address = f"{url}/mcp"
    export = (
        f"# First, in the shell that starts the client:\n"
        f'export {SECRET_VARIABLE}="{cat_expression(secret)}"\n'
    )
    if client == AMP:
        entry = {"url": address, "headers": _bearer_header(f"${{{SECRET_VARIABLE}}}")}
        return f"{export}# Put into ~/.config/amp/settings.json{_UNTRIED}:\n" + _json(
            {"amp.mcpServers": {SERVER: entry}}
        )
    host = host_named(client)
    path, content = host.manual_http_entry(address, SECRET_VARIABLE, str(secret))
    text = _text(content)
    block = f"# Put into {path}{'' if host.is_tried else _UNTRIED}:\n{text}"
    block = f"{export}{block}" if SECRET_VARIABLE in text else block
    line = http_command(client, url, secret)
    return f"# Run:\n{line}\n# or:\n{block}" if line else block


def http_command(client: str, url: str, secret: Path) -> str:
    """The command that connects a client to the server at `url`; empty if it has none."""
    return host_named(client).manual_http_command(f"{url}/mcp", cat_expression(secret))


def cat_expression(secret: Path) -> str:
    """The content of the file, where a shell reads this."""
    return f"$(cat {shlex.quote(str(secret))})"


def _bearer_header(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _text(content: str | dict[str, Any]) -> str:
    return content if isinstance(content, str) else _json(content)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
