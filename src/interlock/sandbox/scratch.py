"""Scratch directories: where sandboxed commands may write, one for each session.

They are in the data home, where no other user can create them first, and where no other command
reads them. Each part of the path is checked nevertheless before it is used. They last, so that
caches in them do; those that nobody has used for a week are removed when a new one is made.
"""

import os
from _stat import S_ISDIR

DIRECTORY = "scratch"
SECONDS_KEPT = 7 * 86_400
NAME_LENGTH = 14
"""Of the end of a session's name, which is random. The path of a socket has 107 bytes at most."""


class ScratchUnsafe(OSError):
    """Somebody else could write there."""


def scratch_directory(home: str, session: str) -> str:
    """The real path of a session's scratch directory in a data home. It is made if it is missing.

    Raises:
        ScratchUnsafe: its place belongs to somebody else.
        OSError: it cannot be made.
    """
    base = f"{os.path.realpath(home)}/{DIRECTORY}"
    name = "".join(letter for letter in session if letter.isalnum() or letter in "-_")
    path = f"{base}/{name[-NAME_LENGTH:] or 'unnamed'}"
    _ensure_private(base)
    if _ensure_private(path):
        _remove_old(base, oldest=os.lstat(path).st_mtime - SECONDS_KEPT)
    else:
        os.utime(path)
    return path


def _ensure_private(path: str) -> bool:
    """Make a directory, or check the one that is there. Whether it had to be made."""
    try:
        os.mkdir(path, 0o700)
        is_new = True
    except FileExistsError:
        is_new = False
    status = os.lstat(path)
    if not S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ScratchUnsafe(f"`{path}` is not a directory of yours")
    os.chmod(path, 0o700)  # what runs inside may have changed it
    return is_new


def _remove_old(base: str, *, oldest: float) -> None:
    for name in os.listdir(base):
        try:
            if os.lstat(f"{base}/{name}").st_mtime < oldest:
                remove(f"{base}/{name}")
        except OSError:
            continue  # somebody else removes it


def remove(path: str) -> None:
    """Remove a scratch directory and all that is in it."""
    from shutil import rmtree  # noqa: PLC0415 (rarely needed)

    rmtree(path, ignore_errors=True)
