"""The files of one notes folder: read, written whole or not at all, and never outside of it.

Interlock's processes do not disturb each other as long as each holds the folder's lock around a
change and the check before it; the lock is in the data home, and the caller holds it, until the
index is written as well. Editors and git know nothing of it. What they write in the moment between
the last check and the rename is lost; a new name is never taken from them.

Every path is checked first (`locate`), and its directory is then opened part by part without
following links, so that a link that appears in between leads nowhere. A change names the digest of
the text that it replaces (`expected`, None for a new note); if the file holds another text, nothing
is changed and the answer is a `FileConflict`. `scan` and `is_surely_missing` tell a note that is
gone from one that cannot be looked at: only the first may be forgotten.
"""

import errno
import fcntl
import os
import stat
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from interlock.core.notes.stamp import FileStamp
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files import atomic_file, sandboxed_path
from interlock.workspace.files.atomic_file import FileConflict, FileContent, WrittenFile
from interlock.workspace.files.sandboxed_path import InvalidNotePath

SUFFIX = ".md"


class DeletedFile(msgspec.Struct, frozen=True):
    digest: str


class CaseCollision(msgspec.Struct, frozen=True):
    """A name that differs only in case from the requested one: the same file on many disks."""

    path: str


class FolderScan(msgspec.Struct, frozen=True):
    """The content of the folder, as far as it could be read."""

    files: dict[str, FileStamp]
    unreadable: tuple[str, ...] = ()
    """Directories and files about which nothing is known, nor about what is below them; the folder
    itself is an empty string."""
    skipped: tuple[str, ...] = ()
    """Links, names that no note may have, and directories that are too deep."""
    drafts: tuple[str, ...] = ()
    """Unfinished files of writers that are at work, or were killed."""
    is_absent: bool = False
    """True if there is no folder."""


class NotesFolder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def locate(self, path: str) -> Path | InvalidNotePath:
        """Return where the note is, or would be. The file is opened part by part all the same."""
        if fault := sandboxed_path.path_fault(path, suffix=SUFFIX):
            return InvalidNotePath(path, fault)
        if link := sandboxed_path.first_link(self.root, path.split("/")):
            return InvalidNotePath(path, f"`{link}` is a link")
        return self.root / path

    def skip_reason(self, path: str) -> str:
        """Return why a scan has skipped it, whether it is a file or a directory."""
        parts = path.split("/")
        for fault in map(sandboxed_path.name_fault, parts):
            if fault:
                return fault
        if link := sandboxed_path.first_link(self.root, parts):
            return f"`{link}` is a link"
        if path.lower().endswith(SUFFIX) and not path.endswith(SUFFIX):
            return f"its name ends with `{path[-len(SUFFIX) :]}` and not with `{SUFFIX}`"
        return "it lies too deep"

    def read(self, path: str) -> FileContent | InvalidNotePath | None:
        """Return the note; None if there is none.

        Raises:
            NoteTooLarge: it has more than `BYTES_MAX`.
            FolderFailure: it exists, but cannot be read.
        """
        if isinstance(located := self.locate(path), InvalidNotePath):
            return located
        with _raise_folder_failures(located, "read"), self._directory_or_none(path) as parent_fd:
            return (
                None
                if parent_fd is None
                else atomic_file.read_file(parent_fd, _file_name(path), located)
            )

    def write(
        self, path: str, text: str, *, expected: str | None
    ) -> WrittenFile | FileConflict | CaseCollision | InvalidNotePath:
        """Create the note, or put the text in the place of the one with the digest `expected`.

        Raises:
            NoteTooLarge: it would have more than `BYTES_MAX`.
            FolderFailure: it cannot be written. It is as it was.
        """
        if isinstance(located := self.locate(path), InvalidNotePath):
            return located
        content = atomic_file.encode_text(text, located)
        with _raise_folder_failures(located, "written"):
            if expected is None:
                if twin := self._case_variant(path):
                    return CaseCollision(twin)
                with sandboxed_path.opened_directory(
                    self.root, _directory_parts(path), create_missing=True
                ) as parent_fd:
                    return atomic_file.replace_file(
                        parent_fd, _file_name(path), content, None, located
                    )
            with self._directory_or_none(path) as parent_fd:
                if parent_fd is None:
                    return FileConflict(None)
                return atomic_file.replace_file(
                    parent_fd, _file_name(path), content, expected, located
                )

    def move(
        self, path: str, to: str, *, expected: str
    ) -> WrittenFile | FileConflict | CaseCollision | InvalidNotePath:
        """Give the note another path. A file that has that path already is a `FileConflict`.

        Raises:
            FolderFailure: it cannot be moved. It is where it was, or, if the machine fails at the
                wrong moment, at both places.
        """
        for checked_path in (path, to):
            if isinstance(located := self.locate(checked_path), InvalidNotePath):
                return located
        with (
            _raise_folder_failures(self.root / path, "moved"),
            self._directory_or_none(path) as old_fd,
        ):
            current = old_fd is not None and atomic_file.read_file(
                old_fd, _file_name(path), self.root / path
            )
            if old_fd is None or not current or current.digest != expected:
                return FileConflict(current or None)
            twin = self._case_variant(to)
            if twin and twin != path:
                return CaseCollision(twin)
            with sandboxed_path.opened_directory(
                self.root, _directory_parts(to), create_missing=True
            ) as new_fd:
                if twin:  # only the case changes; on some disks that is one file already
                    os.rename(
                        _file_name(path), _file_name(to), src_dir_fd=old_fd, dst_dir_fd=new_fd
                    )
                elif not atomic_file.rename_if_free(
                    old_fd, _file_name(path), new_fd, _file_name(to)
                ):
                    return FileConflict(
                        atomic_file.read_file(new_fd, _file_name(to), self.root / to)
                    )
                os.fsync(new_fd)
                os.fsync(old_fd)
                status = os.stat(_file_name(to), dir_fd=new_fd, follow_symlinks=False)
        sandboxed_path.remove_empty_directories(self.root, _directory_parts(path))
        return WrittenFile(expected, atomic_file.stamp_from(status))

    def delete(self, path: str, *, expected: str) -> DeletedFile | FileConflict | InvalidNotePath:
        """Delete the note with the digest `expected`.

        Raises:
            FolderFailure: it cannot be deleted.
        """
        if isinstance(located := self.locate(path), InvalidNotePath):
            return located
        with (
            _raise_folder_failures(located, "deleted"),
            self._directory_or_none(path) as parent_fd,
        ):
            current = parent_fd is not None and atomic_file.read_file(
                parent_fd, _file_name(path), located
            )
            if parent_fd is None or not current or current.digest != expected:
                return FileConflict(current or None)
            os.unlink(_file_name(path), dir_fd=parent_fd)
            os.fsync(parent_fd)
        sandboxed_path.remove_empty_directories(self.root, _directory_parts(path))
        return DeletedFile(expected)

    def scan(self) -> FolderScan:
        """Return every note's stamp. What cannot be read is listed, and stops nothing else."""
        builder = _ScanBuilder()
        pending = [""]
        while pending:
            directory = pending.pop()
            try:
                with (
                    sandboxed_path.opened_directory(
                        self.root, directory.split("/") if directory else ()
                    ) as directory_fd,
                    os.scandir(directory_fd) as entries,
                ):
                    for entry in entries:
                        path = f"{directory}/{entry.name}" if directory else entry.name
                        if builder.add_entry(entry, path):
                            pending.append(path)
            except OSError as error:
                if not directory and error.errno == errno.ENOENT:
                    return FolderScan({}, () if self._is_surely_absent() else ("",), is_absent=True)
                # A directory that has become something else meanwhile holds no notes.
                if not directory or not sandboxed_path.is_not_found(error):
                    builder.unreadable.append(directory)
        return builder.to_scan()

    def stamp(self, path: str) -> FileStamp | None:
        """Return the note's stamp now; None if there is no note or nobody can tell."""
        with suppress(OSError), self._directory_or_none(path) as parent_fd:
            if parent_fd is not None:
                status = os.stat(_file_name(path), dir_fd=parent_fd, follow_symlinks=False)
                return atomic_file.stamp_from(status) if stat.S_ISREG(status.st_mode) else None
        return None

    def is_surely_missing(self, path: str) -> bool:
        """Whether there is surely no such note: one that cannot be looked at may well exist."""
        try:
            with sandboxed_path.opened_directory(self.root, _directory_parts(path)) as parent_fd:
                status = os.stat(_file_name(path), dir_fd=parent_fd, follow_symlinks=False)
                # A disk that ignores case finds it under the name it had before.
                is_file = stat.S_ISREG(status.st_mode)
                return not is_file or _file_name(path) not in os.listdir(parent_fd)
        except OSError as error:
            if not sandboxed_path.is_not_found(error):
                return False
            return os.path.isdir(self.root) or self._is_surely_absent()

    def remove_dead_drafts(self, drafts: tuple[str, ...]) -> int:
        """Remove the drafts whose writers are dead, and return how many there were."""
        return sum(self._remove_dead_draft(path) for path in drafts)

    def _remove_dead_draft(self, path: str) -> bool:
        with (
            suppress(OSError),
            sandboxed_path.opened_directory(self.root, _directory_parts(path)) as parent_fd,
        ):
            descriptor = os.open(_file_name(path), atomic_file.READ_FLAGS, dir_fd=parent_fd)
            try:
                # A writer holds the lock for as long as it lives, inside or outside a container.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(_file_name(path), dir_fd=parent_fd)
            finally:
                os.close(descriptor)
            return True
        return False

    def _is_surely_absent(self) -> bool:
        """Whether the folder is surely missing; unknown if its parent is (an unmounted disk)."""
        try:
            os.scandir(self.root.parent).close()
        except OSError:
            return False
        return not os.path.lexists(self.root)

    @contextmanager
    def _directory_or_none(self, path: str) -> Generator[int | None]:
        """Hold the directory of the note open; None if there is no such directory."""
        try:
            parent_fd = sandboxed_path.open_directory(self.root, _directory_parts(path))
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        try:
            yield parent_fd
        finally:
            os.close(parent_fd)

    def _case_variant(self, path: str) -> str:
        """Return what exists under this path in another case, directories too; empty if nothing."""
        parts = path.split("/")
        for depth, part in enumerate(parts):
            try:
                with sandboxed_path.opened_directory(self.root, parts[:depth]) as parent_fd:
                    names = os.listdir(parent_fd)
            except (FileNotFoundError, NotADirectoryError):
                return ""
            if part not in names:
                folded = _fold_case(part)
                twins = [name for name in names if _fold_case(name) == folded]
                return "/".join([*parts[:depth], min(twins)]) if twins else ""
        return ""


class _ScanBuilder:
    """The results of a scan so far."""

    def __init__(self) -> None:
        self.files: dict[str, FileStamp] = {}
        self.unreadable: list[str] = []
        self.skipped: list[str] = []
        self.drafts: list[str] = []

    def add_entry(self, entry: os.DirEntry[str], path: str) -> bool:
        """Record the entry. True if it is a directory to scan."""
        name = entry.name
        if name.startswith("."):
            if name.startswith(atomic_file.DRAFT_PREFIX) and name.endswith(
                atomic_file.DRAFT_SUFFIX
            ):
                self.drafts.append(path)
            return False
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not name.lower().endswith(SUFFIX):
                return False
            is_invalid = bool(sandboxed_path.name_fault(name)) or not (
                is_directory or name.endswith(SUFFIX)
            )
            if is_invalid or entry.is_symlink():
                self.skipped.append(path)
            elif is_directory:
                if path.count("/") < sandboxed_path.PARTS_MAX - 2:
                    return True
                self.skipped.append(path)
            elif entry.is_file(follow_symlinks=False):
                self.files[path] = atomic_file.stamp_from(entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            pass  # gone since it was listed
        except OSError:
            self.unreadable.append(path)
        return False

    def to_scan(self) -> FolderScan:
        return FolderScan(
            self.files,
            unreadable=tuple(sorted(self.unreadable)),
            skipped=tuple(sorted(self.skipped)),
            drafts=tuple(sorted(self.drafts)),
        )


def _directory_parts(path: str) -> list[str]:
    return path.split("/")[:-1]


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _fold_case(name: str) -> str:
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


@contextmanager
def _raise_folder_failures(path: Path, participle: str) -> Generator[None]:
    """Raise failures of the disk as `FolderFailure`."""
    try:
        yield
    except OSError as error:
        raise FolderFailure(
            f"`{path}` cannot be {participle}: {error.strerror or error}",
            "Check that the folder exists, belongs to you and has room.",
        ) from error
