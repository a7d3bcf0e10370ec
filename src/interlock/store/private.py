"""Files that only their owner can read, whatever the directory around them lets others do."""

import os
from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> None:
    """An empty file of mode 0600, where none is. SQLite would let everybody read its own.

    One that is there is not opened: closing it again would give up the locks that another
    connection of this process holds on it.
    """
    with suppress(OSError):  # whoever opens it says what is wrong
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
