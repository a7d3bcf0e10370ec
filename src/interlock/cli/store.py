"""`interlock store`: show what is stored, verify it, and copy it elsewhere."""

import os
import sys
from pathlib import Path

import click

from interlock.app.admin.store_copy import CopyReport
from interlock.app.admin.store_copy import copy as copy_store
from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.sessions.lookup import verify_all
from interlock.cli.session_state import require_user
from interlock.cli.terminal import (
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    Stop,
    print_error,
    print_json,
    refuse,
)

_BAR_WIDTH = 24


@click.group()
def store() -> None:
    """Look after the store"""


@store.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def stats(*, as_json: bool) -> None:
    """Show what the store holds, and where"""
    home = data_home()
    app = open_app(home)
    store_stats = app.reader.stats()
    if as_json:
        print_json({"home": str(home), "place": app.store_label, "stats": store_stats})
        return
    print(f"home      {home}")
    print(f"store     {app.store_label}")
    print(f"engine    {store_stats.engine}, schema {store_stats.schema}")
    print(f"sessions  {store_stats.sessions}")
    print(f"events    {store_stats.events}")
    print(f"blobs     {store_stats.blobs}")
    print(f"on disk   {store_stats.size / 1024:.0f} KiB")


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
        raise Stop(EXIT_REFUSED)


@store.command()
@click.option("--to", required=True, metavar="URL", help="postgresql://…, or a directory")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def copy(to: str, *, as_json: bool) -> None:
    """Copy everything in the store to a database, or to a directory, and verify it

    Agents may go on working meanwhile. A copy that was interrupted goes on where it stopped, and
    one that was made before is brought up to date. Your config is not changed.
    """
    require_user("Copying the store")
    home = data_home()
    app = open_app(home)
    try:
        outcome = copy_store(app, to, _print_progress)
    except KeyboardInterrupt:
        _clear_line()
        print_error(
            "Stopped before the end: what was begun is marked as unfinished",
            "The same command again goes on from there.",
        )
        raise Stop(EXIT_INTERRUPTED) from None
    finally:
        _clear_line()
        app.close()
    if not isinstance(outcome, CopyReport):
        refuse(outcome.explain(), as_json=as_json)
    if as_json:
        print_json(outcome)
        return
    print(f"from      {outcome.source}\nto        {outcome.target}")
    already_there = (
        f", {outcome.known} of them there before: went on with those" if outcome.known else ""
    )
    print(f"sessions  {outcome.sessions}{already_there}")
    print(f"events    {outcome.events}, {outcome.brought} of them brought now")
    print(f"blobs     {outcome.blobs}\nkeys      {outcome.keys}")
    print("verified  every chain was walked in the target, and every blob hashed\n")
    print(
        "Nothing was changed over. To do so, stop agents and servers, run this once more for what"
        f" they wrote meanwhile, then {_switch_over_hint(outcome, to, home)}"
    )


def _switch_over_hint(report: CopyReport, to: str, home: Path) -> str:
    """The instruction that makes the target the store in use; it never has a password."""
    is_set = bool(os.environ.get("INTERLOCK_STORE"))
    if report.target.startswith("postgresql://"):
        instruction = (
            "set INTERLOCK_STORE" if is_set else f"write at the top of `{home / 'config.toml'}`"
        )
        line = report.target if is_set else f'store = "{report.target}"'
        url_remark = "" if to == report.target else " with the whole URL, as you gave it"
        return f"{instruction}{url_remark}:\n\n    {line}"
    directory = Path(report.target).parent
    setting = "INTERLOCK_STORE" if is_set else f"the line `store` from `{home / 'config.toml'}`"
    if directory == home:
        return f"remove {setting}."
    return f"set INTERLOCK_HOME to `{directory}`{', and remove INTERLOCK_STORE' if is_set else ''}."


def _print_progress(phase: str, done: int, total: int) -> None:
    """Show the progress in one line that is written over, on a terminal only."""
    if sys.stderr.isatty():
        full = _BAR_WIDTH * done // total
        bar = f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {done} of {total} sessions"
        print(f"\r{phase:<9} {bar}\033[K", end="", file=sys.stderr, flush=True)


def _clear_line() -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
