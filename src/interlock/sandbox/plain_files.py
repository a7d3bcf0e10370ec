"""Small files where those inside may write: read them, and put back what they have changed."""

import os
from _stat import S_ISDIR, S_ISREG

_BYTES_MAX = 64 * 1024


def read_plain_file(path: str) -> bytes | None:
    """The content; None if there is no plain file: it may be a pipe, a link or a device by now."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, _BYTES_MAX) if S_ISREG(os.fstat(file).st_mode) else None
    finally:
        os.close(file)


def put_back(files: dict[str, bytes | None]) -> list[str]:
    """Make these files be as given, where None is no file. Returns those that were not.

    Their directories must be ones that cannot have been replaced, and nobody may be writing.

    Raises:
        OSError: one could not be put back.
    """
    changed = [path for path, content in files.items() if _differs(path, content)]
    for path in changed:
        folder, content = path.rpartition("/")[0], files[path]
        os.chmod(folder, os.stat(folder).st_mode | 0o700)
        if os.path.lexists(path):
            _remove(path)
        if content is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            file = os.open(path, flags, 0o644)
            os.write(file, content)
            os.close(file)
    return changed


def _differs(path: str, content: bytes | None) -> bool:
    return os.path.lexists(path) if content is None else read_plain_file(path) != content


def _remove(path: str) -> None:
    if not S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    from shutil import rmtree  # noqa: PLC0415 (rarely needed)

    rmtree(path)
