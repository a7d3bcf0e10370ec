"""Watch over the triggers that nobody calls: ask forges when it is time, and look at the clock.

A time that passed while nothing ran is not caught up with: a run at three in the night that begins
at noon surprises people.
"""

import logging
import threading
from pathlib import Path

from interlock.app.context import App, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.triggers.firing import fire, is_under_way, record_firing
from interlock.app.triggers.polling import MINUTE_MS, poll
from interlock.app.triggers.schedule import next_time_ms, schedule_fault
from interlock.app.triggers.trigger_book import ProjectTrigger, TriggerBook
from interlock.core.triggers.admission import admit_time
from interlock.core.triggers.trigger import Trigger
from interlock.store.trigger_log import PollCursor, TriggerLog

LOOK_SECONDS = 1.0
FAILURE_SECONDS = 10.0
FAULTY_MS = 60_000
LATE_MS_MAX = 10 * 60_000
"""How late a time may be seen and still counts: a machine may have slept over it."""
_LOG = logging.getLogger(__name__)


def look_once(app: App, book: TriggerBook, log: TriggerLog) -> None:
    """Let every trigger fire whose time has come."""
    for one in book.read().triggers:
        if one.trigger.enabled and (one.trigger.is_polled or one.trigger.source == "cron"):
            _look_at(app, log, one)


def _look_at(app: App, log: TriggerLog, one: ProjectTrigger) -> None:
    cursor, rhythm = log.cursor(one.place), _rhythm(one.trigger)
    if cursor.rhythm != rhythm:
        cursor = PollCursor(rhythm)
    now_ms = app.clock.now_ms()
    # A clock that was wrong for a while may have left a time that is too far ahead.
    if now_ms < cursor.due_ms <= _latest_due_ms(one.trigger, now_ms):
        return
    look = poll if one.trigger.is_polled else _look_at_clock
    log.move_cursor(one.place, look(app, log, one, cursor))


def _rhythm(trigger: Trigger) -> str:
    if trigger.source == "cron":
        return f"{trigger.schedule} {trigger.zone}"
    return f"{trigger.source} {trigger.forge} {trigger.repository} {trigger.every_minutes}"


def _latest_due_ms(trigger: Trigger, now_ms: int) -> int:
    if trigger.is_polled:
        return now_ms + trigger.every_minutes * MINUTE_MS
    if schedule_fault(trigger.schedule, trigger.zone):
        return now_ms + FAULTY_MS
    return next_time_ms(trigger.schedule, trigger.zone, now_ms)


def _look_at_clock(
    app: App, log: TriggerLog, one: ProjectTrigger, cursor: PollCursor
) -> PollCursor:
    """Let a schedule fire. The time is its name: seen twice, it is the same work."""
    now_ms = app.clock.now_ms()
    moved = PollCursor(cursor.rhythm, due_ms=_latest_due_ms(one.trigger, now_ms))
    if not 0 < cursor.due_ms <= now_ms or schedule_fault(one.trigger.schedule, one.trigger.zone):
        return moved  # a new one, or one that was changed, begins now
    if now_ms - cursor.due_ms > LATE_MS_MAX:
        record_firing(app, log, one, "skipped", "its time came while no server ran")
    elif is_under_way(app, one):
        record_firing(app, log, one, "skipped", "the work of the last time is not over")
    else:
        fire(app, log, one, admit_time(one.trigger, place=one.place, at_ms=cursor.due_ms))
    return moved


class TriggerWatch:
    """The thread of the server that looks. A data home has one server."""

    def __init__(self, home: Path, book: TriggerBook) -> None:
        self._home, self._book = home, book

    def serve(self, stop: threading.Event) -> None:
        """Watch until `stop` is set. What fails is logged and tried again."""
        app: App | None = None
        log: TriggerLog | None = None
        while not stop.wait(LOOK_SECONDS):
            try:
                if not self._book.read().triggers:
                    continue
                app = app or open_app(self._home)
                log = log or TriggerLog(self._home)
                look_once(app, self._book, log)
            except (StoreFailure, SettingsBroken) as failure:
                _LOG.warning("Triggers cannot be looked at now: %s", failure)
                stop.wait(FAILURE_SECONDS)
            except Exception:  # noqa: BLE001 (one trigger must not stop all the others)
                _LOG.exception("Triggers: this is a bug in Interlock")
                stop.wait(FAILURE_SECONDS)
        for opened in (app, log):
            if opened is not None:
                opened.close()
