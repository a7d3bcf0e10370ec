"""`interlock sources`: manage where workflow files are read from besides the usual places."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from interlock.app.catalogue.sources import (
    SourceFailure,
    SourceRow,
    SyncOutcome,
    add_source,
    list_sources,
    remove_source,
    sync_sources,
)
from interlock.app.clock import SystemClock
from interlock.app.data_home import data_home
from interlock.cli.authority import require_user
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    expect,
    print_error,
    print_json,
    print_lines,
    print_table,
    refuse,
)
from interlock.core.explanation import Explanation
from interlock.core.refusal import PlainRefusal
from interlock.core.views.counting import time_ago

COMMIT_SHOWN = 12


@click.group()
def sources() -> None:
    """Read workflows from other directories and from git repositories"""


@sources.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the sources, and what is wrong with one"""
    rows = list_sources(data_home())
    if as_json:
        print_json(rows)
        return
    if not rows:
        print_lines(
            "No sources. `interlock sources add LOCATION` adds a directory or a repository."
        )
    now_ms = SystemClock().now_ms()
    print_table([_table_row(row, now_ms) for row in rows])


@sources.command()
@click.argument("location")
@click.option("--name", help="What to call it; default: the last word of the location")
@click.option("--ref", help="Branch, tag or commit of a repository; default: its HEAD")
@click.option("--path", help="The directory below the location that holds the workflow files")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def add(
    location: str, name: str | None, ref: str | None, path: str | None, *, as_json: bool
) -> None:
    """Add a directory or a git repository, which is fetched once

    A directory is read where it lies. With --ref, or if it is a bare repository, it is fetched
    like one from elsewhere.
    """
    require_user("Adding a source")
    with _stop_on_source_failure():
        added = add_source(
            data_home(), location, name=name, ref=ref, path=path, clock=SystemClock()
        )
    added = expect(SourceRow, added)
    if as_json:
        print_json(added)
        return
    at = f" at {added.commit[:COMMIT_SHOWN]}" if added.commit else ""
    print_lines(f"Added the {added.kind} source {added.name}{at}: {added.files} workflow files.")
    if added.problem:
        print_lines(added.problem)
    elif not added.files:
        print_lines(f"None lie in {added.directory}; `--path` would choose a directory below.")


@sources.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def sync(name: str | None, *, as_json: bool) -> None:
    """Fetch a source anew, or all of them

    What cannot be fetched stays as it was, and the exit code is 1.
    """
    require_user("Fetching a source")
    with _stop_on_source_failure():
        outcomes = sync_sources(data_home(), name, SystemClock())
    if isinstance(outcomes, PlainRefusal):
        refuse(outcomes.explain())
    if as_json:
        print_json(outcomes)
    elif not outcomes:
        print_lines(
            "No sources. `interlock sources add LOCATION` adds a directory or a repository."
        )
    else:
        for outcome in outcomes:
            _print_outcome(outcome)
    if any(outcome.error for outcome in outcomes):
        raise Stop(EXIT_REFUSED)


@sources.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def remove(name: str, *, as_json: bool) -> None:
    """Read nothing from a source any more; a directory itself stays"""
    require_user("Removing a source")
    with _stop_on_source_failure():
        removed = remove_source(data_home(), name)
    if isinstance(removed, PlainRefusal):
        refuse(removed.explain())
    if as_json:
        print_json({"removed": removed.name})
    else:
        print_lines(f"Removed {removed.name}: {removed.location}")


def _table_row(row: SourceRow, now_ms: int) -> tuple[str, ...]:
    return (
        row.name,
        row.kind,
        f"{row.location} ({row.path})" if row.path else row.location,
        row.ref or "-",
        "-" if row.synced_ms is None else time_ago(row.synced_ms, now_ms),
        row.commit[:COMMIT_SHOWN] if row.commit else "-",
        row.problem or f"{row.files} workflow files",
    )


def _print_outcome(outcome: SyncOutcome) -> None:
    if outcome.error:
        in_use = f" {outcome.commit[:COMMIT_SHOWN]} stays in use." if outcome.commit else ""
        print_error(f"{outcome.name}: {outcome.error}", f"{outcome.hint}{in_use}")
    elif outcome.commit is None or outcome.before is None:
        print_lines(
            f"{outcome.name}: a directory, read where it lies; {outcome.files} workflow files"
        )
    else:
        previous, commit = outcome.before[:COMMIT_SHOWN], outcome.commit[:COMMIT_SHOWN]
        is_new = outcome.before != outcome.commit
        commits = f"{previous} -> {commit}" if is_new else f"{commit}, nothing new"
        print_lines(f"{outcome.name}: {commits}; {outcome.changed} workflow files changed")


@contextmanager
def _stop_on_source_failure() -> Generator[None]:
    try:
        yield
    except SourceFailure as failure:
        explanation = Explanation("source_failed", str(failure), failure.hint)
        refuse(explanation)
