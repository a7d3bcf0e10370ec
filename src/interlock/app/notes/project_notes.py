"""Open the notes of a project: locate the folder, and hold its files, their index and the lock."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from interlock.app.context import App
from interlock.app.gate.notes_location import (
    BUDGET_TOKENS_DEFAULT,
    NotesLocation,
    NotesLocationRefusal,
    notes_location,
)
from interlock.app.notes.sync import SyncReport, sync
from interlock.core.notes.stamp import FileStamp
from interlock.store.failures import StoreFailure
from interlock.store.lock import WriteLock
from interlock.store.notes import projects
from interlock.store.notes.index import NoteIndex
from interlock.store.private import create_private_directory
from interlock.workspace.files.folder_watch import Watch
from interlock.workspace.projects.notes_folder import NotesFolder

WATCHED_RESCAN_SECONDS = 30.0
"""The kernel reports local writes, but not those that another machine makes to a shared disk."""
UNWATCHED_RESCAN_SECONDS = 1.0
"""For folders that the kernel does not watch: a scan of 10,000 files takes 0.1 seconds."""
QUICK_SYNC_SECONDS = 0.02  # a sync that takes no longer than this is done at every use
SYNC_SECONDS_MAX = 2.0  # a sync that takes longer is continued at the next call
INDEX_NAME_CHARS = 24
INDEX_DIRECTORY = "notes"
"""The directory of the indexes in the data home."""
OPEN_NOTES_MAX = 32  # each holds a few files open, and a server may serve hundreds of projects


class OpenedNotes:
    """The notes of one project. Queries go to the index; `refresh` brings it up to date first."""

    def __init__(self, root: Path, folder: NotesFolder, home: Path) -> None:
        self.root = root
        """The root directory of the project."""
        self.folder = folder
        self.budget = BUDGET_TOKENS_DEFAULT
        """Tokens of the briefing that an agent gets at the start."""
        directory = home / INDEX_DIRECTORY
        create_private_directory(
            directory, hint="Move away what is there; the index of notes goes into it."
        )
        name = hashlib.sha256(os.fsencode(os.path.realpath(folder.root))).hexdigest()[
            :INDEX_NAME_CHARS
        ]
        self.lock = WriteLock(directory / f"{name}.lock")
        try:
            self.index = NoteIndex(directory / f"{name}.db", self.lock)
        except StoreFailure:
            self.lock.close()
            raise
        projects.remember(directory, root)
        self.last_sync = SyncReport(0, 0, 0, ())
        self._watch = Watch(folder.root)
        self._last_sync_at = -WATCHED_RESCAN_SECONDS
        self._last_sync_seconds = 0.0

    def refresh(
        self,
        app: App,
        *,
        seconds_max: float | None = SYNC_SECONDS_MAX,
        progress: Callable[[int, int], None] | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files, if any of them may have changed."""
        now = time.monotonic()
        if self._watch.is_complete:
            valid_seconds = WATCHED_RESCAN_SECONDS if self._watch.is_quiet() else 0.0
        else:
            valid_seconds = (
                UNWATCHED_RESCAN_SECONDS if self._last_sync_seconds > QUICK_SYNC_SECONDS else 0.0
            )
        if now - self._last_sync_at < valid_seconds and not self.last_sync.pending:
            return self.last_sync
        self.mark_stale()  # stays so if the sync fails
        self._watch.arm()
        deadline = None if seconds_max is None else now + seconds_max
        self.last_sync = sync(
            self.folder,
            self.index,
            self.lock,
            now_ms=app.clock.now_ms(),
            deadline=deadline,
            progress=progress,
        )
        self._last_sync_at, self._last_sync_seconds = now, time.monotonic() - now
        return self.last_sync

    def acknowledge_own_write(self, path: str, stamp: FileStamp | None) -> None:
        """Tell the watch that the change just made to this file is already in the index."""
        self._watch.acknowledge_own_writes((path,))
        # Somebody else may have written the file in the same moment.
        if self.folder.stamp(path) != stamp:
            self.mark_stale()

    def discard_index(self) -> None:
        """Discard the index; all files are read again at the next use."""
        self.index.renew()
        self.mark_stale()

    def mark_stale(self) -> None:
        """Make the next `refresh` scan the files, however recent the last scan was."""
        self._last_sync_at = -WATCHED_RESCAN_SECONDS

    def close(self) -> None:
        self._watch.close()
        self.index.close()
        self.lock.close()


def open_notes(app: App, workspace: Path) -> OpenedNotes | NotesLocationRefusal:
    """Return the notes of the project around `workspace`; opened once in a process."""
    location = notes_location(app.home, workspace)
    if not isinstance(location, NotesLocation):
        return location
    notes = app.notes.pop(location.folder, None)
    if notes is None:
        while len(app.notes) >= OPEN_NOTES_MAX:
            app.notes.pop(next(iter(app.notes))).close()  # the least recently used
        notes = OpenedNotes(location.root, NotesFolder(location.folder), app.home)
    notes.budget = location.budget  # the settings may have changed since
    app.notes[location.folder] = notes
    return notes
