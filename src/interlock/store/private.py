"""Creating files and directories that only their owner can use, whatever is allowed above."""

import os
from contextlib import suppress
from pathlib import Path

from interlock.store.failures import StoreUnusable


def create_private_file(path: Path) -> None:
    """Create an empty file of mode 0600 if there is none. SQLite would let everybody read its own.

    An existing one is not opened: closing it again would give up the locks that another
    connection of this process holds on it.
    """
    with suppress(OSError):  # whoever opens it reports what is wrong
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def create_private_directory(path: Path, *, hint: str, label: str = "The directory") -> None:
    """Create a directory of mode 0700 if there is none. An existing one stays as it is.

    Raises:
        StoreUnusable: it cannot be created; `hint` says what to do.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(f"{label} `{path}` cannot be made: {error.strerror}", hint) from error
