"""The record of a session, as preflight prints it for agents and scripts."""

from typing import Literal

import msgspec

from interlock.core.coordination.board import MINUTE_MS, StaleReason

SessionStatus = Literal["active", "stale", "disconnected", "ended"]


class SessionRecord(msgspec.Struct, frozen=True):
    """The field names are those of the orchestrator's protocol. Times are seconds."""

    id: str
    display: str
    base_agent: str
    created_ts: int | None
    """None: its messages never named its id."""
    track: str | None
    beads_claimed: tuple[str, ...]
    files_reserved: tuple[str, ...]
    last_heartbeat: int | None
    status: SessionStatus
    epoch: int


class ObservedSession(msgspec.Struct, frozen=True):
    """A session, with what is known of its silence."""

    record: SessionRecord
    silent_ms: int | None = None
    reason: StaleReason = ""
    process: str = ""
    """The state of its process in words, like `process alive`; empty where it cannot be seen."""

    @property
    def minutes_silent(self) -> int | None:
        return None if self.silent_ms is None else self.silent_ms // MINUTE_MS
