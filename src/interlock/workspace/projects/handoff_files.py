"""A hand-off file that the user names: read, wherever it lies, and never changed."""

import os
import stat
from pathlib import Path

from interlock.workspace.failures import FileUnreadable

BYTES_MAX = 4 * 1024 * 1024  # as much as a note may have


def read_handoff(path: Path) -> str:
    """Bytes that are not UTF-8 are halves of characters, as in a note.

    Raises:
        FileUnreadable: it is not there, not a file, too large or not text.
    """
    try:
        # Without O_NONBLOCK a pipe would keep us waiting for ever.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise FileUnreadable("it is not a file")
            with os.fdopen(file, "rb", closefd=False) as opened:
                content = opened.read(BYTES_MAX + 1)
        finally:
            os.close(file)
    except (OSError, ValueError) as error:  # a NUL in the name
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileUnreadable(why[:1].lower() + why[1:]) from error
    if len(content) > BYTES_MAX:
        raise FileUnreadable(f"it has more than {BYTES_MAX // 1024 // 1024} MB")
    if b"\0" in content:
        raise FileUnreadable("it is not text")
    return content.decode("utf-8", "surrogateescape")
