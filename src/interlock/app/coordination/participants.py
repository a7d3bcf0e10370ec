"""Those who take part in a project: who a call comes from, registering, being seen, leaving."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.app.callers.caller import SESSION_VARIABLE, Caller, CallerUnknown, session_meant
from interlock.app.callers.session_record import attended_head
from interlock.app.context import App, Attention
from interlock.app.coordination.project_desk import (
    PlannedChange,
    ProjectDesk,
    append_change,
    open_desk,
    read_board,
)
from interlock.core import canonical
from interlock.core.coordination import registration
from interlock.core.coordination.board import Board
from interlock.core.coordination.identities import (
    NameRefused,
    is_base_name,
    normalise_track,
    parse_id,
)
from interlock.core.coordination.records import IDENTITY, SEEN, Identity, ProjectChange
from interlock.core.coordination.refusals import IdentityLost
from interlock.core.coordination.registration import Newcomer
from interlock.core.ids import SessionId
from interlock.core.project_stream import RowChange
from interlock.core.refusal import Refusal
from interlock.store.failures import StoreFailure
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.machine.identity import NAME_BYTES, machine_name, user_name

SEEN_EVERY_MS = 60_000
"""An agent that is busy is recorded as seen so often at the most."""
_RANDOM_BYTES = 4

T = TypeVar("T")
No = TypeVar("No", bound=Refusal)


class Participant(msgspec.Struct, frozen=True):
    """Who a call comes from: a session, or a person at a terminal."""

    key: str
    """The session, or `person:NAME`."""
    base: str = ""
    """The base name that was asked for, or that a person has."""
    track: str | None = None
    host: str = ""

    @property
    def is_person(self) -> bool:
        return self.key.startswith("person:")


def find_participant(
    app: App, caller: Caller, *, name: str = "", track: str | None = None
) -> Participant | CallerUnknown | NameRefused:
    """Return the sender of a call: a session if one is named, else the person."""
    if name and (not is_base_name(name) or parse_id(name) or name.startswith("ses_")):
        return NameRefused(name)  # the last two would be somebody else's mailbox
    track = normalise_track(track)
    is_named = bool(caller.session or caller.environment.get(SESSION_VARIABLE))
    if caller.actor == "person" and not is_named:
        return Participant(f"person:{name or user_name()}", name or _person_base(), track)
    found = session_meant(app, caller)
    if isinstance(found, str):
        attended = attended_head(app, found)
        if track is None and attended and attended.feature:
            track = attended.feature
        host = attended.hosts[-1][0] if attended and attended.hosts else ""
        return Participant(found, name, track, host)
    return found


def _person_base() -> str:
    name = user_name()
    return name if is_base_name(name) else "person"


def newcomer_of(app: App, desk: ProjectDesk, who: Participant) -> Newcomer:
    random = int.from_bytes(app.entropy(_RANDOM_BYTES))
    return Newcomer(
        who.key,
        str(desk.root),
        app.clock.now_ms(),
        random,
        who.base,
        who.track,
        machine_name(app.home, app.entropy(NAME_BYTES)),
        who.host,
    )


def register(
    app: App, desk: ProjectDesk, who: Participant, *, is_asked_for: bool = True
) -> Identity | IdentityLost:
    """Register a participant, or change its track. It counts as seen."""
    newcomer = newcomer_of(app, desk, who)
    is_new, is_first, seq = False, False, 0

    def decide(board: Board) -> PlannedChange[Identity] | IdentityLost:
        nonlocal is_new, is_first, seq
        is_new, is_first = board.identity_of(who.key) is None, not board.seq
        seq = board.seq + 1
        outcome = registration.register(board, newcomer, is_asked_for=is_asked_for)
        return outcome if isinstance(outcome, IdentityLost) else PlannedChange(*outcome)

    identity = append_change(app, desk, decide)
    if not isinstance(identity, Identity):
        return identity
    if not is_new:
        record_seen(app, desk, identity)
        return identity
    # It counts as seen when it registered.
    app.coordination.recorded_ms[identity.id] = app.clock.now_ms()
    if is_first and not who.is_person:
        # Nobody has written yet: as long as ours is the last entry, no message waits.
        attention = Attention(desk.project, str(desk.root), seq, identity.id)
        app.coordination.looked_at[SessionId(who.key)] = attention
    return identity


def act_as(
    app: App,
    desk: ProjectDesk,
    who: Participant,
    act: Callable[[Board, Identity], PlannedChange[T] | No],
) -> tuple[Identity, T] | No | IdentityLost:
    """Append what a participant does, who is registered with it if that has not happened yet.

    Who was taken over is refused until it registers anew by itself.
    """
    newcomer = newcomer_of(app, desk, msgspec.structs.replace(who, track=None))

    def decide(board: Board) -> PlannedChange[tuple[Identity, T]] | No | IdentityLost:
        registered = registration.register(board, newcomer, is_asked_for=False)
        if isinstance(registered, IdentityLost):
            return registered
        beginning, identity = registered
        action = act(board, identity)
        if not isinstance(action, PlannedChange):
            return action
        change = _join_changes(beginning, action.change) if action.change else None
        return PlannedChange(change, (identity, action.value))

    outcome = append_change(app, desk, decide)
    if isinstance(outcome, tuple):
        record_seen(app, desk, outcome[0], every_ms=SEEN_EVERY_MS)
    return outcome


def _join_changes(first: ProjectChange | None, second: ProjectChange) -> ProjectChange:
    if first is None:
        return second
    events, conditions = first.events + second.events, first.conditions + second.conditions
    return ProjectChange(events, conditions)


def record_seen(app: App, desk: ProjectDesk, identity: Identity, *, every_ms: int = 0) -> None:
    """Record that somebody was seen now, unless that was recorded a moment ago."""
    machine_ms, cache = app.clock.now_ms(), app.coordination.recorded_ms
    if abs(machine_ms - cache.get(identity.id, 0)) < every_ms:
        return
    rows = app.log.project_rows(desk.project, (IDENTITY, SEEN)).rows
    own = {row.kind: row.content for row in rows if row.key == identity.id}
    if IDENTITY not in own:
        return  # it was not registered, or has ended
    old = own.get(SEEN)
    row = RowChange(SEEN, identity.id, canonical.encode(app.store_clock.now_ms()))
    app.log.replace_row(desk.project, row, old=old)  # if not, somebody else has just seen it
    cache[identity.id] = machine_ms


def end_participation(app: App, session: SessionId, workspace: Path, why: str) -> None:
    """The session has ended: what it held in its project is free. Whatever fails is cleaned up."""
    with suppress(SettingsBroken, StoreFailure, OSError):
        desk = open_desk(app, workspace)
        if read_board(app, desk).unended_of(session) is None:
            return

        def decide(board: Board) -> PlannedChange[None]:
            identity = board.unended_of(session)
            if identity is None:
                return PlannedChange(None, None)
            return PlannedChange(
                registration.end(board, identity, why, at_ms=app.clock.now_ms()), None
            )

        append_change(app, desk, decide)
