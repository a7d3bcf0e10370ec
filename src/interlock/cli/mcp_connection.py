"""`interlock mcp` with options: the lines that connect a client by hand."""

import click

from interlock.agents.hosts import mcp_config
from interlock.app.admin.access import agent_secret_file
from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.data_home import data_home
from interlock.cli.mcp import resolve_tools, serve, split_toolsets
from interlock.cli.terminal import (
    EXIT_DONE,
    EXIT_MISUSE,
    EXIT_REFUSED,
    Stop,
    print_error,
    print_json,
    print_text,
)


@click.command()
@click.option(
    "--print-config",
    "host",
    type=click.Choice(mcp_config.CLIENTS),
    help="Print the lines that connect this client, and do not serve",
)
@click.option("--toolsets", help="Only these, with commas between (workflow,session)")
@click.option("--http", is_flag=True, help="With --print-config: to the server that runs now")
@click.option("--json", "as_json", is_flag=True, help="With --print-config: as JSON")
def mcp(host: str | None, toolsets: str | None, *, http: bool, as_json: bool) -> int:
    """Serve the tools to an agent client over stdin and stdout"""
    if http and (host is None or toolsets is not None):
        raise click.UsageError(
            "--http says how --print-config connects to the server, which has all toolsets."
        )
    if host is None:
        return serve(toolsets)
    if toolsets is not None and resolve_tools(split_toolsets(toolsets)) is None:
        return EXIT_MISUSE
    if http:
        _print_http_config(host, as_json=as_json)
        return EXIT_DONE
    command = mcp_config.command(toolsets)
    config = mcp_config.config(host, command, data_home())
    if as_json:
        print_json({"host": host, "command": command, "config": config})
    else:
        print_text(config)
    return EXIT_DONE


def _print_http_config(host: str, *, as_json: bool) -> None:
    home = data_home()
    server = find_server(home)
    if not isinstance(server, RunningServer):
        print_error("No server runs, so there is none to connect to", "`interlock up` starts one.")
        raise Stop(EXIT_REFUSED)
    config = mcp_config.http_config(host, server.url, agent_secret_file(home))
    if as_json:
        print_json({"host": host, "url": f"{server.url}/mcp", "config": config})
    else:
        print_text(config)
