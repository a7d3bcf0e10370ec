"""What a project asks of those who work on it at the same time: `[coordination]` of its config."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.core.coordination.board import MINUTE_MS, SECOND_MS, Thresholds
from interlock.workspace.projects.settings import section_in

_Minutes = Annotated[int, Meta(ge=1, le=7 * 24 * 60)]


class CoordinationRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enforce: bool = False
    """Whether the gate denies edits of what others have reserved, and does not only warn."""
    heartbeat_seconds: Annotated[int, Meta(ge=1, le=3_600)] = 300
    stale_minutes: _Minutes = 10
    gone_minutes: _Minutes = 30
    wait_minutes: _Minutes = 5
    claim_minutes: _Minutes = 15
    reservation_minutes: _Minutes = 60
    keep_days: Annotated[int, Meta(ge=1, le=3_650)] = 7

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(
            heartbeat_ms=self.heartbeat_seconds * SECOND_MS,
            stale_ms=self.stale_minutes * MINUTE_MS,
            window_ms=max(self.gone_minutes, self.stale_minutes) * MINUTE_MS,
            wait_ms=self.wait_minutes * MINUTE_MS,
            claim_ms=self.claim_minutes * MINUTE_MS,
            reservation_ms=self.reservation_minutes * MINUTE_MS,
            keep_ms=self.keep_days * 24 * 60 * MINUTE_MS,
        )


def coordination_rules_in(path: Path) -> CoordinationRules:
    """Return the `[coordination]` of a project's config; the defaults if there is no such file.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(path, "coordination", CoordinationRules)
