"""`interlock gate bypass`: open a rule for a reason, see what is open, close it again."""

from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import click

from interlock.app.context import SystemClock
from interlock.app.data_home import data_home
from interlock.app.explain import explain
from interlock.app.gate import bypasses as use
from interlock.app.gate.opt_in import root_of
from interlock.app.refusals import ProjectNotOptedIn
from interlock.cli.session_state import require_user
from interlock.cli.terminal import EXIT_REFUSED, Stop, print_error, print_json, print_table, refuse
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
    require_user("Opening a rule")
    root = root_of(project) if project else None
    if project and root is None:
        refuse(explain(ProjectNotOptedIn(str(project.absolute()))), as_json=as_json)
    known: Rule = next(name for name in RULES if name == rule)
    now_ms = SystemClock().now_ms()
    made = use.add(data_home(), known, reason, root=root, days=days, at_ms=now_ms)
    if not isinstance(made, Bypass):
        _refuse(made, as_json=as_json)
    if as_json:
        print_json(made)
        return
    print(f"{made.id} opens {made.rule} {_scope_text(made)}, {_expiry_text(made, now_ms)}.")
    print(f"To close it: interlock gate bypass remove {made.id}")


@bypass.command("list")
@_json_option
def list_command(*, as_json: bool) -> None:
    """List the rules that were opened"""
    require_user("Looking at what was opened")
    found = use.all_bypasses(data_home())
    if as_json:
        print_json(found)
        return
    if not found:
        print("No rule is open.")
    now_ms = SystemClock().now_ms()
    print_table([(x.id, x.rule, _expiry_text(x, now_ms), _scope_text(x), x.reason) for x in found])


@bypass.command()
@click.argument("bypass_id")
@_json_option
def remove(bypass_id: str, *, as_json: bool) -> None:
    """Close a rule again"""
    require_user("Closing a rule")
    gone = use.remove(data_home(), bypass_id)
    if not isinstance(gone, Bypass):
        _refuse(gone, as_json=as_json)
    if as_json:
        print_json(gone)
    else:
        print(f"{gone.id} is gone: {gone.rule} holds again.")


def _scope_text(found: Bypass) -> str:
    return f"in {found.project}" if found.project else "in every project"


def _expiry_text(found: Bypass, now_ms: int) -> str:
    if found.until_ms is None:
        return "until it is removed"
    day = datetime.fromtimestamp(found.until_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"over since {day}" if use.is_expired(found, now_ms) else f"until {day}"


def _refuse(refusal: use.BypassRefusal, *, as_json: bool) -> NoReturn:
    error, hint = use.explain(refusal)
    if as_json:
        print_json({"code": "not_bypassed", "error": error, "hint": hint})
    else:
        print_error(error, hint)
    raise Stop(EXIT_REFUSED)
