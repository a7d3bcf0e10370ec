"""`interlock mcp` with options: the lines that connect a client by hand."""

import click

from interlock.cli.mcp import named, serve, tools_named
from interlock.cli.terminal import DONE, MISUSE, print_json
from interlock.mcp import hosts
from interlock.mcp.hosts import HOSTS, Host


@click.command()
@click.option(
    "--print-config",
    "host",
    type=click.Choice(HOSTS),
    help="Print the lines that connect this client, and do not serve",
)
@click.option("--toolsets", help="Only these, with commas between (workflow,session)")
@click.option("--json", "as_json", is_flag=True, help="With --print-config: as JSON")
def mcp(host: Host | None, toolsets: str | None, *, as_json: bool) -> int:
    """Serve the tools to an agent client over stdin and stdout"""
    if host is None:
        return serve(toolsets)
    if toolsets is not None and tools_named(named(toolsets)) is None:
        return MISUSE
    command = hosts.command(toolsets)
    config = hosts.config(host, command)
    if as_json:
        print_json({"host": host, "command": command, "config": config})
    else:
        print(config)
    return DONE
