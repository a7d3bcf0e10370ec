"""How unattended work stands, for whoever looks: each piece of it, and the driver itself."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.sessions.driver_lease import DriverLease, current_lease, is_driver_alive
from interlock.app.sessions.statuses import Observer
from interlock.app.unattended.orders import head_of, list_active, list_undelivered
from interlock.core.canonical import Json
from interlock.core.ids import SessionId
from interlock.core.session.head import Head
from interlock.core.session.secrets import redact_secrets
from interlock.core.unattended.journal import Entry, JournalEntry
from interlock.core.unattended.order import Limits, UnattendedState
from interlock.core.unattended.phases import WorkActivity, activity_of
from interlock.core.views.counting import pluralise
from interlock.core.views.status import Status
from interlock.store.driver_journal import read_journal
from interlock.workspace.files.private_file import write_private_file

DRIVER_FILE = "driver.json"
TAIL = 40
"""Entries at the end of a journal that say what happens now."""


class RunningDriver(msgspec.Struct, frozen=True, rename="camel"):
    """A driver, as it announced itself."""

    pid: int
    holder: str
    version: str
    started_ms: int
    level: str
    """The level of the sandbox that this machine can enforce for it."""
    max_sessions: int


class LiveWork(msgspec.Struct, frozen=True, rename="camel"):
    session: SessionId
    state: UnattendedState
    status: Status
    step_title: str
    waits_because: str
    """Why work that is queued does not begin."""
    activity: WorkActivity | None = None
    """The driver's current activity; None while no driver works on it."""


class UndeliveredWork(msgspec.Struct, frozen=True, rename="camel"):
    """Work that is done, whose result is on its way, or was refused on it."""

    session: SessionId
    state: UnattendedState


class DriverStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    is_alive: bool
    lease: DriverLease | None
    driver: RunningDriver | None
    work: tuple[LiveWork, ...]
    undelivered: tuple[UndeliveredWork, ...] = ()


class DaemonStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The status of the work of one session."""

    status: Status
    current_step_title: str
    started_at: int
    turn: int
    limits: Limits
    lease: DriverLease | None
    reason: str = ""
    detail: str = ""
    activity: WorkActivity | None = None


def announce_driver(home: Path, driver: RunningDriver | None) -> None:
    """Let others see which driver runs; None: none does."""
    path = home / DRIVER_FILE
    if driver is None:
        path.unlink(missing_ok=True)
    else:
        write_private_file(path, msgspec.json.encode(driver))


def driver_status(app: App) -> DriverStatus:
    lease, driver = current_lease(app), announced_driver(app.home)
    is_alive = lease is not None and lease.left_ms > 0
    active = list_active(app)
    machines = {state.order.machine for _, state in active}
    driven = {machine: is_driver_alive(app, machine) for machine in machines}
    working = sum(state.status == "working" for _, state in active)
    limit = driver.max_sessions if driver else 1
    why = "its turn is next"
    if working >= limit:
        why = f"the driver works on {pluralise(working, 'session')}, its limit is {limit}"
    observer = Observer(app)
    work = tuple(
        _live_work(app, observer, session, state, why if driven[state.order.machine] else "")
        for session, state in active
    )
    is_same = driver is not None and lease is not None and driver.holder == lease.holder
    undelivered = tuple(UndeliveredWork(*one) for one in list_undelivered(app))
    running = driver if is_same and is_alive else None
    return DriverStatus(is_alive, lease, running, work, undelivered)


def daemon_status(app: App, session: SessionId, state: UnattendedState) -> DaemonStatus:
    lease, live = current_lease(app, state.order.machine), live_work(app, session, state)
    return DaemonStatus(
        status=live.status,
        current_step_title=live.step_title,
        started_at=state.started_ms,
        turn=state.spent.turns,
        limits=state.limits,
        lease=lease,
        reason=state.outcome or state.reason or "",
        detail=state.detail,
        activity=live.activity,
    )


def _without_secrets(placed: JournalEntry) -> JournalEntry:
    """Return the entry for people: the journal itself holds what was executed, to the letter."""
    entry: Json = msgspec.json.decode(msgspec.json.encode(placed.entry))
    shown = _map_texts(entry, redact_secrets)
    return msgspec.structs.replace(placed, entry=msgspec.convert(shown, Entry))


def _map_texts(value: Json, change: Callable[[str], str]) -> Json:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _map_texts(one, change) for key, one in value.items()}
        case list():
            return [_map_texts(one, change) for one in value]
        case _:
            return value


def live_work(app: App, session: SessionId, state: UnattendedState) -> LiveWork:
    return _live_work(app, Observer(app), session, state)


def turns_of(
    app: App, session: SessionId, *, first: int = 0, limit: int = -1
) -> list[JournalEntry]:
    """Return the entries of a driver about a session as they may be shown, oldest first."""
    return [
        _without_secrets(one) for one in read_journal(app.home, session, first=first, limit=limit)
    ]


def _live_work(
    app: App,
    observer: Observer,
    session: SessionId,
    state: UnattendedState,
    waits_because: str = "",
) -> LiveWork:
    # It may have been deleted meanwhile.
    head = head_of(app, session) or Head("", 0, 0, unattended=state)
    runs = app.reader.runs(session, latest=1)
    run = runs[-1] if runs else None
    waits_because = waits_because if state.status == "queued" else ""
    status = observer.status(session, head, run, waits_because=waits_because).main
    is_driven = state.status == "working" and status.word != "queued"
    newest = turns_of(app, session, first=-TAIL) if is_driven else []
    return LiveWork(
        session=session,
        state=state,
        status=status,
        step_title=(run.pending_title or "") if run else "",
        waits_because=waits_because,
        activity=activity_of(state, newest) if is_driven else None,
    )


def announced_driver(home: Path) -> RunningDriver | None:
    """The driver of this machine, if its process lives."""
    try:
        driver = msgspec.json.decode((home / DRIVER_FILE).read_bytes(), type=RunningDriver)
        os.kill(driver.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    return driver
