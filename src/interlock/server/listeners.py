"""Those who wait to be told of changes: one stream for each, silent while nothing happens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Generic, TypeVar

BETWEEN_SECONDS = 0.55
"""A listener is told no more often than that. With a look before it, within a second."""
QUIET_SECONDS = 20.0
"""After so long a comment shows that both ends are there."""
LISTENERS_MAX = 512


class Listener:
    def __init__(self) -> None:
        self.woken = asyncio.Event()


L = TypeVar("L", bound=Listener)


class Listeners(Generic[L]):
    def __init__(self) -> None:
        self._all: dict[L, None] = {}
        self.is_over = False

    def __iter__(self) -> Iterator[L]:
        return iter(tuple(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def has(self, listener: L) -> bool:
        """Not so once others took its place, or all of them were let go."""
        return not self.is_over and listener in self._all

    def end(self) -> None:
        """Every stream ends, so that the server can."""
        self.is_over = True
        for listener in self._all:
            listener.woken.set()

    @contextlib.contextmanager
    def joined(self, listener: L) -> Generator[None]:
        """The oldest make room for one too many."""
        while len(self._all) >= LISTENERS_MAX:
            oldest = next(iter(self._all))
            del self._all[oldest]
            oldest.woken.set()
        self._all[listener] = None
        try:
            yield
        finally:
            self._all.pop(listener, None)

    async def told(self, listener: L, message: Callable[[], bytes]) -> AsyncIterator[bytes]:
        """A message whenever it was woken, for as long as it is wanted."""
        while await self._is_wanted(listener):
            if listener.woken.is_set():
                listener.woken.clear()
                yield message()
                await asyncio.sleep(BETWEEN_SECONDS)
            else:
                yield b": quiet\n\n"

    async def _is_wanted(self, listener: L) -> bool:
        """Wait for news, or for a while."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listener.woken.wait(), QUIET_SECONDS)
        return self.has(listener)


def message(id_: str) -> bytes:
    return b"event: changed\nid: %b\ndata: %b\n\n" % (id_.encode(), id_.encode())
