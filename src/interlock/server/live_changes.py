"""Streams that report changes of the store: one for each open page, silent while nothing happens.

A listener is told only *that* something changed, and then fetches again what it shows. So it needs
no queue, misses nothing, and a thousand changes in a row are a few messages. How much waits for the
user is told as a number, to every page, whatever it is about. A page that follows unattended work
is told of what only the journal of the driver has, too, and when the driver comes or goes.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.runs.waiting import count_waiting
from interlock.app.sessions import store_changes
from interlock.app.sessions.store_changes import StoreChanges, StoreCursor
from interlock.app.unattended.journal_views import work_marker
from interlock.core.ids import SessionId
from interlock.server.listeners import Listener, Listeners
from interlock.server.worker import Worker

POLL_SECONDS = 0.25
NO_SESSION = "none"
"""The session of a page that shows none: it is told only how much waits."""


class _SessionListener(Listener):
    def __init__(self, session: str, work: str | None = None) -> None:
        super().__init__()
        self.work = work
        """The state of unattended work that it knows (`work_marker`); None if it follows none."""
        self.is_for_count = session == NO_SESSION
        """Whether only how much waits matters to it."""
        self.session = SessionId(session) if session and not self.is_for_count else None
        """The session to listen to; None for all of them."""
        self.cursor = StoreCursor()
        """The state of the store that the listener has last been told of."""
        self.is_session_gone = False
        """Whether its session is gone, and it was told so."""
        self.is_up_to_date = False
        """Whether it was told what it had missed before it came."""

    def notify(self, news: StoreChanges, waiting_count: int) -> None:
        if news.cursor.marker == self.cursor.marker:
            return
        if waiting_count != self.waiting_count:
            self.wake_event.set()
        newest = news.cursor.position
        if self.session is not None:
            newest = news.sessions.get(self.session, 0)
        is_gone = self.session in news.missing_sessions
        # If the newest events were removed, others may have been removed too.
        is_removal = news.is_removal or news.cursor.position < self.cursor.position
        is_news = newest > self.cursor.position or (is_gone and not self.is_session_gone)
        if (is_news or is_removal) and not self.is_for_count:
            self.has_news = True
            self.wake_event.set()
        self.cursor, self.is_session_gone = news.cursor, is_gone

    def notify_of_work(self, work: str) -> None:
        # What it had missed is asked for meanwhile, and would take the place of this.
        if self.is_up_to_date and self.work not in (None, work):
            self.work, self.has_news = work, True
            self.wake_event.set()


class LiveChanges:
    def __init__(self, reader: Worker) -> None:
        self._reader = reader
        self._listeners = Listeners[_SessionListener]()
        self._cursor = StoreCursor()
        self._waiting_count = 0
        self._poll_task: asyncio.Task[None] | None = None
        self._start_lock = asyncio.Lock()

    async def stream(self, request: Request) -> Response:
        """Answer with a stream; `since` or `Last-Event-ID` is the position that the page knows."""
        text = request.headers.get("last-event-id") or request.query_params.get("since", "")
        is_number = text.isascii() and text.isdigit() and len(text) < 19  # noqa: PLR2004
        since = int(text) if is_number else None
        if request.method == "HEAD":  # a client waits for its end, and a stream has none
            return Response(media_type="text/event-stream")
        query = request.query_params
        return StreamingResponse(
            self._messages(_SessionListener(query.get("session", ""), query.get("work")), since),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def end(self) -> None:
        """End every stream, so that the server can end."""
        self._listeners.end()

    async def _messages(
        self, listener: _SessionListener, since: int | None
    ) -> AsyncIterator[bytes]:
        with self._listeners.subscribe(listener):
            await self._start_polling()
            missed = await self._catch_up(listener, since)
            listener.has_news = missed.has_changes and not listener.is_for_count
            listener.is_up_to_date = True
            yield b": here\n\n" + self._message(listener)
            async for message in self._listeners.messages(
                listener, lambda: self._message(listener)
            ):
                yield message

    def _message(self, listener: _SessionListener) -> bytes:
        return listener.message(str(listener.cursor.position), self._waiting_count)

    async def _catch_up(self, listener: _SessionListener, since: int | None) -> StoreChanges:
        missed = await self._reader.run(
            lambda app: store_changes.missed_changes(app, listener.session, since)
        )
        listener.cursor = missed.cursor
        if self._listeners.is_active(listener):
            listener.wake_event.clear()  # it is up to date now
        return missed

    async def _start_polling(self) -> None:
        async with self._start_lock:
            if self._poll_task is None or self._poll_task.done():
                self._cursor, self._waiting_count = await self._reader.run(_current_state)
                self._poll_task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        """Poll the store for as long as somebody listens."""
        while self._listeners and not self._listeners.is_closed:
            await asyncio.sleep(POLL_SECONDS)
            cursor, watched = self._cursor, self._watched_sessions()
            try:
                news, waiting_count = await self._reader.run(
                    partial(_news_since, cursor=cursor, watched=watched)
                )
                followers = [one for one in self._listeners if one.work is not None]
                work = await self._reader.run(work_marker) if followers else ""
            except StoreFailure:
                continue  # listeners are told once the store can be read again
            self._cursor = news.cursor
            if waiting_count is not None:
                self._waiting_count = waiting_count
                for listener in self._listeners:
                    listener.notify(news, waiting_count)
            for listener in followers:
                listener.notify_of_work(work)

    def _watched_sessions(self) -> frozenset[SessionId]:
        return frozenset(
            listener.session for listener in self._listeners if listener.session is not None
        )


def _news_since(
    app: App, *, cursor: StoreCursor, watched: frozenset[SessionId]
) -> tuple[StoreChanges, int | None]:
    """The changes, and how much waits; None where nothing changed."""
    news = store_changes.changes_since(app, cursor, watched)
    return news, count_waiting(app) if news.has_changes else None


def _current_state(app: App) -> tuple[StoreCursor, int]:
    return store_changes.current_cursor(app), count_waiting(app)
