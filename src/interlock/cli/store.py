"""`interlock store`: what is kept, and whether it is sound."""

import sys

import click

from interlock.app.context import open_app
from interlock.app.home import data_home
from interlock.app.sessions import verify_all
from interlock.cli.terminal import REFUSED, Stop, print_json


@click.group()
def store() -> None:
    """Look after the store"""


@store.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def stats(*, as_json: bool) -> None:
    """Show what the store holds, and where"""
    home = data_home()
    app = open_app(home)
    found = app.reader.stats()
    if as_json:
        print_json({"home": str(home), "place": app.place, "stats": found})
        return
    print(f"home      {home}")
    print(f"store     {app.place}")
    print(f"engine    {found.engine}, schema {found.schema}")
    print(f"sessions  {found.sessions}")
    print(f"events    {found.events}")
    print(f"blobs     {found.blobs}")
    print(f"on disk   {found.size / 1024:.0f} KiB")


@store.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def verify(*, as_json: bool) -> None:
    """Walk every session's chain and check everything it names"""
    app = open_app(data_home())
    count = app.reader.stats().sessions
    checked, events = 0, 0
    unsound: list[dict[str, object]] = []
    for session, health in verify_all(app):
        checked, events = checked + 1, events + health.valid
        if sys.stderr.isatty():
            print(f"\r{checked} of {count} sessions", end="", file=sys.stderr)
        if health.state != "healthy":
            unsound.append({"session": session, "health": health})
            if not as_json:
                print(f"{session}: {health.state}: {health.reason} ({health.valid} events sound)")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if as_json:
        print_json({"sessions": checked, "events": events, "unsound": unsound})
    else:
        print(f"{checked} sessions with {events} sound events, {len(unsound)} damaged")
    if unsound:
        raise Stop(REFUSED)
