"""`interlock gate bypass`: open a rule for a reason, see what is open, close it again."""

from datetime import UTC, datetime
from pathlib import Path

import click

from interlock.app.clock import SystemClock
from interlock.app.data_home import data_home
from interlock.app.gate import bypasses as use
from interlock.app.gate.integrity import governed_root
from interlock.app.refusals import ProjectNotOptedIn
from interlock.cli.authority import require_person, require_user
from interlock.cli.terminal import expect, print_json, print_lines, print_table, refuse
from interlock.core.gate.rules import RULES, Bypass, Rule

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.group()
def bypass() -> None:
    """Open a rule of the gate for a reason, and see what is open"""


@bypass.command()
@click.argument("rule", type=click.Choice(RULES), metavar="RULE")
@click.option("--reason", required=True, help="Why; it is kept with each use")
@click.option(
    "--project",
    type=click.Path(path_type=Path, exists=True),
    help="Only in the project there; default: in every one",
)
@click.option("--days", type=click.IntRange(1, 3650), help="For so long; default: until removed")
@_json_option
def add(rule: str, reason: str, project: Path | None, days: int | None, *, as_json: bool) -> None:
    """Let pass what RULE denies; each time is kept in `interlock gate log`"""
    require_person("Opening a rule")
    root = governed_root(data_home(), project) if project else None
    if project and root is None:
        refuse(ProjectNotOptedIn(str(project.absolute())).explain())
    checked_rule: Rule = next(name for name in RULES if name == rule)
    now_ms = SystemClock().now_ms()
    added = expect(
        Bypass, use.add(data_home(), checked_rule, reason, root=root, days=days, at_ms=now_ms)
    )
    if as_json:
        print_json(added)
        return
    print_lines(
        f"{added.id} opens {added.rule} {_scope_text(added)}, {_expiry_text(added, now_ms)}."
    )
    print_lines(f"To close it: interlock gate bypass remove {added.id}")


@bypass.command("list")
@_json_option
def list_command(*, as_json: bool) -> None:
    """List the rules that were opened"""
    require_user("Looking at what was opened")
    bypasses = use.all_bypasses(data_home())
    if as_json:
        print_json(bypasses)
        return
    if not bypasses:
        print_lines("No rule is open.")
    now_ms = SystemClock().now_ms()
    print_table(
        [
            (entry.id, entry.rule, _expiry_text(entry, now_ms), _scope_text(entry), entry.reason)
            for entry in bypasses
        ]
    )


@bypass.command()
@click.argument("bypass_id")
@_json_option
def remove(bypass_id: str, *, as_json: bool) -> None:
    """Close a rule again"""
    require_user("Closing a rule")
    removed = expect(Bypass, use.remove(data_home(), bypass_id))
    if as_json:
        print_json(removed)
    else:
        print_lines(f"{removed.id} is gone: {removed.rule} holds again.")


def _scope_text(entry: Bypass) -> str:
    return f"in {entry.project}" if entry.project else "in every project"


def _expiry_text(entry: Bypass, now_ms: int) -> str:
    if entry.until_ms is None:
        return "until it is removed"
    day = datetime.fromtimestamp(entry.until_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"over since {day}" if use.is_expired(entry, now_ms) else f"until {day}"
