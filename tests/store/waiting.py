"""Waiting for what another thread or PostgreSQL does."""

import time
from collections.abc import Callable

from interlock.store.postgres.writer import PostgresLog


def wait_until(condition: Callable[[], bool], reason: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, reason
        time.sleep(0.01)


def other_marker(reader: PostgresLog, mark: int) -> int:
    """Wait until a reader's change marker is no longer `mark`, and return the new one."""
    wait_until(lambda: reader.change_marker() != mark, "a notice arrives")
    return reader.change_marker()
