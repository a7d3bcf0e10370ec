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
DRAFT_PREFIX, DRAFT_SUFFIX = ".interlock-", ".draft"
_INT_MAX = 2**63 - 1  # SQLite takes no more; inode numbers use all 64 bits on some file systems
# Without O_NONBLOCK a pipe would keep us waiting for ever.
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_HARD_LINK_ERRORS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class FileContent(msgspec.Struct, frozen=True):
    """A file as it was read."""

    text: str
    """Bytes that are not UTF-8 are halves of characters, and are written as they were."""
    digest: str
    stamp: FileStamp


class WrittenFile(msgspec.Struct, frozen=True):
    digest: str
    stamp: FileStamp


class FileConflict(msgspec.Struct, frozen=True):
    """The file is not what the caller took it for. Nothing was changed."""

    current: FileContent | None
    """What is there now; nothing, if there is no file."""


def stamp_from(stat_result: os.stat_result) -> FileStamp:
    return FileStamp(
        stat_result.st_mtime_ns & _INT_MAX,
        stat_result.st_ctime_ns & _INT_MAX,
        stat_result.st_size,
        stat_result.st_ino & _INT_MAX,
    )


def encode_text(text: str, path: Path) -> bytes:
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
    """What the file holds. Its stamp is from before: what is written meanwhile has another."""
    try:
        file = os.open(name, READ_FLAGS, dir_fd=directory_fd)
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
    return FileContent(text, hashlib.sha256(content).hexdigest(), stamp_from(seen))


def replace_file(
    directory_fd: int, name: str, content: bytes, expected: str | None, path: Path
) -> WrittenFile | FileConflict:
    if (moved := _find_conflict(directory_fd, name, expected, path)) is not None:
        return moved
    like = None if expected is None else os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    if like is not None and not like.st_mode & 0o222:
        raise FolderFailure(f"`{path}` is read-only", "Make it writable, then repeat the call.")
    with draft_file(directory_fd, content, like) as (draft, file):
        # Writing to the disk takes a while, in which an editor may have saved the file.
        if (moved := _find_conflict(directory_fd, name, expected, path)) is not None:
            return moved
        if expected is not None:
            os.rename(draft, name, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
        elif not rename_if_free(directory_fd, draft, directory_fd, name):
            return FileConflict(read_file(directory_fd, name, path))
        os.fsync(directory_fd)
        return WrittenFile(hashlib.sha256(content).hexdigest(), stamp_from(os.fstat(file)))


def _find_conflict(
    directory_fd: int, name: str, expected: str | None, path: Path
) -> FileConflict | None:
    found = read_file(directory_fd, name, path)
    return FileConflict(found) if (found.digest if found else None) != expected else None


@contextmanager
def draft_file(
    directory_fd: int, content: bytes, replaced_stat: os.stat_result | None
) -> Generator[tuple[str, int]]:
    """A file with the content, on the disk, and gone afterwards unless it got another name."""
    draft = f"{DRAFT_PREFIX}{os.urandom(8).hex()}{DRAFT_SUFFIX}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(draft, flags, 0o666, dir_fd=directory_fd)
    try:
        with suppress(OSError):  # a disk without locks: its drafts are left to their owner
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if replaced_stat is not None:
            with suppress(PermissionError):  # a colleague's file in a folder of the group
                os.fchown(file, replaced_stat.st_uid, replaced_stat.st_gid)
            os.fchmod(file, stat.S_IMODE(replaced_stat.st_mode))
        with os.fdopen(os.dup(file), "wb") as opened:
            opened.write(content)
        os.fsync(file)
        yield draft, file
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=directory_fd)
        os.close(file)


def rename_if_free(old_directory_fd: int, name: str, new_directory_fd: int, new_name: str) -> bool:
    """Rename, unless the wanted name is taken. A plain rename would replace what has it."""
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
        # A disk without hard links. Nobody of ours makes the name now: the lock is held.
        os.rename(name, new_name, src_dir_fd=old_directory_fd, dst_dir_fd=new_directory_fd)
    else:
        os.unlink(name, dir_fd=old_directory_fd)
    return True
