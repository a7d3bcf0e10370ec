"""The clock that all who share a store have in common.

PostgreSQL has one: its distance from the machine's clock that never jumps is asked for at times,
and counted on from there. The processes that share a file are on one machine, whose time of day may
be set forward at any moment, by which everybody would be stale at once. So that is asked for once
in each run of the machine, and counted on from there likewise.
"""

import time
from contextlib import suppress
from pathlib import Path

from interlock.store.log import Log
from interlock.workspace.files.private_file import write_private_file

ASK_EVERY_MS = 30_000
_FILE = "steady-clock"
_BOOT_FILE = "/proc/sys/kernel/random/boot_id"


class StoreClock:
    def __init__(self, log: Log, home: Path) -> None:
        self._log, self._path = log, home / _FILE
        self._offset_ms: int | None = None
        self._ask_again_ms = 0

    def now_ms(self) -> int:
        if self._offset_ms is None or _monotonic_ms() >= self._ask_again_ms:
            database_ms = self._log.database_time_ms()
            self._ask_again_ms = _monotonic_ms() + ASK_EVERY_MS
            self._offset_ms = (
                self._agree_on_offset() if database_ms is None else database_ms - _monotonic_ms()
            )
        return _monotonic_ms() + self._offset_ms

    def _agree_on_offset(self) -> int:
        """The distance from the machine's start to the epoch, as the first process measured it."""
        own = time.time_ns() // 1_000_000 - _monotonic_ms()
        try:
            boot = Path(_BOOT_FILE).read_text("ascii").strip()
        except OSError:  # macOS, and some containers: then every process has the time of day
            return own
        for _ in range(2):
            with suppress(OSError, ValueError):
                recorded_boot, _, offset = self._path.read_text("ascii").partition(" ")
                if recorded_boot == boot:
                    return int(offset)
            with suppress(OSError):
                write_private_file(self._path, f"{boot} {own}".encode())
        return own


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
