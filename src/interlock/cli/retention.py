"""`interlock retention`: remove what was only kept for a while."""

import click

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.protocol.retention import apply_retention
from interlock.cli.authority import require_user
from interlock.cli.terminal import print_json, print_lines, print_message, print_table


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what, and remove nothing")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def retention(*, dry_run: bool, as_json: bool) -> None:
    """Remove old copies: notes of compacted histories, old journals and crash logs

    [retention] in the user's config.toml says after how many days: compaction_days (30), and
    archived_days (never), after which archived sessions are deleted.
    """
    require_user("Removing what is old")
    expired = apply_retention(open_app(data_home()), is_dry=dry_run)
    if as_json:
        print_json({"isDryRun": dry_run, "items": expired})
        return
    print_table([(item.kind.replace("_", " "), item.name, item.workspace) for item in expired])
    verb = "would be removed" if dry_run else "removed"
    print_lines(f"{len(expired)} {verb}." if expired else "Nothing is too old.")
    for leftover in (line for item in expired for line in item.leftovers):
        print_message(f"But {leftover}")
