"""Ask forges what has changed, for machines that no webhook reaches.

A look begins where the last one ended; the first one ends at once, so that nobody's old requests
come in as a flood. The cursor moves after the work was ordered: a crash in between repeats the
look, and what it finds is a duplicate.
"""

import datetime as dt

import msgspec

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.triggers.firing import fire, record_firing
from interlock.app.triggers.trigger_book import ProjectTrigger
from interlock.app.unattended.forge_settings import find_forge, open_forge
from interlock.core.triggers.admission import admit_event
from interlock.core.triggers.forge_event import ForgeEvent
from interlock.store.trigger_log import PollCursor, TriggerLog
from interlock.workspace.outside.forges.forge import ForgeRequest
from interlock.workspace.outside.forges.rest_calls import ForgeFailed

MINUTE_MS = 60_000


def poll(app: App, log: TriggerLog, one: ProjectTrigger, cursor: PollCursor) -> PollCursor:
    """Look once at what has changed since, order the work for it, and return the next cursor."""
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
        return due  # what it found is found once more, and what was ordered is a duplicate then
    since = max((request.updated_at for request in page.requests), default=cursor.since)
    return msgspec.structs.replace(due, since=max(since, cursor.since), etag=page.etag)


def polled_event(repository: str, request: ForgeRequest) -> ForgeEvent:
    """A request that was found, in the form of what a webhook would have said."""
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
        url=request.url,
        is_draft=request.is_draft,
        changes_code=True,  # if it does not, the commit was looked at before
        is_fork=request.is_fork,
    )


def _forge_time(at_ms: int) -> str:
    moment = dt.datetime.fromtimestamp(at_ms / 1_000, dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
