"""Replacing whole files that belong to somebody else, atomically, keeping mode and owner."""

import os
import stat
from pathlib import Path

from interlock.workspace.files.regular_file import read_regular_file

_BYTES_MAX = 64 * 1024 * 1024  # clients keep their history in their settings


class FileChangedMeanwhile(Exception):
    """Somebody else wrote the file since it was read. It was left alone."""


def content_of(path: Path) -> bytes | None:
    """Return the content of the file; None if there is none.

    Raises:
        OSError: it cannot be read, or is not a file.
    """
    try:
        return read_regular_file(path, _BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return None


def obstacle(path: Path) -> str:
    """Return why the file cannot be replaced or made, in words after its name; empty if it can."""
    target = os.path.realpath(path)
    try:
        status = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            return "is a link to nothing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    else:
        if not stat.S_ISREG(status.st_mode):
            return "is not a file"
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            return "is read-only"
    nearest = os.path.dirname(target)
    while not os.path.lexists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        return f"cannot be made: `{nearest}` is not a directory"
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"lies in `{nearest}`, a read-only one"


def missing_directories(path: Path) -> tuple[Path, ...]:
    """The directories that must be created before the file can be, outermost first."""
    missing: list[Path] = []
    for parent in Path(os.path.realpath(path)).parents:
        if parent.exists():
            break
        missing.append(parent)
    return tuple(reversed(missing))


def replace(path: Path, before: bytes | None, after: bytes, *, mode: int | None = None) -> None:
    """Put `after` in the place of `before`; a link stays, and its target is replaced.

    Without a `mode`, the file keeps its own.

    Raises:
        FileChangedMeanwhile: the file does not hold `before` any more.
        OSError: it cannot be written. It is as it was.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.interlock-{os.urandom(4).hex()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if before is not None:
                _copy_owner_and_mode(descriptor, target.stat())
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(after)
            file.flush()
            os.fsync(descriptor)
        _require_content(target, before)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def delete(path: Path, before: bytes) -> None:
    """Remove the file that holds `before`; of a link, its target.

    Raises:
        FileChangedMeanwhile: the file does not hold `before` any more.
        OSError: it cannot be removed.
    """
    target = Path(os.path.realpath(path))
    _require_content(target, before)
    target.unlink()


def _copy_owner_and_mode(descriptor: int, original: os.stat_result) -> None:
    """Copy the owner first: changing it clears some bits of the mode."""
    created = os.fstat(descriptor)
    if (created.st_uid, created.st_gid) != (original.st_uid, original.st_gid):
        os.fchown(descriptor, original.st_uid, original.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(original.st_mode))


def _require_content(target: Path, before: bytes | None) -> None:
    # A client may be running and writes its files whenever it likes. What it writes in the moment
    # between this check and the rename is lost; without the check it would be a second or two.
    if content_of(target) != before:
        raise FileChangedMeanwhile(str(target))


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
