"""`interlock hook`: the command that agent clients run before, between and after their tools."""

import signal
import sys
from pathlib import Path

import click

from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.data_home import data_home
from interlock.cli.terminal import Stop, print_message, write_exactly
from interlock.hooks.full_hook import EVENTS, HookEvent, run_hook

BUDGET_SECONDS = 8
"""Less than a client waits: an answer that comes too late may be none at all."""


class BudgetUsed(Exception):
    """The hook has taken longer than it may."""


@click.command()
@click.option("--host", required=True, help="The agent client")
@click.option("--event", required=True, help="What happens")
@click.option("--home", type=click.Path(path_type=Path), help="Interlock's data home")
def hook(host: str, event: str, home: Path | None) -> None:
    """Answer a hook of an agent client (it sends JSON on stdin)"""
    checked_event: HookEvent | None = next((name for name in EVENTS if name == event), None)
    if host not in NAMES or checked_event is None:
        # A team's files may come from a newer Interlock, and must not block anybody.
        print_message(f"interlock: the hook `{host} {event}` is not known here; upgrade Interlock")
        return
    signal.signal(signal.SIGALRM, _raise_budget_used)
    # The fast hook has begun to count; without it, the time begins now.
    signal.alarm(signal.alarm(0) or BUDGET_SECONDS)
    outcome = run_hook(
        host_named(host), checked_event, home or data_home(), sys.stdin.buffer.read()
    )
    write_exactly(outcome.out)
    if outcome.err:
        print_message(outcome.err)
    raise Stop(outcome.code)


def _raise_budget_used(*_: object) -> None:
    raise BudgetUsed(f"it took more than {BUDGET_SECONDS} s")
