"""Reading a hand-off file that the user names, wherever it is. It is never changed."""

from pathlib import Path

from interlock.workspace.failures import FileUnreadable
from interlock.workspace.files.regular_file import read_regular_file

BYTES_MAX = 4 * 1024 * 1024  # as much as a note may have


def read_handoff(path: Path) -> str:
    """Return the text of the file. Bytes that are not UTF-8 are lone surrogates, as in a note.

    Raises:
        FileUnreadable: it is not there, not a file, too large or not text.
    """
    try:
        content = read_regular_file(path, BYTES_MAX)
    except (OSError, ValueError) as error:  # a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileUnreadable(reason[:1].lower() + reason[1:]) from error
    if b"\0" in content:
        raise FileUnreadable("it is not text")
    return content.decode("utf-8", "surrogateescape")
