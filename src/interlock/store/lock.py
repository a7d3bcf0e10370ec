"""The lock that lets one process write at a time, in line rather than in a crowd.

SQLite has a lock of its own, but those who wait for it sleep in growing steps and starve each
other: with eight writers one in a hundred waited 80 ms or more. A flock around the transaction
takes most of that away, and the kernel frees it when a process dies.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from interlock.store.failures import StoreBusy, StoreUnusable

WAIT_SECONDS_MAX = 10.0
_POLL_SECONDS = 0.0005


class WriteLock:
    def __init__(self, path: Path) -> None:
        self._path, self._file = path, -1
        self._file = _open_lock_file(path)

    @contextmanager
    def hold(self, wait_seconds: float | None = None) -> Generator[None]:
        self._acquire(WAIT_SECONDS_MAX if wait_seconds is None else wait_seconds)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    def _acquire(self, wait_seconds: float) -> None:
        # Polled: a blocking wait would last for ever behind a process that was stopped.
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreBusy(
                        f"Another process has held `{self._path}` for {wait_seconds:.3g} s",
                        "Nothing was written. Look for a stopped `interlock` process, then"
                        " repeat the call.",
                    ) from None
                time.sleep(_POLL_SECONDS)
            else:
                return


class Claim:
    """A role that only one process at a time can have: the one that holds the lock of a file.

    A claim is held until it is released or the process ends, however that happens.
    """

    def __init__(self, path: Path) -> None:
        self._file = _open_lock_file(path)

    def try_acquire(self) -> bool:
        """True if the claim is ours now; False if another process has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        os.close(self._file)


def _open_lock_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnusable(
            f"`{path}` cannot be opened: {error.strerror}",
            "Check that the directory exists, belongs to you and can be written.",
        ) from error
