"""Reading a hand-off file that the user names, wherever it is. It is never changed."""

import os
import stat
from pathlib import Path

from interlock.workspace.failures import FileUnreadable

BYTES_MAX = 4 * 1024 * 1024  # as much as a note may have


def read_handoff(path: Path) -> str:
    """Return the text of the file. Bytes that are not UTF-8 are lone surrogates, as in a note.

    Raises:
        FileUnreadable: it is not there, not a file, too large or not text.
    """
    try:
        # Without O_NONBLOCK a pipe would keep us waiting for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileUnreadable("it is not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(BYTES_MAX + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileUnreadable(reason[:1].lower() + reason[1:]) from error
    if len(content) > BYTES_MAX:
        raise FileUnreadable(f"it has more than {BYTES_MAX // 1024 // 1024} MB")
    if b"\0" in content:
        raise FileUnreadable("it is not text")
    return content.decode("utf-8", "surrogateescape")
