"""What has changed, told to whoever looks: one stream for each page, silent while nothing happens.

A listener is told *that* something changed and fetches what it shows. So it needs no queue, misses
nothing, and a thousand changes in a row are a few messages.
"""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.app.failures import StoreFailure
from interlock.app.sessions import store_changes
from interlock.app.sessions.store_changes import StoreChanges, StoreCursor
from interlock.core.ids import SessionId
from interlock.server.listeners import Listener, Listeners, message
from interlock.server.worker import Worker

LOOK_SECONDS = 0.25


class _Listener(Listener):
    def __init__(self, session: str) -> None:
        super().__init__()
        self.session = SessionId(session) if session else None
        """None: all of them."""
        self.seen = StoreCursor()
        """What it knew when it came, or was told of then."""
        self.is_gone = False
        """Its session is, and it was told so."""

    def hear(self, news: StoreChanges) -> None:
        if news.cursor.marker == self.seen.marker:
            return
        newest = news.cursor.position
        if self.session is not None:
            newest = news.sessions.get(self.session, 0)
        is_gone = self.session in news.missing_sessions
        # Where the newest events were removed, nobody knows what else was.
        is_removal = not news.sessions or news.cursor.position < self.seen.position
        if newest > self.seen.position or is_removal or (is_gone and not self.is_gone):
            self.woken.set()
        self.seen, self.is_gone = news.cursor, is_gone


class Live:
    def __init__(self, reader: Worker) -> None:
        self._reader = reader
        self._listeners = Listeners[_Listener]()
        self._seen = StoreCursor()
        self._looking: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def stream(self, request: Request) -> Response:
        """`since` (or the header that browsers send again) is what the page has seen already."""
        given = request.headers.get("last-event-id") or request.query_params.get("since", "")
        since = int(given) if given.isascii() and given.isdigit() and len(given) < 19 else None  # noqa: PLR2004
        if request.method == "HEAD":  # whoever asks so waits for the end, and there is none
            return Response(media_type="text/event-stream")
        return StreamingResponse(
            self._told(_Listener(request.query_params.get("session", "")), since),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def end(self) -> None:
        """Every stream ends, so that the server can."""
        self._listeners.end()

    async def _told(self, listener: _Listener, since: int | None) -> AsyncIterator[bytes]:
        with self._listeners.joined(listener):
            await self._look_from_now_on()
            missed = await self._missed(listener, since)
            yield b": here\n\n"
            if missed.has_changes:
                yield message(str(missed.cursor.position))
            async for told in self._listeners.told(
                listener, lambda: message(str(self._seen.position))
            ):
                yield told

    async def _missed(self, listener: _Listener, since: int | None) -> StoreChanges:
        missed = await self._reader.run(
            lambda app: store_changes.missed_changes(app, listener.session, since)
        )
        listener.seen = missed.cursor
        if self._listeners.has(listener):
            listener.woken.clear()  # by what it knows now
        return missed

    async def _look_from_now_on(self) -> None:
        async with self._starting:
            if self._looking is None or self._looking.done():
                self._seen = await self._reader.run(store_changes.current_cursor)
                self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """Look at the store as long as somebody listens."""
        while self._listeners and not self._listeners.is_over:
            await asyncio.sleep(LOOK_SECONDS)
            before, watched = self._seen, self._watched()
            try:
                news = await self._reader.run(
                    lambda app, before=before, watched=watched: store_changes.changes_since(
                        app, before, watched
                    )
                )
            except StoreFailure:
                continue  # whoever listens is told when the store can be read again
            self._seen = news.cursor
            if news.has_changes:
                for listener in self._listeners:
                    listener.hear(news)

    def _watched(self) -> frozenset[SessionId]:
        return frozenset(each.session for each in self._listeners if each.session is not None)
