"""Reading small files where something else may be: a pipe, a device, or a file without end."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read_regular_file(path: Path, bytes_max: int) -> bytes:
    """Return the content of the file.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger.
    """
    with open_regular_file(path) as file:
        is_large = os.fstat(file.fileno()).st_size > bytes_max  # some files tell no size
        content = b"" if is_large else file.read(bytes_max + 1)
    if is_large or len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max // 1024} KB")
    return content


def open_regular_file(path: Path) -> BinaryIO:
    """Open the file for reading, without waiting for anybody.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    _require_regular(os.stat(path))  # merely opening a device may set it off
    # Without O_NONBLOCK a pipe, put there in this moment, would keep us waiting for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _require_regular(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def stamp_of(path: Path) -> str:
    """The stamp of a file, as in `hooks/gate_state.py`: every write to the file changes it.

    Empty if there is none.
    """
    try:
        at = os.stat(path)
    except OSError:
        return ""
    return f"{at.st_dev} {at.st_ino} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}"


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a file")
