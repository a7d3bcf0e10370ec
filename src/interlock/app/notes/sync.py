"""Bring the index of a notes folder up to what its files say now.

Whoever edits them, by hand, by git or through another process, is noticed here and nowhere else.
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
"""Notes in one transaction: many enough for speed, few enough that a writer waits a moment only."""

Progress = Callable[[int, int], None]
"""Told how many of how many files are done."""


class SyncReport(msgspec.Struct, frozen=True):
    changed: int
    """Notes that were read into the index."""
    removed: int
    pending: int
    """Files that are known to differ and were left for the next time."""
    unreadable: tuple[str, ...]
    """What could not be looked at; the index keeps what it knew of it."""
    skipped: tuple[str, ...] = ()
    """What is taken for no note: links, and names that no note may have."""


class _SyncEntry(msgspec.Struct, frozen=True):
    path: str
    note: Note | None
    """None if the index knows it already."""
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
    """Read what differs. The caller does not hold the lock: it is taken for a batch at a time.

    Args:
        folder: Where the files lie.
        index: What is known of them.
        lock: The folder's.
        now_ms: No later than now: a stamp that is hardly older is not relied on.
        deadline: When to stop, by `time.monotonic`; what is left is said, and the next call goes
            on with it.
        progress: Told after each batch.

    Raises:
        StoreFailure: the index can neither be read nor written.
    """
    if not index.is_current:
        index.reopen()
    scan = folder.scan()
    if scan.drafts:
        # What is left over can lie there; whoever is at work has a draft and the lock.
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
        known = self.index.indexed_files()
        tally = _Tally(scan)
        if scan.is_absent and not known:
            tally.unreadable.clear()  # a folder that was never made
        gone = [path for path in known if path not in scan.files]
        for batch in _batches([path for path in gone if not _is_below(path, scan.unreadable)]):
            # Before what is new, so that a note that was moved is never there twice.
            tally.removed += self._remove_vanished(batch)
        differing = [path for path, stamp in scan.files.items() if _differs(known.get(path), stamp)]
        done = 0
        for batch in _batches(differing):
            read = list(self._read_files(batch, scan.files, known, tally))
            self._index_entries([entry for entry in read if entry is not None], known, tally)
            done += len(read)
            if progress:
                progress(done, len(differing))
            if self._is_past_deadline():
                break
        tally.pending += len(differing) - done
        return SyncReport(
            tally.changed, tally.removed, tally.pending, tuple(tally.unreadable), scan.skipped
        )

    def _remove_vanished(self, paths: Sequence[str]) -> int:
        # Looked for once more: between the scan and now it may have come back.
        with self.lock.hold(self._lock_wait_seconds()), self.index.transaction():
            gone = [path for path in paths if self.folder.is_surely_missing(path)]
            self.index.remove(gone)
        return len(gone)

    def _read_files(
        self,
        paths: Sequence[str],
        stamps: Mapping[str, FileStamp],
        known: Mapping[str, IndexedFile],
        tally: _Tally,
    ) -> Iterator[_SyncEntry | None]:
        """Outside of the lock, which others need more; None if it is not there any more."""
        for path in paths:
            try:
                found = self.folder.read(path)
            except NoteTooLarge:
                yield _SyncEntry(
                    path, _unparsed_note(path), "", stamps[path], "It is larger than a note may be"
                )
            except FolderFailure:
                tally.unreadable.append(path)
                yield None
            else:
                if found is None or isinstance(found, InvalidNotePath):
                    yield None  # gone since the scan; the next one says so
                elif path in known and known[path].digest == found.digest:
                    yield _SyncEntry(path, None, found.digest, found.stamp)
                else:
                    note, problem = parse_note_text(path, found.text)
                    yield _SyncEntry(path, note, found.digest, found.stamp, problem)
            if self._is_past_deadline():
                return

    def _index_entries(
        self, entries: Sequence[_SyncEntry], known: Mapping[str, IndexedFile], tally: _Tally
    ) -> None:
        entries = [entry for entry in entries if self._differs_from_known(entry, known)]
        if not entries:
            return
        with self.lock.hold(self._lock_wait_seconds()), self.index.transaction():
            for entry in entries:
                # Whoever changed it while it was read has a newer row in the index, or will.
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

    def _differs_from_known(self, entry: _SyncEntry, known: Mapping[str, IndexedFile]) -> bool:
        """Not so if it was read again only because it is new, and it is new still."""
        before = known.get(entry.path)
        is_racy = entry.stamp.is_racy(self.now_ms)
        return before is None or before != IndexedFile(entry.stamp, entry.digest, is_racy)

    def _lock_wait_seconds(self) -> float:
        """How long others may keep us from writing."""
        if self.deadline is None:
            return WAIT_SECONDS_MAX
        return min(max(self.deadline - time.monotonic(), WAIT_SECONDS_MIN), WAIT_SECONDS_MAX)

    def _is_past_deadline(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


def _differs(known: IndexedFile | None, stamp: FileStamp) -> bool:
    return known is None or known.is_racy or known.stamp != stamp


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(not place or path == place or path.startswith(f"{place}/") for place in places)


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(paths), BATCH_SIZE):
        yield paths[first : first + BATCH_SIZE]


def parse_note_text(path: str, text: str) -> tuple[Note, str]:
    """What the file says, or its name and why that is all."""
    if "\0" in text:
        return _unparsed_note(path), "It is not text"
    try:
        return grammar.parse_note(text, path=path), ""
    except RecursionError:
        return _unparsed_note(path), "It is nested too deeply"


def _unparsed_note(path: str) -> Note:
    """A note of which nothing but the name of its file is known."""
    title = path.rpartition("/")[2].removesuffix(".md")
    return Note(Frontmatter("", {}), "", title, "note", (), "", (), (), ())
