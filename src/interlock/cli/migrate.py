"""`interlock migrate`: turn what a project kept in other files into notes."""

from pathlib import Path

import click

from interlock.app.callers.caller import local_caller
from interlock.app.handoff.migrate import MigrationReport, migrate_handoff
from interlock.cli.note import as_json_option, open_project_notes, result_or_stop
from interlock.cli.terminal import print_json, print_lines, print_message

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
    app, notes = open_project_notes()
    report = result_or_stop(
        migrate_handoff(app, local_caller(app, notes.root), notes, path, is_dry_run=dry_run)
    )
    if as_json:
        print_json(report)
    else:
        _print_report(report)


def _print_report(report: MigrationReport) -> None:
    words = _DRY_RUN_WORDS if report.is_dry_run else _RESULT_WORDS
    for note in report.notes:
        print_lines(f"{words[note.result]}: {note.path}")
    if not report.notes:
        print_lines(f"{report.source} says nothing that could be a note.")
    if any(note.result == "kept" for note in report.notes):
        print_message("hint: what was kept says something else by now; compare it.")
    if report.session:
        print_lines(f"session: {report.session}")
    print_message(report.remark)
