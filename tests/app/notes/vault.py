"""A notes folder with its index, as tests of notes need it."""

import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from interlock.app.notes.sync import SyncReport, sync
from interlock.core.notes.stamp import FileStamp
from interlock.store.lock import WriteLock
from interlock.store.notes.index import NoteIndex
from interlock.workspace.files.atomic_file import FileContent, WrittenFile
from interlock.workspace.projects.notes_folder import FolderScan, NotesFolder
from tests.store.notes.note_rows import dump
from tests.unprivileged import nobody


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Vault:
    """A folder with its index and its lock."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "notes"
        self.folder = NotesFolder(self.root)
        self.lock = WriteLock(base / "k.lock")
        self.index = NoteIndex(base / "k.db", self.lock)

    def sync(self, **options: Any) -> SyncReport:
        return sync(self.folder, self.index, self.lock, now_ms=now_ms(), **options)

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def rebuilt(self) -> dict[str, Any]:
        """What an index says that knows nothing but the files."""
        with tempfile.TemporaryDirectory() as directory:
            lock = WriteLock(Path(directory) / "k.lock")
            fresh = NoteIndex(Path(directory) / "k.db", lock)
            sync(self.folder, fresh, lock, now_ms=now_ms())
            contents = dump(fresh)
            fresh.close()
            lock.close()
        return contents

    def paths(self) -> set[str]:
        return set(self.index.indexed_files())

    def close(self) -> None:
        self.index.close()
        self.lock.close()


def _coarse(stamp: FileStamp) -> FileStamp:
    step = 2_000_000_000
    mtime_ns, ctime_ns = (ns // step * step for ns in (stamp.mtime_ns, stamp.ctime_ns))
    return msgspec.structs.replace(stamp, mtime_ns=mtime_ns, ctime_ns=ctime_ns)


class Coarse(NotesFolder):
    """The folder on a disk whose clock ticks every two seconds, as that of FAT does."""

    def scan(self) -> FolderScan:
        scan = super().scan()
        files = {path: _coarse(stamp) for path, stamp in scan.files.items()}
        return msgspec.structs.replace(scan, files=files)

    def read(self, path: str) -> Any:
        return self._seen(super().read(path))

    def write(self, path: str, text: str, *, expected: str | None) -> Any:
        return self._seen(super().write(path, text, expected=expected))

    def stamp(self, path: str) -> FileStamp | None:
        stamp = super().stamp(path)
        return stamp and _coarse(stamp)

    def _seen(self, outcome: Any) -> Any:
        if not isinstance(outcome, FileContent | WrittenFile):
            return outcome
        return msgspec.structs.replace(outcome, stamp=_coarse(outcome.stamp))


class Unprivileged(NotesFolder):
    """The folder as somebody sees it whom permissions bind."""

    def scan(self) -> FolderScan:
        with nobody():
            return super().scan()

    def read(self, path: str) -> Any:
        with nobody():
            return super().read(path)

    def is_surely_missing(self, path: str) -> bool:
        with nobody():
            return super().is_surely_missing(path)


class CoarseUnprivileged(Unprivileged, Coarse):
    """Both."""
