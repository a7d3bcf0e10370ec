"""`interlock preferences`: see and set how much agents may do by themselves."""

from pathlib import Path

import click

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.runs import user_actions
from interlock.app.runs.start import default_preferences
from interlock.cli.authority import SERVED, require_person, require_user
from interlock.cli.terminal import expect, print_json, print_lines
from interlock.core.preferences import (
    AUTONOMIES,
    RISK_POLICIES,
    Autonomy,
    Preferences,
    RiskPolicy,
    Wish,
    loosens,
)


@click.group()
def preferences() -> None:
    """See and set how much agents may do by themselves"""


@preferences.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show(*, as_json: bool) -> None:
    """Show what runs that start here begin with, and where that is set"""
    app = open_app(data_home())
    defaults = default_preferences(app, Path.cwd())
    if as_json:
        print_json(defaults)
        return
    print_lines(
        f"autonomy    {defaults.autonomy}",
        f"risk policy {defaults.risk_policy}",
        "",
        f"Set them in {app.home / 'config.toml'}:",
        "",
        "[preferences]",
        f'autonomy = "{defaults.autonomy}"',
        f'riskPolicy = "{defaults.risk_policy}"',
        "",
        "A project's .interlock/config.toml can make them stricter.",
    )


@preferences.command("set")
@click.argument("run_id")
@click.option("--autonomy", type=click.Choice(AUTONOMIES), help="How far the agent goes alone")
@click.option("--risk-policy", type=click.Choice(RISK_POLICIES), help="What may pass with a gap")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def set_command(
    run_id: str, autonomy: Autonomy | None, risk_policy: RiskPolicy | None, *, as_json: bool
) -> None:
    """Change a run's preferences, from its next step on"""
    if loosens(autonomy, risk_policy):
        require_person("Letting an agent do more by itself", SERVED)
    else:
        require_user("Changing preferences")
    outcome = expect(
        Preferences,
        user_actions.set_preferences(open_app(data_home()), run_id, Wish(autonomy, risk_policy)),
    )
    if as_json:
        print_json(outcome)
    else:
        print_lines(f"From the next step on: {outcome.autonomy}, {outcome.risk_policy}")
