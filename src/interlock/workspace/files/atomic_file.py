"""One file in an open directory: read, replaced whole, or put where nothing is."""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from interlock.core.notes.stamp import FileStamp
from interlock.workspace.failures import FolderFailure, NoteTooLarge

BYTES_MAX = 4 * 1024 * 1024  # what is larger is no note, and would be read at every change
DRAFT, DRAFT_SUFFIX = ".interlock-", ".draft"
_INT_MAX = 2**63 - 1  # SQLite takes no more; inode numbers use all 64 bits on some file systems
# Without O_NONBLOCK a pipe would keep us waiting for ever.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Found(msgspec.Struct, frozen=True):
    """A file as it was read."""

    text: str
    """Bytes that are not UTF-8 are halves of characters, and are written as they were."""
    digest: str
    stamp: FileStamp


class Written(msgspec.Struct, frozen=True):
    digest: str
    stamp: FileStamp


class Moved(msgspec.Struct, frozen=True):
    """The file is not what the caller took it for. Nothing was changed."""

    current: Found | None
    """What is there now; nothing, if there is no file."""


def stamp(seen: os.stat_result) -> FileStamp:
    return FileStamp(
        seen.st_mtime_ns & _INT_MAX,
        seen.st_ctime_ns & _INT_MAX,
        seen.st_size,
        seen.st_ino & _INT_MAX,
    )


def encoded(text: str, path: Path) -> bytes:
    try:
        content = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise FolderFailure(
            f"`{path}` cannot be written: character {error.start} is half of one",
            "Send the text without it.",
        ) from error
    if len(content) > BYTES_MAX:
        raise _too_large(path, len(content))
    return content


def _too_large(path: Path, size: int) -> NoteTooLarge:
    return NoteTooLarge(
        f"`{path}` has {size} bytes; a note may have {BYTES_MAX}",
        "Split it, or keep it elsewhere and write a note about it.",
    )


def found_in(place: int, name: str, path: Path) -> Found | None:
    """What the file holds. Its stamp is from before: what is written meanwhile has another."""
    try:
        file = os.open(name, READ, dir_fd=place)
    except FileNotFoundError:
        return None
    try:
        seen = os.fstat(file)
        if not stat.S_ISREG(seen.st_mode):
            raise FolderFailure(f"`{path}` is not a file", "Move away what is there.")
        with os.fdopen(file, "rb", closefd=False) as opened:
            content = opened.read(BYTES_MAX + 1)
    finally:
        os.close(file)
    if len(content) > BYTES_MAX:
        raise _too_large(path, max(seen.st_size, len(content)))
    text = content.decode("utf-8", "surrogateescape")
    return Found(text, hashlib.sha256(content).hexdigest(), stamp(seen))


def replaced(
    place: int, name: str, content: bytes, expected: str | None, path: Path
) -> Written | Moved:
    if (moved := _moved(place, name, expected, path)) is not None:
        return moved
    like = None if expected is None else os.stat(name, dir_fd=place, follow_symlinks=False)
    if like is not None and not like.st_mode & 0o222:
        raise FolderFailure(f"`{path}` is read-only", "Make it writable, then repeat the call.")
    with drafted(place, content, like) as (draft, file):
        # Writing to the disk takes a while, in which an editor may have saved the file.
        if (moved := _moved(place, name, expected, path)) is not None:
            return moved
        if expected is not None:
            os.rename(draft, name, src_dir_fd=place, dst_dir_fd=place)
        elif not claimed(place, draft, place, name):
            return Moved(found_in(place, name, path))
        os.fsync(place)
        return Written(hashlib.sha256(content).hexdigest(), stamp(os.fstat(file)))


def _moved(place: int, name: str, expected: str | None, path: Path) -> Moved | None:
    found = found_in(place, name, path)
    return Moved(found) if (found.digest if found else None) != expected else None


@contextmanager
def drafted(place: int, content: bytes, like: os.stat_result | None) -> Generator[tuple[str, int]]:
    """A file with the content, on the disk, and gone afterwards unless it got another name."""
    draft = f"{DRAFT}{os.urandom(8).hex()}{DRAFT_SUFFIX}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(draft, flags, 0o666, dir_fd=place)
    try:
        with suppress(OSError):  # a disk without locks: its drafts are left to their owner
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if like is not None:
            with suppress(PermissionError):  # a colleague's file in a folder of the group
                os.fchown(file, like.st_uid, like.st_gid)
            os.fchmod(file, stat.S_IMODE(like.st_mode))
        with os.fdopen(os.dup(file), "wb") as opened:
            opened.write(content)
        os.fsync(file)
        yield draft, file
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=place)
        os.close(file)


def claimed(old: int, name: str, new: int, wanted: str) -> bool:
    """Rename, unless the wanted name is taken. A plain rename would replace what has it."""
    try:
        os.link(name, wanted, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A disk without hard links. Nobody of ours makes the name now: the lock is held.
        os.rename(name, wanted, src_dir_fd=old, dst_dir_fd=new)
    else:
        os.unlink(name, dir_fd=old)
    return True
