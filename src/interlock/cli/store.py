"""`interlock store`: show what is stored, verify it, and copy it elsewhere."""

import os
from pathlib import Path

import click

from interlock.app.admin.store_copy import CopyReport
from interlock.app.admin.store_copy import copy as copy_store
from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.sessions.lookup import verify_all
from interlock.cli.authority import require_user
from interlock.cli.terminal import (
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    Stop,
    clear_progress,
    expect,
    print_error,
    print_json,
    print_lines,
    show_progress,
)
from interlock.core.counting import pluralise

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
    print_lines(f"home      {home}")
    print_lines(f"store     {app.store_label}")
    print_lines(f"engine    {store_stats.engine}, schema {store_stats.schema}")
    print_lines(f"sessions  {store_stats.sessions}")
    print_lines(f"events    {store_stats.events}")
    print_lines(f"blobs     {store_stats.blobs}")
    print_lines(f"on disk   {store_stats.size / 1024:.0f} KiB")


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
        show_progress(f"{checked} of {pluralise(count, 'session')}")
        if health.state != "healthy":
            unsound.append({"session": session, "health": health})
            if not as_json:
                print_lines(
                    f"{session}: {health.state}: {health.reason}"
                    f" ({pluralise(health.valid, 'sound event')})"
                )
    for project, damage in app.reader.project_damage():
        unsound.append({"project": project, "reason": damage})
        if not as_json:
            print_lines(f"project {project}: {damage}")
    clear_progress()
    if as_json:
        print_json({"sessions": checked, "events": events, "unsound": unsound})
    else:
        counted = f"{pluralise(checked, 'session')} with {pluralise(events, 'sound event')}"
        print_lines(f"{counted}, {len(unsound)} damaged")
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
        outcome = copy_store(app, to, _show_copy_progress)
    except KeyboardInterrupt:
        clear_progress()
        print_error(
            "Stopped before the end: what was begun is marked as unfinished",
            "The same command again goes on from there.",
        )
        raise Stop(EXIT_INTERRUPTED) from None
    finally:
        clear_progress()
        app.close()
    outcome = expect(CopyReport, outcome)
    if as_json:
        print_json(outcome)
        return
    print_lines(f"from      {outcome.source}", f"to        {outcome.target}")
    already_there = (
        f", {outcome.known} of them there before: went on with those" if outcome.known else ""
    )
    print_lines(f"sessions  {outcome.sessions}{already_there}")
    print_lines(f"events    {outcome.events}, {outcome.brought} of them brought now")
    print_lines(f"blobs     {outcome.blobs}", f"keys      {outcome.keys}")
    print_lines("verified  every chain was walked in the target, and every blob hashed", "")
    instruction, *setting = _switch_over_hint(outcome, to, home)
    print_lines(
        "Nothing was changed over. To do so, stop agents and servers, run this once more for what"
        f" they wrote meanwhile, then {instruction}",
        *setting,
    )


def _switch_over_hint(report: CopyReport, to: str, home: Path) -> list[str]:
    """The lines that say how the target becomes the store in use; they never have a password."""
    is_set = bool(os.environ.get("INTERLOCK_STORE"))
    if report.target.startswith("postgresql://"):
        instruction = (
            "set INTERLOCK_STORE" if is_set else f"write at the top of `{home / 'config.toml'}`"
        )
        line = report.target if is_set else f'store = "{report.target}"'
        url_remark = "" if to == report.target else " with the whole URL, as you gave it"
        return [f"{instruction}{url_remark}:", "", f"    {line}"]
    directory = Path(report.target).parent
    setting = "INTERLOCK_STORE" if is_set else f"the line `store` from `{home / 'config.toml'}`"
    if directory == home:
        return [f"remove {setting}."]
    removal = ", and remove INTERLOCK_STORE" if is_set else ""
    return [f"set INTERLOCK_HOME to `{directory}`{removal}."]


def _show_copy_progress(phase: str, done: int, total: int) -> None:
    full = _BAR_WIDTH * done // total
    bar = f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {done} of {pluralise(total, 'session')}"
    show_progress(f"{phase:<9} {bar}")
