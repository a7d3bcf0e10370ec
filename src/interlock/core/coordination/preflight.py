"""Phase 0: who is there, what is in the way, and what has to be decided before work begins.

The report is made from the board alone. Its JSON has the words of the orchestrator's protocol:
work items are beads there, and identities are sessions.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from interlock.core.coordination.board import Board
from interlock.core.coordination.conflicts import (
    Conflicts,
    WorkScope,
    find_conflicts,
    reservation_overlaps,
)
from interlock.core.coordination.records import Identity
from interlock.core.coordination.refusals import ago_text, span_text
from interlock.core.coordination.session_record import SessionRecord, SessionStatus

Answer = Literal["proceed", "switch", "wait", "take-over", "ignore"]


class StaleSession(msgspec.Struct, frozen=True):
    id: str
    """The mode in the session's record."""
    display: str
    stale_minutes: int
    stale_reason: str
    process: str
    """Whether its process runs, as far as that can be seen from here."""
    uncommitted: str
    worktree: str = ""


class PreflightQuestion(msgspec.Struct, frozen=True):
    """Something that the user, or an agent by its own judgement, has to decide."""

    prompt: str
    options: tuple[Answer, ...]
    default: Answer
    about: str
    """The identity that it is about."""


class PreflightReport(msgspec.Struct, frozen=True):
    identity: SessionRecord | None
    active_sessions: tuple[SessionRecord, ...]
    stale_sessions: tuple[StaleSession, ...]
    conflicts: Conflicts
    recommendations: tuple[str, ...]
    questions: tuple[PreflightQuestion, ...] = ()
    checked_ts: int = 0
    """When it was made, by the clock of `last_heartbeat`."""
    cleaned_up: tuple[str, ...] = ()
    mode: Literal["normal", "degraded"] = "normal"
    warnings: tuple[str, ...] = ()

    @property
    def needs_answer(self) -> bool:
        return bool(self.questions)


class LocalFacts(msgspec.Struct, frozen=True):
    """The facts that can be seen from this machine of the others, by their ids."""

    processes: Mapping[str, bool] = {}
    """Whether the client's process runs."""
    uncommitted: Mapping[str, bool] = {}
    """Whether the worktree has changes that are not committed."""


def session_record(board: Board, identity: Identity, facts: LocalFacts) -> SessionRecord:
    presence = board.presence_of(identity)
    status: SessionStatus = "active" if presence.status == "active" else "stale"
    if status == "active" and facts.processes.get(identity.id) is False:
        status = "disconnected"
    seen_ms = board.seen_ms.get(identity.id, identity.registered_ms)
    return SessionRecord(
        identity.id,
        board.display(identity.id) + (f", {presence.work}" if presence.work else ""),
        identity.base,
        identity.created_ms // 1_000,
        identity.track or None,
        tuple(item.id for item in board.claims_of(identity.id)),
        tuple(one.pattern for one in board.reservations_of(identity.id)),
        seen_ms // 1_000,
        "ended" if identity.end else status,
        identity.epoch,
    )


def others_present(board: Board, own: str) -> list[Identity]:
    """The others who are active or stale, the active ones first, then by name."""
    others = [
        one.value
        for one in board.identities.values()
        if one.value.id != own and board.presence_of(one.value).status != "gone"
    ]
    return sorted(others, key=lambda one: (board.presence_of(one).status, one.id))


def report(
    board: Board,
    own: Identity | None,
    scope: WorkScope,
    facts: LocalFacts,
    *,
    folds_case: bool = False,
    ignored: frozenset[str] = frozenset(),
    is_starting: bool = True,
) -> PreflightReport:
    """The report for `own`. `ignored`: stale agents that it continues without.

    `is_starting`: the agent is about to start work. Otherwise the report shows current conflicts.
    """
    own_id = own.id if own else ""
    others = others_present(board, own_id)
    conflicts = find_conflicts(board, own_id, scope, folds_case=folds_case)
    stale = [one for one in others if board.presence_of(one).status == "stale"]
    asked = [one for one in stale if one.id not in ignored]
    questions = (*_conflict_questions(conflicts), *_stale_questions(board, asked, facts))
    return PreflightReport(
        session_record(board, own, facts) if own else None,
        tuple(session_record(board, one, facts) for one in others),
        tuple(_stale_session(board, one, facts) for one in stale),
        conflicts,
        (
            *_recommendations(board, conflicts, stale, facts),
            *(() if is_starting else _overlaps(board, folds_case=folds_case)),
            *(("Proceed.",) if is_starting and not (stale or conflicts.has_conflicts) else ()),
        ),
        questions,
        board.now_ms // 1_000,
    )


def _stale_session(board: Board, identity: Identity, facts: LocalFacts) -> StaleSession:
    presence = board.presence_of(identity)
    uncommitted = {True: "yes", False: "no", None: "unknown"}[facts.uncommitted.get(identity.id)]
    return StaleSession(
        identity.id,
        board.display(identity.id),
        (presence.silent_ms or 0) // 60_000,
        presence.reason,
        _process_text(facts, identity.id) or "process not visible from here",
        uncommitted,
        identity.worktree,
    )


def _process_text(facts: LocalFacts, identity: str) -> str:
    return {True: "process alive", False: "process gone", None: ""}[facts.processes.get(identity)]


def _conflict_questions(conflicts: Conflicts) -> Iterator[PreflightQuestion]:
    for track in conflicts.track_conflicts:
        yield PreflightQuestion(
            f"{track.display} is already on {track.track}",
            ("proceed", "switch", "wait"),
            "switch",
            track.id,
        )
    for file in conflicts.file_conflicts:
        prompt = f"{file.display} holds `{file.pattern}`, which has `{file.overlap}` of yours"
        yield PreflightQuestion(prompt, ("proceed", "wait"), "wait", file.id)
    for bead in conflicts.bead_conflicts:
        prompt = f"`{bead.bead_id}` is claimed by {bead.display}, {bead.since}"
        yield PreflightQuestion(prompt, ("switch", "wait"), "switch", bead.id)


def _stale_questions(
    board: Board, stale: list[Identity], facts: LocalFacts
) -> Iterator[PreflightQuestion]:
    for identity in stale:
        presence = board.presence_of(identity)
        is_alive = facts.processes.get(identity.id) is True
        silence = span_text(presence.silent_ms) if presence.silent_ms is not None else "a while"
        state = f"inactive for {silence}"
        if is_alive:
            state = f"silent for {silence}, but its process is alive"
        yield PreflightQuestion(
            f"{board.display(identity.id)} has been {state}",
            ("take-over", "wait", "ignore"),
            # Whoever still runs may only be thinking.
            "wait" if is_alive else "take-over",
            identity.id,
        )


def _recommendations(
    board: Board, conflicts: Conflicts, stale: list[Identity], facts: LocalFacts
) -> Iterator[str]:
    yield from (f"{one.display}: {one.next_action}" for one in conflicts.track_conflicts)
    yield from (f"{one.display}: {one.next_action}" for one in conflicts.file_conflicts)
    yield from (f"`{one.bead_id}`: {one.next_action}" for one in conflicts.bead_conflicts)
    for identity in stale:
        name = board.display(identity.id)
        if facts.processes.get(identity.id):
            yield f"{name} is silent, but its process is alive: wait, or leave its files alone."
        else:
            seen = ago_text(board.presence_of(identity).silent_ms)
            yield f"{name} was last seen {seen}: `interlock takeover {identity.id}`."


def _overlaps(board: Board, *, folds_case: bool) -> Iterator[str]:
    for one in reservation_overlaps(board, folds_case=folds_case):
        yield f"Conflict: {' and '.join(one.displays)} both hold `{one.witness}`."
