"""A role that only one process at a time can have: the one that holds the lock of a file."""

import fcntl
import os
from pathlib import Path

from interlock.store.failures import StoreUnusable


class Claim:
    """A claim is held until it is released or the process ends, however that happens."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnusable(
                f"`{path}` cannot be opened: {error.strerror}",
                "Check that the directory exists, belongs to you and can be written.",
            ) from error

    def try_acquire(self) -> bool:
        """True if the claim is ours now; False if another process has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        os.close(self._file)
