"""Files of the data home that only tell of the past: old journals and tracebacks of crashes."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from interlock.workspace.machine import spool

_PATTERNS = ("logs/crash-*.txt", "spool/*.jsonl.[0-9]*", "spool/stop-*")


def old_files(home: Path, *, before_ms: int) -> Iterator[Path]:
    """Yield the files that nobody has written since then, by name.

    A journal that is still written is not among them (`spool.begin_new_journals`).
    """
    for path in sorted(path for pattern in _PATTERNS for path in home.glob(pattern)):
        with suppress(OSError):
            status = os.lstat(path)
            if status.st_mtime_ns // 1_000_000 < before_ms:
                yield path


def remove_old_files(home: Path, *, before_ms: int) -> list[Path]:
    """Remove them and return those that are gone; what cannot be removed is tried another day."""
    spool.begin_new_journals(home, before_ms=before_ms)
    removed: list[Path] = []
    for path in old_files(home, before_ms=before_ms):
        with suppress(OSError):
            path.unlink()
            removed.append(path)
    return removed
