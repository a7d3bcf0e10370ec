"""Bring the index of a notes folder up to date with its files.

Edits made by hand, by git or by another process are noticed here and nowhere else. A scan lists the
files with their stamps. Notes whose files are missing are removed first, so that a moved note is
never indexed twice; nothing is removed below a directory that could not be scanned. Then files
whose stamp differs from the index, or was too fresh to be relied on, are read and parsed in
batches, without the lock. The lock is held only while a batch is stored, and each file is stored
only if its stamp still is the one it was read with; otherwise it stays pending. If the digest is
the same, only the stamp is updated. At the deadline the rest is left to the next call.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from interlock.core.notes import grammar
from interlock.core.notes.note import Frontmatter, Note
from interlock.core.notes.stamp import FileStamp
from interlock.store.failures import StoreBusy, StoreDamaged
from interlock.store.lock import WAIT_SECONDS_MAX, WriteLock
from interlock.store.notes.index import NoteIndex
from interlock.store.notes.rows import IndexedFile
from interlock.workspace.failures import FolderFailure, NoteTooLarge
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects.notes_folder import FolderScan, NotesFolder

WAIT_SECONDS_MIN = 0.2
BATCH_SIZE = 200
"""Notes in one transaction: enough for speed, few enough that a writer waits only a moment."""

Progress = Callable[[int, int], None]
"""Called with the number of files done and the number of all files to do."""


class SyncReport(msgspec.Struct, frozen=True):
    changed: int
    """The number of notes that were read into the index."""
    removed: int
    pending: int
    """The number of files that are known to differ and were left for the next time."""
    unreadable: tuple[str, ...]
    """Paths that could not be read; the index keeps what it has of them."""
    skipped: tuple[str, ...] = ()
    """Paths that are not treated as notes: links, and names that no note may have."""


class _SyncEntry(msgspec.Struct, frozen=True):
    path: str
    note: Note | None
    """None if the index has this text already."""
    digest: str
    stamp: FileStamp
    problem: str = ""


class _Tally:
    def __init__(self, scan: FolderScan) -> None:
        self.changed = self.removed = self.pending = 0
        self.unreadable = list(scan.unreadable)


def sync(
    folder: NotesFolder,
    index: NoteIndex,
    lock: WriteLock,
    *,
    now_ms: int,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> SyncReport:
    """Read the files that differ. The caller does not hold the lock: each batch takes it.

    Args:
        folder: The folder with the files.
        index: The index of the folder.
        lock: The lock of the folder.
        now_ms: No later than now: a stamp that is hardly older is not relied on.
        deadline: When to stop, by `time.monotonic`; the rest is reported as pending, and the next
            call continues with it.
        progress: Called after each batch.

    Raises:
        StoreFailure: the index can neither be read nor written.
    """
    if not index.is_current:
        index.reopen()
    scan = folder.scan()
    if scan.drafts:
        # Leftover drafts can wait: if the lock is taken, a draft may be one that is being written.
        with suppress(StoreBusy), lock.hold(0):
            folder.remove_dead_drafts(scan.drafts)
    try:
        return _Sync(folder, index, lock, now_ms, deadline).run(scan, progress)
    except StoreDamaged:
        index.renew()
        return _Sync(folder, index, lock, now_ms, deadline).run(scan, progress)


class _Sync:
    def __init__(
        self,
        folder: NotesFolder,
        index: NoteIndex,
        lock: WriteLock,
        now_ms: int,
        deadline: float | None,
    ) -> None:
        self.folder, self.index, self.lock = folder, index, lock
        self.now_ms, self.deadline = now_ms, deadline

    def run(self, scan: FolderScan, progress: Progress | None) -> SyncReport:
        indexed_files = self.index.indexed_files()
        tally = _Tally(scan)
        if scan.is_absent and not indexed_files:
            tally.unreadable.clear()  # a folder that was never created
        missing = [path for path in indexed_files if path not in scan.files]
        for batch in _batches([path for path in missing if not _is_below(path, scan.unreadable)]):
            # Before new files are added, so that a moved note is never in the index twice.
            tally.removed += self._remove_vanished(batch)
        differing = [
            path for path, stamp in scan.files.items() if _differs(indexed_files.get(path), stamp)
        ]
        done_count = 0
        for batch in _batches(differing):
            entries = list(self._read_files(batch, scan.files, indexed_files, tally))
            self._index_entries(
                [entry for entry in entries if entry is not None], indexed_files, tally
            )
            done_count += len(entries)
            if progress:
                progress(done_count, len(differing))
            if self._is_past_deadline():
                break
        tally.pending += len(differing) - done_count
        return SyncReport(
            tally.changed, tally.removed, tally.pending, tuple(tally.unreadable), scan.skipped
        )

    def _remove_vanished(self, paths: Sequence[str]) -> int:
        # Checked once more: a file may have come back since the scan.
        with self.lock.hold(self._lock_wait_seconds()), self.index.transaction():
            missing = [path for path in paths if self.folder.is_surely_missing(path)]
            self.index.remove(missing)
        return len(missing)

    def _read_files(
        self,
        paths: Sequence[str],
        stamps: Mapping[str, FileStamp],
        indexed_files: Mapping[str, IndexedFile],
        tally: _Tally,
    ) -> Iterator[_SyncEntry | None]:
        """Read files without the lock, which others need more.

        Yields None for a file that is gone or cannot be read; stops at the deadline.
        """
        for path in paths:
            try:
                note_file = self.folder.read(path)
            except NoteTooLarge:
                yield _SyncEntry(
                    path, _unparsed_note(path), "", stamps[path], "It is larger than a note may be"
                )
            except FolderFailure:
                tally.unreadable.append(path)
                yield None
            else:
                if note_file is None or isinstance(note_file, InvalidNotePath):
                    yield None  # gone since the scan; the next scan will show that
                elif path in indexed_files and indexed_files[path].digest == note_file.digest:
                    yield _SyncEntry(path, None, note_file.digest, note_file.stamp)
                else:
                    note, problem = parse_note_text(path, note_file.text)
                    yield _SyncEntry(path, note, note_file.digest, note_file.stamp, problem)
            if self._is_past_deadline():
                return

    def _index_entries(
        self, entries: Sequence[_SyncEntry], indexed_files: Mapping[str, IndexedFile], tally: _Tally
    ) -> None:
        entries = [entry for entry in entries if self._differs_from_index(entry, indexed_files)]
        if not entries:
            return
        with self.lock.hold(self._lock_wait_seconds()), self.index.transaction():
            for entry in entries:
                # If the file was changed since it was read, the index has or will get a newer row.
                if self.folder.stamp(entry.path) != entry.stamp or not self._index_entry(entry):
                    tally.pending += 1
                else:
                    tally.changed += entry.note is not None

    def _index_entry(self, entry: _SyncEntry) -> bool:
        is_racy = entry.stamp.is_racy(self.now_ms)
        if entry.note is None:
            return self.index.restamp(entry.path, entry.stamp, digest=entry.digest, is_racy=is_racy)
        self.index.put(
            entry.path,
            entry.note,
            digest=entry.digest,
            stamp=entry.stamp,
            is_racy=is_racy,
            problem=entry.problem,
        )
        return True

    def _differs_from_index(
        self, entry: _SyncEntry, indexed_files: Mapping[str, IndexedFile]
    ) -> bool:
        """False for a file that was read again only because its stamp was fresh, and still is."""
        indexed_file = indexed_files.get(entry.path)
        is_racy = entry.stamp.is_racy(self.now_ms)
        return indexed_file is None or indexed_file != IndexedFile(
            entry.stamp, entry.digest, is_racy
        )

    def _lock_wait_seconds(self) -> float:
        """Return how long to wait for the lock."""
        if self.deadline is None:
            return WAIT_SECONDS_MAX
        return min(max(self.deadline - time.monotonic(), WAIT_SECONDS_MIN), WAIT_SECONDS_MAX)

    def _is_past_deadline(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


def _differs(indexed_file: IndexedFile | None, stamp: FileStamp) -> bool:
    return indexed_file is None or indexed_file.is_racy or indexed_file.stamp != stamp


def _is_below(path: str, parents: Sequence[str]) -> bool:
    """Whether the path is one of `parents` or below it; an empty parent is the whole folder."""
    return any(not parent or path == parent or path.startswith(f"{parent}/") for parent in parents)


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(paths), BATCH_SIZE):
        yield paths[first : first + BATCH_SIZE]


def parse_note_text(path: str, text: str, front: Frontmatter | None = None) -> tuple[Note, str]:
    """Return the parsed note and an empty string, or a note with only its name and the reason."""
    if "\0" in text:
        return _unparsed_note(path), "It is not text"
    try:
        return grammar.parse_note(text, path=path, front=front), ""
    except RecursionError:
        return _unparsed_note(path), "It is nested too deeply"


def _unparsed_note(path: str) -> Note:
    """A note of which nothing but the name of its file is known."""
    title = path.rpartition("/")[2].removesuffix(".md")
    return Note(Frontmatter("", {}), "", title, "note", (), "", (), (), ())
