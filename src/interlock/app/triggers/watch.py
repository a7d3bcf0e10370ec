"""Watch over the triggers that nobody calls: ask forges when it is time, and look at the clock.

A time that passed while nothing ran is not caught up with: a run at three in the night that begins
at noon surprises people.
"""

import datetime as dt
import logging
import threading
from pathlib import Path

import msgspec

from interlock.app.context import App, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.app.triggers.firing import fire, is_under_way, record_firing
from interlock.app.triggers.schedule import next_time_ms, schedule_fault
from interlock.app.triggers.trigger_book import ProjectTrigger, TriggerBook
from interlock.app.unattended.forge_settings import find_forge, open_forge
from interlock.core.triggers.admission import admit_event, admit_time
from interlock.core.triggers.forge_event import ForgeEvent
from interlock.core.triggers.trigger import Trigger
from interlock.store.trigger_log import PollCursor, TriggerLog
from interlock.workspace.outside.forges.forge import ForgeRequest
from interlock.workspace.outside.forges.rest_calls import ForgeFailed

LOOK_SECONDS = 1.0
FAILURE_SECONDS = 10.0
MINUTE_MS = FAULTY_MS = 60_000
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
    """The polling thread of the server. A data home has one server."""

    def __init__(self, home: Path, book: TriggerBook) -> None:
        self._home, self._book = home, book

    def serve(self, stop: threading.Event) -> None:
        """Watch until `stop` is set. Failures are logged and retried."""
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
                _LOG.warning("Triggers cannot be polled now: %s", failure)
                stop.wait(FAILURE_SECONDS)
            except Exception:  # noqa: BLE001 (one trigger must not stop all the others)
                _LOG.exception("Triggers: this is a bug in Interlock")
                stop.wait(FAILURE_SECONDS)
        for opened in (app, log):
            if opened is not None:
                opened.close()


def poll(app: App, log: TriggerLog, one: ProjectTrigger, cursor: PollCursor) -> PollCursor:
    """Poll a forge for changes, enqueue the work for them, and return the next cursor.

    The first poll stops at once, so that old requests do not flood the queue. The cursor moves
    after the work was ordered: a crash in between repeats the look, and what it finds is a
    duplicate.
    """
    trigger, now_ms = one.trigger, app.clock.now_ms()
    due = msgspec.structs.replace(cursor, due_ms=now_ms + trigger.every_minutes * MINUTE_MS)
    if not cursor.since:
        return msgspec.structs.replace(due, since=_forge_time(now_ms))
    if cursor.since > _forge_time(now_ms):  # the clock was ahead, and would hide what changes now
        cursor = msgspec.structs.replace(cursor, since=_forge_time(now_ms), etag="")
    try:
        url = find_forge(app.home, trigger.forge).url
        page = open_forge(app.home, trigger.forge).changed_requests(
            trigger.repository, since=cursor.since, etag=cursor.etag
        )
    except (SettingsBroken, ForgeFailed) as failure:
        record_firing(app, log, one, "failed", str(failure))
        return due
    if page.is_unchanged:
        return due
    firings = [
        fire(app, log, one, admit_event(trigger, event, {}, forge_url=url))
        for event in (polled_event(trigger.repository, request) for request in page.requests[::-1])
    ]
    if any(firing.outcome == "failed" for firing in firings):
        return due  # the next poll finds the same again; queued work is then a duplicate
    since = max((request.updated_at for request in page.requests), default=cursor.since)
    return msgspec.structs.replace(due, since=max(since, cursor.since), etag=page.etag)


def polled_event(repository: str, request: ForgeRequest) -> ForgeEvent:
    """Return a polled request as the webhook event that it would have been."""
    return ForgeEvent(
        kind="request",
        action="updated",
        repository=repository,
        number=request.number,
        is_open=request.state == "open",
        author=request.author,
        sender=request.author,
        labels=request.labels,
        assignees=request.assignees,
        head=request.head,
        title=request.title,
        body=request.body,
        url=request.url,
        is_draft=request.is_draft,
        changes_code=True,  # an unchanged commit is recognised as a duplicate
        is_fork=request.is_fork,
        target=request.target_branch,
    )


def _forge_time(at_ms: int) -> str:
    moment = dt.datetime.fromtimestamp(at_ms / 1_000, dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
