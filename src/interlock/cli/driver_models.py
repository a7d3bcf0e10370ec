"""`interlock driver models`: the models that unattended work uses, and whether they answer."""

import asyncio
import sys

import click

from interlock.app.data_home import data_home
from interlock.app.unattended.driver_settings import driver_settings
from interlock.cli.authority import require_user
from interlock.cli.terminal import print_json, print_lines
from interlock.core.unattended.order import dollars


@click.command("models")
@click.argument("names", metavar="[MODEL]...", nargs=-1)
@click.option("--try", "is_tried", is_flag=True, help="Send each one small request")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def show_models(names: tuple[str, ...], *, is_tried: bool, as_json: bool) -> None:
    """Show the model of unattended work, and with --try whether it answers and calls tools"""
    settings = driver_settings(data_home())
    wanted = names or tuple(filter(None, (settings.model,)))
    if not wanted:
        raise click.UsageError('Name a model, or set `model = "…"` under [driver] in config.toml.')
    if not is_tried:
        print_json(wanted) if as_json else print_lines(*wanted, "--try sends each one request.")
        return
    require_user("Sending a request that may cost money")
    from interlock.driver.model_trial import try_model  # noqa: PLC0415 (libraries take seconds)

    trials = [asyncio.run(try_model(settings, name)) for name in wanted]
    if as_json:
        print_json(trials)
    for trial in () if as_json else trials:
        if trial.problem:
            print_lines(f"{trial.model}: {trial.problem}", f"  {trial.hint}".rstrip())
            continue
        cost = trial.usage.cost_micros
        tools = "calls tools" if trial.calls_tools else "did not call the tool: it cannot do steps"
        price = "price unknown: set it under [driver.prices]" if cost is None else dollars(cost)
        print_lines(
            f"{trial.model}: answered in {trial.ms} ms, {tools}; {trial.usage.tokens} tokens,"
            f" {price}; reads {trial.context_tokens:,} tokens"
        )
    if any(trial.problem or not trial.calls_tools for trial in trials):
        sys.exit(1)
