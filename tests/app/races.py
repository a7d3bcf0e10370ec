"""Callers that do the same at the same moment."""

import threading
from collections.abc import Callable
from pathlib import Path

from interlock.app.context import App, open_app


def at_once(home: Path, act: Callable[[App, int], None], *, count: int = 6) -> None:
    """Run `act` in several threads at the same moment, each with a connection of its own."""
    apps = [open_app(home) for _ in range(count)]
    barrier = threading.Barrier(count)

    def wait_and_act(own: App, number: int) -> None:
        barrier.wait()
        act(own, number)

    threads = [threading.Thread(target=wait_and_act, args=(a, n)) for n, a in enumerate(apps)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in apps:
        own.close()
