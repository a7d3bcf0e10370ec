"""Look around before a run starts, and register who works on it afterwards."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.callers.caller import NO_SESSION
from interlock.app.context import App
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.preflight import DESIGN_TAG, look_around, record_skip
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.app.coordination.takeovers import (
    TakenOverIdentity,
    TakeoverRefusal,
    TakeoverWish,
    clean_up_orphans,
    take_over,
)
from interlock.app.refusals import NoSuchSession
from interlock.core.coordination.identities import normalise_track
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal
from interlock.core.views.counting import pluralise
from interlock.store.failures import StoreFailure

STALE_SHOWN_MAX = 3


class ConflictFound(Refusal, frozen=True):
    """Somebody is in the way, and the caller wanted to be refused then."""

    warnings: tuple[str, ...]

    def explain(self) -> Explanation:
        hint = "Nothing was started. Without `onConflict` it is started all the same."
        return Explanation("conflict", " ".join(self.warnings), hint)


class StartScope(msgspec.Struct, frozen=True):
    """How a run is to be started beside others."""

    track: str | None = None
    on_conflict: Literal["warn", "refuse"] = "warn"
    takeover: str = ""
    """The stale identity to take over first."""
    is_by_user: bool = False
    skip_reason: str = ""
    """Why nobody looks around; empty if somebody does."""


class Outlook(msgspec.Struct, frozen=True):
    """The view before the start, and the desk to register at after it."""

    desk: ProjectDesk | None = None
    warnings: tuple[str, ...] = ()


def look_before_start(
    app: App, workspace: Path, session: SessionId | None, scope: StartScope, tags: tuple[str, ...]
) -> Outlook | ConflictFound | TakeoverRefusal | NoSuchSession:
    """See who is in the way. A workflow that only designs looks at nothing."""
    if DESIGN_TAG in tags:
        return Outlook()
    desk = open_desk(app, workspace)
    if scope.skip_reason or app.reader.project_end(desk.project)[0] == 0:
        return Outlook(desk)
    who = Participant(session or "", track=normalise_track(scope.track))
    taken: tuple[str, ...] = ()
    if scope.takeover and session is None and not scope.is_by_user:
        return NO_SESSION  # nobody would know who has taken over
    if scope.takeover:
        outcome = take_over(app, desk, who if session else None, TakeoverWish(scope.takeover))
        if not isinstance(outcome, TakenOverIdentity):
            return outcome
        saved = f" Its uncommitted work is saved as {outcome.snapshot}." if outcome.snapshot else ""
        taken = (f"You have taken over from {outcome.display}.{saved}",)
    cleaned = tuple(clean_up_orphans(app, desk))
    report = look_around(app, desk, who, who.track or "")
    conflicts = tuple(_conflict_warnings(report))
    if conflicts and scope.on_conflict == "refuse":
        return ConflictFound(conflicts)
    return Outlook(desk, (*taken, *cleaned, *conflicts, *_stale_warnings(report)))


def register_after_start(app: App, outlook: Outlook, session: SessionId, scope: StartScope) -> None:
    """Register the session. The run has begun, whatever fails."""
    if outlook.desk is None:
        return
    with suppress(StoreFailure):
        register(app, outlook.desk, Participant(session, track=normalise_track(scope.track)))
        if scope.skip_reason:
            record_skip(app, outlook.desk, session, scope.skip_reason)


def _conflict_warnings(report: PreflightReport) -> Iterator[str]:
    for one in report.conflicts.track_conflicts:
        yield (
            f"TRACK CONFLICT: {one.display} is already on {one.track} (seen {one.last_seen})."
            f' Reserve what you change: reserve_paths {{"paths": ["<path>"]}}, or ask it:'
            f' send_message {{"to": ["{one.id}"], "subject": "<what you need>"}}'
        )


def _stale_warnings(report: PreflightReport) -> Iterator[str]:
    holders = {one.id for one in report.active_sessions if one.beads_claimed or one.files_reserved}
    stale = [one for one in report.stale_sessions if one.id in holders]
    for one in stale[:STALE_SHOWN_MAX]:
        yield (
            f"{one.display} was not seen for {one.stale_minutes} min ({one.process}). To take over"
            f" what it holds: `interlock takeover {one.id}`"
        )
    if stale[STALE_SHOWN_MAX:]:
        more = pluralise(len(stale) - STALE_SHOWN_MAX, "more silent agent")
        yield f"{more} with claims or reservations: `interlock who` lists them."
