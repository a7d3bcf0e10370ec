"""`interlock mcp` with options: the lines that connect a client by hand."""

import click

from interlock.cli.mcp import serve
from interlock.cli.terminal import print_json
from interlock.mcp import hosts
from interlock.mcp.hosts import HOSTS, Host


@click.command()
@click.option(
    "--print-config",
    "host",
    type=click.Choice(HOSTS),
    help="Print the lines that connect this client, and do not serve",
)
@click.option("--json", "as_json", is_flag=True, help="With --print-config: as JSON")
def mcp(host: Host | None, *, as_json: bool) -> int:
    """Serve the tools to an agent client over stdin and stdout"""
    if host is None:
        return serve()
    if as_json:
        print_json({"host": host, "command": hosts.command(), "config": hosts.config(host)})
    else:
        print(hosts.config(host))
    return 0
