"""Webhooks of forges and other programs: `POST /hooks/PROJECT/TRIGGER`.

The one door for strangers. It is open to every host name, because a proxy or a tunnel brings what
comes from elsewhere, and whoever does not know the secret of the trigger learns nothing here. It
has a thread of its own: ordering work asks git, and agents do not wait for that.
"""

import asyncio
import threading
from collections.abc import Callable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.app.context import App
from interlock.app.triggers.firing import TriggerLog
from interlock.app.triggers.trigger_book import TriggerBook
from interlock.app.triggers.webhook_intake import (
    BODY_BYTES_MAX,
    WebhookAnswer,
    WebhookCall,
    receive_webhook,
)
from interlock.server.guard import HOOKS_PREFIX
from interlock.server.worker import Worker

WAITING_MAX = 64
"""Calls that have arrived and wait for their turn; more are told to come again."""
READING_MAX = 64
"""Bodies that are read at a time. One more, and the oldest is given up: slow senders, who need not
know a secret, can then displace each other, but not a body that arrives at once."""
BODY_SECONDS = 10.0
DROPPED_BYTES_MAX = 32 * BODY_BYTES_MAX
_TOO_LARGE = WebhookAnswer(413, "rejected", f"The body has more than {BODY_BYTES_MAX} bytes")
_TOO_SLOW = WebhookAnswer(408, "rejected", "The body did not come in time")
_BUSY = WebhookAnswer(503, "rejected", "Too many calls wait")


class Webhooks:
    def __init__(self, book: TriggerBook, open_app: Callable[[], App]) -> None:
        self._book, self._open_app = book, open_app
        self._worker: Worker | None = None
        self._log: TriggerLog | None = None
        self._lock = threading.Lock()
        self._deadlines: dict[asyncio.Timeout, None] = {}
        """Of the bodies that are read, the oldest first."""
        self._waiting = 0

    def route(self) -> Route:
        return Route(f"{HOOKS_PREFIX}{{project}}/{{name}}", self.receive, methods=["POST"])

    async def receive(self, request: Request) -> Response:
        try:
            body = await self._read_in_time(request)
        except TimeoutError:
            return _response(_TOO_SLOW)
        if body is None:
            return _response(_TOO_LARGE)
        if self._waiting >= WAITING_MAX:
            return _response(_BUSY)
        self._waiting += 1
        try:
            place = f"{request.path_params['project']}/{request.path_params['name']}"
            call = WebhookCall(place, dict(request.headers), body)
            worker = await run_in_threadpool(self._start_worker)
            return _response(await worker.run(lambda app: self._receive(app, call)))
        finally:
            self._waiting -= 1

    async def _read_in_time(self, request: Request) -> bytes | None:
        async with asyncio.timeout(BODY_SECONDS) as deadline:
            if len(self._deadlines) >= READING_MAX:
                oldest = next(iter(self._deadlines))
                del self._deadlines[oldest]
                oldest.reschedule(0)
            self._deadlines[deadline] = None
            try:
                return await _read_body(request)
            finally:
                self._deadlines.pop(deadline, None)

    def _receive(self, app: App, call: WebhookCall) -> WebhookAnswer:
        # Kept open: whoever closes it last has the disk wait.
        self._log = self._log or TriggerLog(app.home)
        return receive_webhook(app, self._book, self._log, call)

    def _start_worker(self) -> Worker:
        with self._lock:
            self._worker = self._worker or Worker("webhooks", self._open_app)
            return self._worker

    def stop(self, *, seconds: float) -> None:
        if self._worker is not None:
            self._worker.stop(seconds=seconds)
        if self._log is not None:
            self._log.close()


async def _read_body(request: Request) -> bytes | None:
    """Return the whole body; None if it is too large.

    Some more than the limit is read and dropped: a sender that is cut off sees no status.
    """
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= BODY_BYTES_MAX:
            body += chunk
        elif size > DROPPED_BYTES_MAX:
            break
    return bytes(body) if size <= BODY_BYTES_MAX else None


def _response(answer: WebhookAnswer) -> Response:
    content = msgspec.json.encode(answer)
    return Response(content, status_code=answer.status, media_type="application/json")
