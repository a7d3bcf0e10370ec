"""How unattended work stands, for whoever looks: each piece of it, and the driver itself."""

import os
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.unattended.driver_desk import DriverLease, current_lease, is_driver_alive
from interlock.app.unattended.orders import list_active, list_undelivered
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import JournalEntry
from interlock.core.unattended.order import Limits, UnattendedState
from interlock.core.unattended.phases import Phase, WorkPhase, phase_of
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
    phase: WorkPhase
    step_title: str
    waits_because: str
    """Why work that is queued does not begin."""


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

    status: Phase
    current_step_title: str
    started_at: int
    turn: int
    limits: Limits
    lease: DriverLease | None
    reason: str = ""
    detail: str = ""
    tool: str = ""


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
        why = f"{working} of {limit} that are worked on at a time are not over"
    nobody = "no driver runs: `interlock up` starts one"
    work = tuple(
        _live_work(
            app,
            session,
            state,
            is_alive=driven[state.order.machine],
            waits_because=why if driven[state.order.machine] else nobody,
        )
        for session, state in active
    )
    is_same = driver is not None and lease is not None and driver.holder == lease.holder
    undelivered = tuple(UndeliveredWork(*one) for one in list_undelivered(app))
    running = driver if is_same and is_alive else None
    return DriverStatus(is_alive, lease, running, work, undelivered)


def daemon_status(app: App, session: SessionId, state: UnattendedState) -> DaemonStatus:
    lease, live = current_lease(app, state.order.machine), live_work(app, session, state)
    return DaemonStatus(
        live.phase.phase,
        live.step_title,
        state.started_ms,
        state.spent.turns,
        state.limits,
        lease,
        state.outcome or state.reason or "",
        state.detail,
        live.phase.tool,
    )


def live_work(app: App, session: SessionId, state: UnattendedState) -> LiveWork:
    is_alive = is_driver_alive(app, state.order.machine)
    return _live_work(app, session, state, is_alive=is_alive)


def turns_of(
    app: App, session: SessionId, *, first: int = 0, limit: int = -1
) -> list[JournalEntry]:
    """The entries of a driver about a session, oldest first."""
    return read_journal(app.home, session, first=first, limit=limit)


def _live_work(
    app: App, session: SessionId, state: UnattendedState, *, is_alive: bool, waits_because: str = ""
) -> LiveWork:
    newest = read_journal(app.home, session, first=-TAIL) if state.status == "working" else []
    runs = app.reader.runs(session, latest=1)
    title = (runs[-1].pending_title or "") if runs else ""
    phase = phase_of(state, newest, is_driver_alive=is_alive)
    return LiveWork(session, state, phase, title, waits_because if phase.phase == "queued" else "")


def announced_driver(home: Path) -> RunningDriver | None:
    """The driver of this machine, if its process lives."""
    try:
        driver = msgspec.json.decode((home / DRIVER_FILE).read_bytes(), type=RunningDriver)
        os.kill(driver.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    return driver
