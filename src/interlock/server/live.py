"""What has changed, told to whoever looks: one stream for each page, silent while nothing happens.

A listener is told *that* something changed and fetches what it shows. So it needs no queue, misses
nothing, and a thousand changes in a row are a few messages.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.app import changes
from interlock.app.changes import News, Seen
from interlock.app.failures import StoreFailure
from interlock.core.ids import SessionId
from interlock.server.worker import Worker

LOOK_SECONDS = 0.25
BETWEEN_SECONDS = 0.55
"""A listener is told no more often than that. With the look before it, within a second."""
QUIET_SECONDS = 20.0
"""After so long a comment shows that both ends are there."""
LISTENERS_MAX = 512


class _Listener:
    def __init__(self, session: str) -> None:
        self.session = SessionId(session) if session else None
        """None: all of them."""
        self.seen = Seen()
        """What it knew when it came, or was told of then."""
        self.is_gone = False
        """Its session is, and it was told so."""
        self.woken = asyncio.Event()

    def hear(self, news: News) -> None:
        if news.seen.mark == self.seen.mark:
            return
        newest = news.seen.position
        if self.session is not None:
            newest = news.sessions.get(self.session, 0)
        is_gone = self.session in news.gone
        # Where the newest events were removed, nobody knows what else was.
        is_removal = not news.sessions or news.seen.position < self.seen.position
        if newest > self.seen.position or is_removal or (is_gone and not self.is_gone):
            self.woken.set()
        self.seen, self.is_gone = news.seen, is_gone


class Live:
    def __init__(self, reader: Worker) -> None:
        self._reader = reader
        self._listeners: dict[_Listener, None] = {}
        self._seen = Seen()
        self._looking: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._is_over = False

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
        self._is_over = True
        for listener in self._listeners:
            listener.woken.set()

    async def _told(self, listener: _Listener, since: int | None) -> AsyncIterator[bytes]:
        while len(self._listeners) >= LISTENERS_MAX:
            oldest = next(iter(self._listeners))
            del self._listeners[oldest]
            oldest.woken.set()
        self._listeners[listener] = None
        try:
            await self._look_from_now_on()
            missed = await self._missed(listener, since)
            yield b": here\n\n"
            if missed.is_any:
                yield _message(missed.seen.position)
            while await self._is_wanted(listener):
                if listener.woken.is_set():
                    listener.woken.clear()
                    yield _message(self._seen.position)
                    await asyncio.sleep(BETWEEN_SECONDS)
                else:
                    yield b": quiet\n\n"
        finally:
            self._listeners.pop(listener, None)

    async def _is_wanted(self, listener: _Listener) -> bool:
        """Wait for news, or for a while."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listener.woken.wait(), QUIET_SECONDS)
        return not self._is_over and listener in self._listeners

    async def _missed(self, listener: _Listener, since: int | None) -> News:
        missed = await self._reader.run(lambda app: changes.missed(app, listener.session, since))
        listener.seen = missed.seen
        if not self._is_over and listener in self._listeners:
            listener.woken.clear()  # by what it knows now
        return missed

    async def _look_from_now_on(self) -> None:
        async with self._starting:
            if self._looking is None or self._looking.done():
                self._seen = await self._reader.run(changes.seen)
                self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """Look at the store as long as somebody listens."""
        while self._listeners and not self._is_over:
            await asyncio.sleep(LOOK_SECONDS)
            before, watched = self._seen, self._watched()
            try:
                news = await self._reader.run(
                    lambda app, before=before, watched=watched: changes.news(app, before, watched)
                )
            except StoreFailure:
                continue  # whoever listens is told when the store can be read again
            self._seen = news.seen
            if news.is_any:
                for listener in self._listeners:
                    listener.hear(news)

    def _watched(self) -> frozenset[SessionId]:
        return frozenset(each.session for each in self._listeners if each.session is not None)


def _message(position: int) -> bytes:
    return b"event: changed\nid: %d\ndata: %d\n\n" % (position, position)
