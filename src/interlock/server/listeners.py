"""The open streams of changes: one for each listener, silent while nothing happens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Generic, TypeVar

MESSAGE_INTERVAL_SECONDS = 0.55
"""The least time between two messages. With a poll before it, news still comes within a second."""
KEEPALIVE_SECONDS = 20.0
"""After this much silence, a comment shows that both ends are there."""
LISTENERS_MAX = 512


class Listener:
    def __init__(self) -> None:
        self.wake_event = asyncio.Event()
        self.has_news = False
        """Whether what its page shows has changed."""
        self.waiting_count = -1
        """The number of things that wait for the user, as it was last told."""

    def message(self, id_: str, waiting_count: int) -> bytes:
        """Everything that it does not know yet."""
        message = b""
        if waiting_count != self.waiting_count:
            self.waiting_count = waiting_count
            message += b"event: waiting\ndata: %d\n\n" % waiting_count
        if self.has_news:
            self.has_news = False
            message += changed_message(id_)
        return message


L = TypeVar("L", bound=Listener)


class Listeners(Generic[L]):
    def __init__(self) -> None:
        self._listeners: dict[L, None] = {}
        self.is_closed = False

    def __iter__(self) -> Iterator[L]:
        return iter(tuple(self._listeners))

    def __len__(self) -> int:
        return len(self._listeners)

    def is_active(self, listener: L) -> bool:
        """Whether a listener is still served: not once it was displaced, or after `end`."""
        return not self.is_closed and listener in self._listeners

    def end(self) -> None:
        """End every stream, so that the server can end."""
        self.is_closed = True
        for listener in self._listeners:
            listener.wake_event.set()

    @contextlib.contextmanager
    def subscribe(self, listener: L) -> Generator[None]:
        """Serve a listener meanwhile; if there are too many, the oldest ones are dropped."""
        while len(self._listeners) >= LISTENERS_MAX:
            oldest = next(iter(self._listeners))
            del self._listeners[oldest]
            oldest.wake_event.set()
        self._listeners[listener] = None
        try:
            yield
        finally:
            self._listeners.pop(listener, None)

    async def messages(
        self, listener: L, make_message: Callable[[], bytes]
    ) -> AsyncIterator[bytes]:
        """Yield a message whenever the listener is woken, for as long as it is served."""
        while await self._wait_for_news(listener):
            if listener.wake_event.is_set():
                listener.wake_event.clear()
                yield make_message()
                await asyncio.sleep(MESSAGE_INTERVAL_SECONDS)
            else:
                yield b": quiet\n\n"

    async def _wait_for_news(self, listener: L) -> bool:
        """Wait for news or the keep-alive time; return whether the listener is still served."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listener.wake_event.wait(), KEEPALIVE_SECONDS)
        return self.is_active(listener)


def changed_message(id_: str) -> bytes:
    return b"event: changed\nid: %b\ndata: %b\n\n" % (id_.encode(), id_.encode())
