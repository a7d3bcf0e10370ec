"""`interlock hook`: the command that agent clients run before, between and after their tools.

Without click, which takes longer to import than a hook takes to answer.
"""

import signal
import sys
from pathlib import Path

from interlock.agents.hosts.registry import NAMES, host_named
from interlock.cli.terminal import EXIT_DONE, print_message, write_exactly
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import EVENTS, HookEvent

BUDGET_SECONDS = 8
"""Less than a client waits: an answer that comes too late may be none at all."""


class BudgetUsed(Exception):
    """The hook has taken longer than it may."""


def answer_hook(host: str, event: str, home: str) -> int:
    """Answer the payload on stdin, and return the exit code."""
    checked_event: HookEvent | None = next((name for name in EVENTS if name == event), None)
    if host not in NAMES or checked_event is None:
        # A team's files may come from a newer Interlock, and must not block anybody.
        print_message(f"interlock: the hook `{host} {event}` is not known here; upgrade Interlock")
        return EXIT_DONE
    signal.signal(signal.SIGALRM, _raise_budget_used)
    # The fast hook has begun to count; without it, the time begins now.
    signal.alarm(signal.alarm(0) or BUDGET_SECONDS)
    payload = sys.stdin.buffer.read()
    outcome = run_hook(host_named(host), checked_event, Path(home), payload)
    write_exactly(outcome.out)
    if outcome.err:
        print_message(outcome.err)
    return outcome.code


def _raise_budget_used(*_: object) -> None:
    raise BudgetUsed(f"it took more than {BUDGET_SECONDS} s")
