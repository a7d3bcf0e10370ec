"""`interlock driver`: do unattended work, watch it, pause it, let it go on, end it, speak to it."""

import sys
import time
from collections.abc import Callable
from typing import Any

import click
import msgspec

from interlock.app.admin.server_process import RunningServer, find_server
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.triggers.overview import list_due_times
from interlock.app.unattended import orders, status
from interlock.app.unattended.journal_views import spent_so_far
from interlock.app.unattended.status import DriverStatus, LiveWork, UndeliveredWork
from interlock.cli.authority import SERVED, require_person, require_user
from interlock.cli.driver_deliver import deliver
from interlock.cli.driver_models import show_models
from interlock.cli.driver_turns import print_entry, without_token
from interlock.cli.session_state import require_session
from interlock.cli.terminal import (
    expect,
    flush_output,
    print_json,
    print_lines,
    print_message,
    redraw,
    refuse,
)
from interlock.cli.unattended_order import (
    PLACE,
    absence_of_driver,
    limit_options,
    limits_text,
    wanted_limits,
)
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal
from interlock.core.session.unattended_control import NotUnattended
from interlock.core.session.unattended_events import Control
from interlock.core.unattended.order import Limits, LimitsWish, Spent, UnattendedState, dollars
from interlock.core.views.counting import time_ago
from interlock.core.views.delivery import delivery_line, way_on


@click.command("run")
def run_driver() -> None:
    """Be the driver of this machine until Ctrl-C; `interlock up` starts one by itself"""
    require_user("Being a driver")
    if not isinstance(find_server(data_home()), RunningServer):
        print_message("No server runs yet: start one with `interlock up`. Waiting for it.")
    from interlock.driver.__main__ import main  # noqa: PLC0415 (what models need takes long)

    sys.exit(main())


WATCH_SECONDS = 1.0
ENTRIES_SHOWN = 60
_WAYS_ON = {
    "approval": "interlock approvals list",
    "question": "interlock driver steer {session} 'your answer'",
    "limit": "interlock driver limits {session} --turns N --minutes N --tokens N --cost DOLLARS",
}
"""The command by which work goes on that stands still, where that is not `resume`."""
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")
_SESSION = click.argument("session_id", metavar="SESSION")


@click.group()
def driver() -> None:
    """Watch unattended work, pause it, let it go on, end it, and speak to it"""


driver.add_command(run_driver)
driver.add_command(deliver)
driver.add_command(show_models)


@driver.command("status")
@click.option("--watch", is_flag=True, help="Show it anew when something changes, until Ctrl-C")
@_AS_JSON
def show_status(*, watch: bool, as_json: bool) -> None:
    """Say whether a driver runs, what it works on, and what waits and why"""
    if watch and as_json:
        raise click.UsageError("--watch is for people; programs ask again, or listen over REST.")
    app = open_app(data_home())
    if as_json:
        facts = _status_facts(_current_status(app))
        print_json({**facts, "nextTimes": list_due_times(app.home)})
        return
    shown = _status_lines(app)
    print_lines(*shown) if not watch else redraw(shown)
    while watch:
        time.sleep(WATCH_SECONDS)
        if (lines := _status_lines(app)) != shown:
            redraw(shown := lines)


def _current_status(app: App) -> DriverStatus:
    """With what was spent by now: the log is told of that only from time to time."""
    found = status.driver_status(app)

    def refresh(one: LiveWork) -> LiveWork:
        spent = spent_so_far(app, one.session, one.state)
        return msgspec.structs.replace(one, state=msgspec.structs.replace(one.state, spent=spent))

    return msgspec.structs.replace(found, work=tuple(map(refresh, found.work)))


def _status_facts(found: DriverStatus) -> dict[str, object]:
    running = found.driver
    return {
        "isAlive": found.is_alive,
        "version": running.version if running else None,
        "pid": running.pid if running else None,
        "startedMs": running.started_ms if running else None,
        "sandbox": running.level if running else None,
        "maxSessions": running.max_sessions if running else None,
        "lease": found.lease,
        "sessions": [one for one in found.work if one.state.status != "queued"],
        "queue": [one for one in found.work if one.state.status == "queued"],
        "undelivered": found.undelivered,
    }


def _status_lines(app: App) -> list[str]:
    found, now_ms = _current_status(app), app.clock.now_ms()
    lines = [_driver_line(app, found, now_ms)]
    for one in found.work:
        lines += ["", *_work_lines(one, now_ms)]
    for undelivered in found.undelivered:
        lines += ["", *_delivery_lines(undelivered)]
    if not found.work:
        lines.append(
            "No unattended work is open. `interlock run start WORKFLOW --goal … --driver` orders"
            " some."
        )
    return lines


def _driver_line(app: App, found: DriverStatus, now_ms: int) -> str:
    if not found.is_alive:
        return absence_of_driver(app) if found.work else "No driver runs."
    if (running := found.driver) is None:
        assert found.lease is not None, "a live driver has a lease"
        left = f"the lease of {found.lease.holder} ends in {found.lease.left_ms // 1_000} s"
        return f"No running driver is known here; {left}."
    since = time_ago(running.started_ms, now_ms)
    return (
        f"Driver {running.version} runs (process {running.pid}, {since}), sandbox"
        f" {running.level}, {running.max_sessions} at a time."
    )


def _work_lines(one: LiveWork, now_ms: int) -> list[str]:
    state, status = one.state, one.status
    activity = f", {one.activity.words}" if one.activity else ""
    since = time_ago(one.activity.since_ms if one.activity else state.since_ms, now_ms)
    spent = _spent_text(state.spent, state.limits)
    lines = [
        f"{one.session}  {status.word}{activity}, {since}; {spent}",
        f"  {state.order.workflow}{f', {one.step_title}' if one.step_title else ''}:"
        f" {state.order.goal}",
        f"  {status.reason}",
    ]
    if state.status in ("parked", "paused"):
        way = _WAYS_ON.get(state.reason or "", "interlock driver resume {session}")
        lines.append(f"  to continue: {way.format(session=one.session)}")
    return lines


def _delivery_lines(one: UndeliveredWork) -> list[str]:
    delivery = one.state.delivery
    assert delivery is not None, "it is among those that were to be delivered"
    lines = [f"{one.session}  done, {delivery_line(delivery)}", f"  {one.state.order.goal}"]
    if delivery.needs_user:
        lines.append(f"  to try it again: {way_on(one.session)}")
    return lines


def _spent_text(spent: Spent, limits: Limits) -> str:
    cost = spent.usage.cost_micros
    money = "cost unknown" if cost is None else dollars(cost)
    if cost is not None and limits.cost_micros is not None:
        money = f"{money} of {dollars(limits.cost_micros)}"
    minutes = spent.work_ms // 60_000
    return f"turn {spent.turns} of {limits.turns}, {minutes} of {limits.minutes} min, {money}"


@driver.command()
@_SESSION
@click.option("--now", is_flag=True, help="Do not wait for the end of the turn")
@_AS_JSON
def pause(session_id: str, *, now: bool, as_json: bool) -> None:
    """Pause after the turn that goes on, or at once"""
    require_user("Pausing unattended work")

    def describe(session: SessionId, state: UnattendedState) -> str:
        if state.status == "working":
            return f"{session} pauses {'in a moment' if now else 'after the turn that goes on'}."
        return f"{session} is paused. `interlock driver resume {session}` lets it go on."

    _control(session_id, "pause_now" if now else "pause", describe, as_json=as_json)


@driver.command()
@_SESSION
@_AS_JSON
def resume(session_id: str, *, as_json: bool) -> None:
    """Let work go on that is paused or stands still"""
    require_person("Letting unattended work go on", SERVED)

    def describe(session: SessionId, state: UnattendedState) -> str:
        is_working = state.status == "working"
        return f"{session} goes on{'' if is_working else ' as soon as it is its turn'}."

    _control(session_id, "resume", describe, as_json=as_json)


@driver.command()
@click.argument("session_id", metavar="[SESSION]", default="")
@click.option("--all", "is_all", is_flag=True, help="All unattended work that is not over")
@_AS_JSON
def cancel(session_id: str, *, is_all: bool, as_json: bool) -> None:
    """End unattended work for good, with what it runs. Its worktree and its branch stay"""
    require_user("Cancelling unattended work")
    if bool(session_id) == is_all:
        raise click.UsageError("Name a session, or say --all.")
    if not is_all:
        _control(session_id, "cancel", _describe_cancelled, as_json=as_json)
        return
    app = open_app(data_home())
    cancelled = orders.cancel_all(app, place=PLACE)
    if as_json:
        print_json({"cancelled": cancelled})
        return
    for session in cancelled:
        if state := orders.state_of(app, session):
            print_lines(_describe_cancelled(session, state))
    if not cancelled:
        print_lines("No unattended work is open.")


def _describe_cancelled(session: SessionId, state: UnattendedState) -> str:
    if not state.is_over:
        return (
            f"{session} is being cancelled: its driver ends the running tool first."
            " `interlock driver status` shows the progress."
        )
    if state.outcome != "cancelled":
        return f"{session} was over already ({state.outcome})."
    return f"{session} is cancelled."


@driver.command()
@_SESSION
@click.argument("text")
@_AS_JSON
def steer(session_id: str, text: str, *, as_json: bool) -> None:
    """Tell the model something before its next turn, or answer what it asked"""
    require_person("Telling the model something", SERVED)

    def describe(session: SessionId, state: UnattendedState) -> str:
        stands_still = state.status in ("paused", "parked") and state.reason != "question"
        way_on = f" It stands still: `interlock driver resume {session}` lets it go on."
        return f"{session}: the model is told before its next turn.{way_on if stands_still else ''}"

    def change(app: App, session: SessionId) -> UnattendedState | Refusal:
        return orders.steer_work(app, session, text, place=PLACE)

    _change_work(session_id, change, describe, as_json=as_json)


@driver.command()
@_SESSION
@limit_options
@_AS_JSON
def limits(session_id: str, *, as_json: bool, **options: Any) -> None:
    """Set other limits. Work that stands still because of one goes on"""
    require_person("Setting limits of unattended work", SERVED)
    wish = wanted_limits(options)
    if wish == LimitsWish():
        raise click.UsageError("Say which: --turns, --minutes, --tokens or --cost.")

    def change(app: App, session: SessionId) -> UnattendedState | Refusal:
        return orders.raise_limits(app, session, wish, place=PLACE)

    def describe(session: SessionId, state: UnattendedState) -> str:
        return f"{session} is {state.status}, within {limits_text(state.limits)}."

    _change_work(session_id, change, describe, as_json=as_json)


@driver.command()
@_SESSION
@click.option("--follow", is_flag=True, help="Go on with what comes, until the work is over")
@click.option("--all", "is_all", is_flag=True, help="From the beginning")
@_AS_JSON
def turns(session_id: str, *, follow: bool, is_all: bool, as_json: bool) -> None:
    """Print what the model said and did, oldest first"""
    if follow and as_json:
        raise click.UsageError("--follow is for people; programs ask again from where they were.")
    app = open_app(data_home())
    session = require_session(app, session_id)
    if orders.state_of(app, session) is None:
        refuse(NotUnattended(session).explain())
    entries = status.turns_of(app, session, first=0 if is_all else -ENTRIES_SHOWN)
    if as_json:
        print_json([without_token(entry) for entry in entries])
        return
    if entries and entries[0].seq > 0:
        print_message("What came before is left out: `--all` prints it.")
    elif not entries and not follow:
        print_message("Nothing was written down yet.")
    position = 0
    while True:
        for entry in entries:
            print_entry(entry)
            position = entry.seq + 1
        flush_output()
        state = orders.state_of(app, session)
        if not follow or state is None or (state.is_over and not entries):
            return
        if not state.is_over:
            time.sleep(WATCH_SECONDS)
        entries = status.turns_of(app, session, first=position)


def _control(
    session_id: str,
    wanted: Control,
    describe: Callable[[SessionId, UnattendedState], str],
    *,
    as_json: bool,
) -> None:
    def change(app: App, session: SessionId) -> UnattendedState | Refusal:
        return orders.control_work(app, session, wanted, place=PLACE)

    _change_work(session_id, change, describe, as_json=as_json)


def _change_work(
    session_id: str,
    change: Callable[[App, SessionId], UnattendedState | Refusal],
    describe: Callable[[SessionId, UnattendedState], str],
    *,
    as_json: bool,
) -> None:
    """Change how the work is to go on, and say how it stands, and who is missing for that."""
    app = open_app(data_home())
    session = require_session(app, session_id)
    state = expect(UnattendedState, change(app, session))
    if as_json:
        print_json(status.daemon_status(app, session, state))
        return
    print_lines(describe(session, state))
    if state.status in ("queued", "working") and (missing := absence_of_driver(app)):
        print_message(missing)
