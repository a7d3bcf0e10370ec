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
from interlock.app.changes import Seen
from interlock.server.worker import Worker

LOOK_SECONDS = 0.25
BETWEEN_SECONDS = 0.5
"""A listener is told no more often than that."""
QUIET_SECONDS = 20.0
"""After so long a comment shows that both ends are there."""
LISTENERS_MAX = 512


class _Listener:
    def __init__(self, session: str) -> None:
        self.session = session
        """Empty: all of them."""
        self.woken = asyncio.Event()


class Live:
    def __init__(self, reader: Worker) -> None:
        self._reader = reader
        self._listeners: dict[_Listener, None] = {}
        self._seen = Seen()
        self._looking: asyncio.Task[None] | None = None
        self._is_over = False

    async def stream(self, request: Request) -> Response:
        """`since` (or the header that browsers send again) is what the page has seen already."""
        given = request.headers.get("last-event-id") or request.query_params.get("since", "")
        since = int(given) if given.isascii() and given.isdigit() and len(given) < 19 else None  # noqa: PLR2004
        listener = _Listener(request.query_params.get("session", ""))
        if request.method == "HEAD":  # whoever asks so waits for the end, and there is none
            return Response(media_type="text/event-stream")
        return StreamingResponse(
            self._told(listener, since),
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
        if self._looking is None or self._looking.done():
            self._seen = await self._reader.run(changes.seen)
            self._looking = asyncio.create_task(self._look())
        try:
            yield b": here\n\n"
            if since is not None and await self._is_behind(listener.session, since):
                yield self._message()
            while await self._is_wanted(listener):
                if listener.woken.is_set():
                    listener.woken.clear()
                    yield self._message()
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

    def _message(self) -> bytes:
        position = self._seen.position
        return b"event: changed\nid: %d\ndata: %d\n\n" % (position, position)

    async def _is_behind(self, session: str, since: int) -> bool:
        changed = await self._reader.run(lambda app: changes.since(app, since))
        return changed is None or (bool(changed) if not session else session in changed)

    async def _look(self) -> None:
        """Look at the store as long as somebody listens."""
        while self._listeners and not self._is_over:
            await asyncio.sleep(LOOK_SECONDS)
            before = self._seen
            news = await self._reader.run(lambda app, before=before: changes.news(app, before))
            self._seen = news.seen
            if not news.is_any:
                continue
            for listener in self._listeners:
                if not news.sessions or not listener.session or listener.session in news.sessions:
                    listener.woken.set()
