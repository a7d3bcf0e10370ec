"""The files of one notes folder: read, written whole or not at all, and never outside of it.

Interlock's processes do not disturb each other as long as each holds the folder's lock around a
change and the look before it; the lock lies in the data home, and the caller holds it, for as long
as the index is written as well. Editors and git know nothing of it. What they write in the moment
between the last look and the rename is lost; a new name is never taken from them.
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
    """A name that differs only in case from the one asked for: one file, on many disks."""

    path: str


class FolderScan(msgspec.Struct, frozen=True):
    """What lies in the folder, as far as it could be looked at."""

    files: dict[str, FileStamp]
    unreadable: tuple[str, ...] = ()
    """Directories and files about which nothing can be said, nor of what is below them; the folder
    itself is an empty string."""
    skipped: tuple[str, ...] = ()
    """Links, and names that no note may have."""
    drafts: tuple[str, ...] = ()
    """What writers leave that are at work, or were killed."""
    is_absent: bool = False
    """There is no folder."""


class NotesFolder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def locate(self, path: str) -> Path | InvalidNotePath:
        """Where the note lies, or would. The file is opened part by part all the same."""
        if fault := sandboxed_path.path_fault(path, suffix=SUFFIX):
            return InvalidNotePath(path, fault)
        if link := sandboxed_path.first_link(self.root, path.split("/")):
            return InvalidNotePath(path, f"`{link}` is a link")
        return self.root / path

    def skip_reason(self, path: str) -> str:
        """Why a scan has passed over it, whether it is a file or a directory."""
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
        """
        Raises:
            NoteTooLarge: it has more than `BYTES_MAX`.
            FolderFailure: it is there, but cannot be read.
        """
        if isinstance(located := self.locate(path), InvalidNotePath):
            return located
        with _raise_folder_failures(located, "read"), self._directory_or_none(path) as place:
            return (
                None if place is None else atomic_file.read_file(place, _file_name(path), located)
            )

    def write(
        self, path: str, text: str, *, expected: str | None
    ) -> WrittenFile | FileConflict | CaseCollision | InvalidNotePath:
        """Make the note, or put the text in the place of the one with the digest `expected`.

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
                ) as place:
                    return atomic_file.replace_file(place, _file_name(path), content, None, located)
            with self._directory_or_none(path) as place:
                if place is None:
                    return FileConflict(None)
                return atomic_file.replace_file(place, _file_name(path), content, expected, located)

    def move(
        self, path: str, to: str, *, expected: str
    ) -> WrittenFile | FileConflict | CaseCollision | InvalidNotePath:
        """Give the note another path; what has that path already is `Moved`.

        Raises:
            FolderFailure: it cannot be moved. It is where it was, or, if the machine fails at the
                wrong moment, at both places.
        """
        for asked in (path, to):
            if isinstance(located := self.locate(asked), InvalidNotePath):
                return located
        with (
            _raise_folder_failures(self.root / path, "moved"),
            self._directory_or_none(path) as old,
        ):
            found = old is not None and atomic_file.read_file(
                old, _file_name(path), self.root / path
            )
            if old is None or not found or found.digest != expected:
                return FileConflict(found or None)
            twin = self._case_variant(to)
            if twin and twin != path:
                return CaseCollision(twin)
            with sandboxed_path.opened_directory(
                self.root, _directory_parts(to), create_missing=True
            ) as new:
                if twin:  # only the case changes; on some disks that is one file already
                    os.rename(_file_name(path), _file_name(to), src_dir_fd=old, dst_dir_fd=new)
                elif not atomic_file.rename_if_free(old, _file_name(path), new, _file_name(to)):
                    return FileConflict(atomic_file.read_file(new, _file_name(to), self.root / to))
                os.fsync(new)
                os.fsync(old)
                seen = os.stat(_file_name(to), dir_fd=new, follow_symlinks=False)
        sandboxed_path.remove_empty_directories(self.root, _directory_parts(path))
        return WrittenFile(expected, atomic_file.stamp_from(seen))

    def delete(self, path: str, *, expected: str) -> DeletedFile | FileConflict | InvalidNotePath:
        """
        Raises:
            FolderFailure: it cannot be deleted.
        """
        if isinstance(located := self.locate(path), InvalidNotePath):
            return located
        with _raise_folder_failures(located, "deleted"), self._directory_or_none(path) as place:
            found = place is not None and atomic_file.read_file(place, _file_name(path), located)
            if place is None or not found or found.digest != expected:
                return FileConflict(found or None)
            os.unlink(_file_name(path), dir_fd=place)
            os.fsync(place)
        sandboxed_path.remove_empty_directories(self.root, _directory_parts(path))
        return DeletedFile(expected)

    def scan(self) -> FolderScan:
        """Every note's stamp. What cannot be looked at is said, and stops nothing else."""
        found = _ScanBuilder()
        waiting = [""]
        while waiting:
            place = waiting.pop()
            try:
                with (
                    sandboxed_path.opened_directory(
                        self.root, place.split("/") if place else ()
                    ) as opened,
                    os.scandir(opened) as entries,
                ):
                    for entry in entries:
                        if found.add_entry(entry, f"{place}/{entry.name}" if place else entry.name):
                            waiting.append(f"{place}/{entry.name}" if place else entry.name)
            except OSError as error:
                if not place and error.errno == errno.ENOENT:
                    return FolderScan({}, () if self._is_surely_absent() else ("",), is_absent=True)
                # A directory that has become something else meanwhile is no directory of notes.
                if not place or not sandboxed_path.is_not_found(error):
                    found.unreadable.append(place)
        return found.to_scan()

    def stamp(self, path: str) -> FileStamp | None:
        """How the note looks now; nothing, if there is none or nobody can tell."""
        with suppress(OSError), self._directory_or_none(path) as place:
            if place is not None:
                seen = os.stat(_file_name(path), dir_fd=place, follow_symlinks=False)
                return atomic_file.stamp_from(seen) if stat.S_ISREG(seen.st_mode) else None
        return None

    def is_surely_missing(self, path: str) -> bool:
        """Whether there is surely no such note: what cannot be looked at may well be there."""
        try:
            with sandboxed_path.opened_directory(self.root, _directory_parts(path)) as place:
                seen = os.stat(_file_name(path), dir_fd=place, follow_symlinks=False)
                # A disk that does not tell cases apart finds it under the name it had before.
                return not stat.S_ISREG(seen.st_mode) or _file_name(path) not in os.listdir(place)
        except OSError as error:
            if not sandboxed_path.is_not_found(error):
                return False
            return os.path.isdir(self.root) or self._is_surely_absent()

    def remove_dead_drafts(self, drafts: tuple[str, ...]) -> int:
        """Remove the drafts whose writers are dead, and say how many there were."""
        return sum(self._remove_dead_draft(path) for path in drafts)

    def _remove_dead_draft(self, path: str) -> bool:
        with (
            suppress(OSError),
            sandboxed_path.opened_directory(self.root, _directory_parts(path)) as place,
        ):
            file = os.open(_file_name(path), atomic_file.READ_FLAGS, dir_fd=place)
            try:
                # A writer holds it for as long as it lives, on whichever side of a container.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(_file_name(path), dir_fd=place)
            finally:
                os.close(file)
            return True
        return False

    def _is_surely_absent(self) -> bool:
        """Not so on a disk that is not mounted: there, what should hold the folder is missing."""
        try:
            os.scandir(self.root.parent).close()
        except OSError:
            return False
        return not os.path.lexists(self.root)

    @contextmanager
    def _directory_or_none(self, path: str) -> Generator[int | None]:
        """The directory of the note."""
        try:
            place = sandboxed_path.open_directory(self.root, _directory_parts(path))
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        try:
            yield place
        finally:
            os.close(place)

    def _case_variant(self, path: str) -> str:
        """What is there under the same name in another case, directories too; empty if nothing."""
        parts = path.split("/")
        for depth, part in enumerate(parts):
            try:
                with sandboxed_path.opened_directory(self.root, parts[:depth]) as place:
                    names = os.listdir(place)
            except (FileNotFoundError, NotADirectoryError):
                return ""
            if part not in names:
                wanted = _fold_case(part)
                twins = [name for name in names if _fold_case(name) == wanted]
                return "/".join([*parts[:depth], min(twins)]) if twins else ""
        return ""


class _ScanBuilder:
    """What a scan has found so far."""

    def __init__(self) -> None:
        self.files: dict[str, FileStamp] = {}
        self.unreadable: list[str] = []
        self.skipped: list[str] = []
        self.drafts: list[str] = []

    def add_entry(self, entry: os.DirEntry[str], path: str) -> bool:
        """Take the entry down; whether it is a directory to look into."""
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
            is_foul = bool(sandboxed_path.name_fault(name)) or not (
                is_directory or name.endswith(SUFFIX)
            )
            if is_foul or entry.is_symlink():
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
    """Failures of the disk, in words."""
    try:
        yield
    except OSError as error:
        raise FolderFailure(
            f"`{path}` cannot be {participle}: {error.strerror or error}",
            "Check that the folder exists, belongs to you and has room.",
        ) from error
