"""`interlock migrate`: take over what a project kept before it had notes."""

import sys
from pathlib import Path

import click

from interlock.app.handoff.migrate import MigrationReport
from interlock.app.handoff.migrate import migrate_handoff as take_over
from interlock.cli.note import as_json_option, open_project_notes, result_or_stop
from interlock.cli.terminal import print_json

_RESULT_WORDS = {"created": "created", "unchanged": "already there", "kept": "kept"}
_DRY_RUN_WORDS = {**_RESULT_WORDS, "created": "would create"}


@click.group()
def migrate() -> None:
    """Take over what the project kept in other files"""


@migrate.command("handoff")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing")
@as_json_option
def handoff_command(path: Path, *, dry_run: bool, as_json: bool) -> None:
    """Turn a HANDOFF.md into notes and a session

    The file is not changed. Doing it again writes nothing twice.
    """
    app, notes = open_project_notes(as_json=as_json)
    done = result_or_stop(take_over(app, notes, path, is_dry_run=dry_run), as_json=as_json)
    if as_json:
        print_json(done)
    else:
        _print_report(done)


def _print_report(done: MigrationReport) -> None:
    words = _DRY_RUN_WORDS if done.is_dry_run else _RESULT_WORDS
    for one in done.notes:
        print(f"{words[one.result]}: {one.path}")
    if not done.notes:
        print(f"{done.source} says nothing that could be a note.")
    if any(one.result == "kept" for one in done.notes):
        print("hint: what was kept says something else by now; compare it.", file=sys.stderr)
    if done.session:
        print(f"session: {done.session}")
    print(done.remark, file=sys.stderr)
