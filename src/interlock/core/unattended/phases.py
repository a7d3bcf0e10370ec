"""A driver's current activity in a session, from the end of its journal."""

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


class WorkActivity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: Literal["starting", "thinking", "retrying", "tool", "submitting"]
    since_ms: int
    tool: str = ""
    """The tool that runs."""
    text: str = ""
    """Why the model is called again."""

    @property
    def words(self) -> str:
        return f"running {self.tool}" if self.tool else self.kind


def activity_of(state: UnattendedState, newest: Sequence[JournalEntry]) -> WorkActivity:
    """Return a driver's current activity. `newest`: the end of the journal."""
    last = newest[-1] if newest else None
    if last is None or last.at_ms < state.since_ms - 1:
        return WorkActivity("starting", state.since_ms)
    match last.entry:
        case ModelCalled():
            return WorkActivity("thinking", last.at_ms)
        case ModelFailed() as failed if failed.wait_ms:
            return WorkActivity("retrying", last.at_ms, text=failed.text)
        case ToolStarted() as started:
            return WorkActivity("tool", last.at_ms, tool=started.name)
        case AdvanceIntended():
            return WorkActivity("submitting", last.at_ms)
        case _:
            return WorkActivity("starting", last.at_ms)
