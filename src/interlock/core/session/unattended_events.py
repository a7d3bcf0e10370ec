"""The events of unattended work: wanted, controlled by the user, moved on by the driver."""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.session.event_struct import EventStruct
from interlock.core.unattended.order import (
    Limits,
    Outcome,
    ParkReason,
    RepositoryPlace,
    Spent,
    UnattendedOrder,
    UnattendedState,
    UnattendedStatus,
)
from interlock.core.unattended.proof import ProofRun

Control = Literal["pause", "pause_now", "resume", "cancel"]


class UnattendedRequested(EventStruct, frozen=True, omit_defaults=True, tag="unattended_requested"):
    order: UnattendedOrder
    limits: Limits
    who: str = ""


class UnattendedControlled(
    EventStruct, frozen=True, omit_defaults=True, tag="unattended_controlled"
):
    """The user wants it to pause, to go on, or to end."""

    control: Control
    who: str = ""


class UnattendedSteered(EventStruct, frozen=True, omit_defaults=True, tag="unattended_steered"):
    """A message to the model, which it gets before its next turn."""

    steer: str
    text: str
    who: str = ""


class UnattendedLimitsRaised(
    EventStruct, frozen=True, omit_defaults=True, tag="unattended_limits_raised"
):
    limits: Limits
    who: str = ""


class UnattendedMoved(EventStruct, frozen=True, omit_defaults=True, tag="unattended_moved"):
    """The driver says how the work stands."""

    status: UnattendedStatus
    spent: Spent
    reason: ParkReason | None = None
    """Why it is parked; of work that goes on: what the detail is about."""
    detail: str = ""
    outcome: Outcome | None = None
    steered: tuple[str, ...] = ()
    """The messages that the model has got."""
    worktree: str = ""
    branch: str = ""
    level: str = ""
    summary: str = ""
    """At the end: what was done, in the words of the last notes."""
    commit: str = ""
    """At the end: the end of the branch, with all that is to be delivered."""
    others: tuple[RepositoryPlace, ...] = ()
    proofs: tuple[ProofRun, ...] = ()
    resume_ms: int = 0
    bases: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """At the beginning: the fetched commits that it starts from, by the names of repositories."""
    merge_base: str = ""

    @property
    def has_result(self) -> bool:
        return self.outcome in ("success", "unverified")


UnattendedEvent: TypeAlias = (
    UnattendedRequested
    | UnattendedControlled
    | UnattendedSteered
    | UnattendedLimitsRaised
    | UnattendedMoved
)


def steer_key(steer: str) -> str:
    return f"steer:{steer}"


def apply_unattended(
    before: UnattendedState | None, event: UnattendedEvent, at_ms: int
) -> UnattendedState:
    """How unattended work stands after one more event."""
    change = msgspec.structs.replace
    if isinstance(event, UnattendedRequested):
        return UnattendedState(event.order, event.limits, "queued", at_ms, at_ms)
    assert before is not None, "it is wanted before anything else happens to it"
    match event:
        case UnattendedControlled(control="cancel"):
            # Nobody works on it, so nothing has to be ended first.
            is_idle = before.status in ("queued", "parked", "paused")
            done = change(before, status="done", outcome="cancelled", reason=None, since_ms=at_ms)
            return done if is_idle else change(before, wish="cancel")
        case UnattendedControlled(control="resume"):
            if before.status == "working":
                return change(before, wish="run")
            queued = change(before, wish="run", status="queued", reason=None, detail="")
            return change(queued, since_ms=at_ms)
        case UnattendedControlled(control="pause" | "pause_now"):
            wish = "pause_now" if event.control == "pause_now" else "pause"
            if before.status == "working":
                return change(before, wish=wish)
            return change(before, wish=wish, status="paused", reason=None, since_ms=at_ms)
        case UnattendedSteered():
            return change(before, steers=(*before.steers, event.steer))
        case UnattendedLimitsRaised():
            raised = change(before, limits=event.limits)
            is_due = before.status == "parked" and before.reason == "limit"
            queued = change(raised, status="queued", reason=None, detail="", since_ms=at_ms)
            return queued if is_due else raised
        case UnattendedMoved():
            return _apply_move(before, event, at_ms)
        case _:
            raise AssertionError(f"no such event: {event}")


def _apply_move(before: UnattendedState, event: UnattendedMoved, at_ms: int) -> UnattendedState:
    reason = event.reason if event.status == "parked" else None
    is_same = (before.status, before.reason) == (event.status, reason)
    return msgspec.structs.replace(
        before,
        order=before.order.with_commits(event.bases, event.merge_base),
        status=event.status,
        spent=event.spent,
        reason=reason,
        detail=event.detail,
        outcome=event.outcome,
        since_ms=before.since_ms if is_same else at_ms,
        started_ms=before.started_ms or at_ms,
        steers=tuple(steer for steer in before.steers if steer not in event.steered),
        worktree=event.worktree or before.worktree,
        branch=event.branch or before.branch,
        level=event.level or before.level,
        summary=event.summary or before.summary,
        commit=event.commit or before.commit,
        others=event.others or before.others,
        proofs=event.proofs or before.proofs,
        resume_ms=event.resume_ms if event.status == "parked" else 0,
    )
