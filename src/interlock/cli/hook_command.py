"""`interlock hook` as a person would type it; clients are answered without click (`main`)."""

from pathlib import Path

import click

from interlock.app.data_home import data_home
from interlock.cli.hook import answer_hook
from interlock.cli.terminal import Stop


@click.command()
@click.option("--host", required=True, help="The agent client")
@click.option("--event", required=True, help="What happens")
@click.option("--home", type=click.Path(path_type=Path), help="Interlock's data home")
def hook(host: str, event: str, home: Path | None) -> None:
    """Answer a hook of an agent client (it sends JSON on stdin)"""
    raise Stop(answer_hook(host, event, str(home or data_home())))
