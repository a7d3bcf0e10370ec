"""`interlock driver run`: be the driver of this machine, in the foreground."""

import sys

import click

from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.data_home import data_home
from interlock.cli.authority import require_user
from interlock.cli.terminal import print_message


@click.command("run")
def run_driver() -> None:
    """Be the driver of this machine until Ctrl-C; `interlock up` starts one by itself"""
    require_user("Being a driver")
    if not isinstance(find_server(data_home()), RunningServer):
        print_message("No server runs yet: start one with `interlock up`. Waiting for it.")
    from interlock.driver.__main__ import main  # noqa: PLC0415 (what models need takes long)

    sys.exit(main())
