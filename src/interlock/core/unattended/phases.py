"""The phase of unattended work, in one word: what the log says, and within that the journal."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from interlock.core.unattended.journal import (
    AdvanceIntended,
    JournalEntry,
    ModelCalled,
    ModelFailed,
    ToolStarted,
)
from interlock.core.unattended.order import UnattendedState

Phase = Literal[
    "queued",
    "starting",
    "thinking",
    "waiting",
    "tool",
    "advancing",
    "parked",
    "paused",
    "cancelling",
    "done",
    "orphaned",
]


class WorkPhase(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    phase: Phase
    since_ms: int
    tool: str = ""
    """The tool that runs."""
    text: str = ""
    """Why it waits, or stands still."""


def phase_of(
    state: UnattendedState, newest: Sequence[JournalEntry], *, is_driver_alive: bool
) -> WorkPhase:
    """The phase of the work. `newest`: the end of its journal, oldest first."""
    no_driver = "" if is_driver_alive else "no driver runs: `interlock up` starts one"
    if state.wish == "cancel" and not state.is_over:
        return WorkPhase("cancelling", state.since_ms, text=no_driver)
    if state.status != "working":
        return WorkPhase(state.status, state.since_ms, text=state.detail)
    if not is_driver_alive:
        # Never "working" on the word of somebody who is gone.
        return WorkPhase("orphaned", state.since_ms, text=no_driver)
    last = newest[-1] if newest else None
    if last is None or last.at_ms < state.since_ms - 1:
        return WorkPhase("starting", state.since_ms)
    match last.entry:
        case ModelCalled():
            return WorkPhase("thinking", last.at_ms)
        case ModelFailed() as failed if failed.wait_ms:
            return WorkPhase("waiting", last.at_ms, text=failed.text)
        case ToolStarted() as started:
            return WorkPhase("tool", last.at_ms, tool=started.name)
        case AdvanceIntended():
            return WorkPhase("advancing", last.at_ms)
        case _:
            return WorkPhase("starting", last.at_ms)
