"""Reading one file in an open directory, replacing it whole, or creating it under a free name."""

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

BYTES_MAX = 4 * 1024 * 1024  # a larger file is no note, and would be read at every change
DRAFT_PREFIX, DRAFT_SUFFIX = ".interlock-", ".draft"
_INT_MAX = 2**63 - 1  # SQLite takes no more; inode numbers use all 64 bits on some file systems
# Without O_NONBLOCK a pipe would keep us waiting for ever.
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_HARD_LINK_ERRORS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class FileContent(msgspec.Struct, frozen=True):
    """A file as it was read."""

    text: str
    """Bytes that are not UTF-8 are lone surrogates, and are written as they were."""
    digest: str
    stamp: FileStamp


class WrittenFile(msgspec.Struct, frozen=True):
    digest: str
    stamp: FileStamp


class FileConflict(msgspec.Struct, frozen=True):
    """The file is not what the caller took it for. Nothing was changed."""

    current: FileContent | None
    """The file as it is now; None if there is none."""


def stamp_from(stat_result: os.stat_result) -> FileStamp:
    return FileStamp(
        stat_result.st_mtime_ns & _INT_MAX,
        stat_result.st_ctime_ns & _INT_MAX,
        stat_result.st_size,
        stat_result.st_ino & _INT_MAX,
    )


def encode_text(text: str, path: Path) -> bytes:
    """Return the content of a note with this text.

    Raises:
        NoteTooLarge: it would have more than `BYTES_MAX`.
        FolderFailure: it holds half of a character, which no byte of a file stands for.
    """
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


def read_file(directory_fd: int, name: str, path: Path) -> FileContent | None:
    """Return the file; None if there is none.

    The stamp is taken before the content: whatever is written meanwhile has another one.
    """
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=directory_fd)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FolderFailure(f"`{path}` is not a file", "Move away what is there.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(BYTES_MAX + 1)
    finally:
        os.close(descriptor)
    if len(content) > BYTES_MAX:
        raise _too_large(path, max(status.st_size, len(content)))
    text = content.decode("utf-8", "surrogateescape")
    return FileContent(text, hashlib.sha256(content).hexdigest(), stamp_from(status))


def replace_file(
    directory_fd: int, name: str, content: bytes, expected: str | None, path: Path
) -> WrittenFile | FileConflict:
    """Put `content` in place of the file with the digest `expected`, or where no file is (None)."""
    if (conflict := _find_conflict(directory_fd, name, expected, path)) is not None:
        return conflict
    replaced_stat = (
        None if expected is None else os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    )
    if replaced_stat is not None and not replaced_stat.st_mode & 0o222:
        raise FolderFailure(f"`{path}` is read-only", "Make it writable, then repeat the call.")
    with draft_file(directory_fd, content, replaced_stat) as (draft, descriptor):
        # Writing to the disk takes a while, in which an editor may have saved the file.
        if (conflict := _find_conflict(directory_fd, name, expected, path)) is not None:
            return conflict
        if expected is not None:
            os.rename(draft, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
        elif not rename_if_free(directory_fd, draft, directory_fd, name):
            return FileConflict(read_file(directory_fd, name, path))
        os.fsync(directory_fd)
        return WrittenFile(hashlib.sha256(content).hexdigest(), stamp_from(os.fstat(descriptor)))


def _find_conflict(
    directory_fd: int, name: str, expected: str | None, path: Path
) -> FileConflict | None:
    current = read_file(directory_fd, name, path)
    return FileConflict(current) if (current.digest if current else None) != expected else None


@contextmanager
def draft_file(
    directory_fd: int, content: bytes, replaced_stat: os.stat_result | None
) -> Generator[tuple[str, int]]:
    """Hold a synced file with the content, which is gone afterwards unless it was renamed."""
    draft = f"{DRAFT_PREFIX}{os.urandom(8).hex()}{DRAFT_SUFFIX}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666, dir_fd=directory_fd)
    try:
        with suppress(OSError):  # a disk without locks: its drafts are left to their owner
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if replaced_stat is not None:
            with suppress(PermissionError):  # a colleague's file in a folder of the group
                os.fchown(descriptor, replaced_stat.st_uid, replaced_stat.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(replaced_stat.st_mode))
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.fsync(descriptor)
        yield draft, descriptor
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=directory_fd)
        os.close(descriptor)


def rename_if_free(old_directory_fd: int, name: str, new_directory_fd: int, new_name: str) -> bool:
    """Rename, unless the new name is taken. A plain rename would replace the file that has it."""
    try:
        os.link(
            name,
            new_name,
            src_dir_fd=old_directory_fd,
            dst_dir_fd=new_directory_fd,
            follow_symlinks=False,
        )
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINK_ERRORS:
            raise
        # A disk without hard links. No process of ours takes the name now: the lock is held.
        os.rename(name, new_name, src_dir_fd=old_directory_fd, dst_dir_fd=new_directory_fd)
    else:
        os.unlink(name, dir_fd=old_directory_fd)
    return True
