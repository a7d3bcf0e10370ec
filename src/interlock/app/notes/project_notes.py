"""The notes of a project, opened: its files, their index, and the lock around both."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from interlock.app.context import App
from interlock.app.gate.policy import is_policy_trusted
from interlock.app.notes.refusals import (
    FolderNotTrusted,
    FolderOutsideProject,
    NoProject,
    NotesConfigUnreadable,
)
from interlock.app.notes.sync import SyncReport, sync
from interlock.app.refusals import NoSuchDirectory
from interlock.core.notes.stamp import FileStamp
from interlock.store.failures import StoreFailure
from interlock.store.lock import WriteLock
from interlock.store.notes import projects
from interlock.store.notes.index import NoteIndex
from interlock.store.private import create_private_directory
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files.folder_watch import Watch
from interlock.workspace.git import state
from interlock.workspace.projects import project
from interlock.workspace.projects.notes_folder import NotesFolder
from interlock.workspace.projects.settings import notes_in

BUDGET_TOKENS_DEFAULT = 1_500
WATCHED_RESCAN_SECONDS = (
    30.0  # the kernel tells what is written here, but not what a disk elsewhere is told
)
UNWATCHED_RESCAN_SECONDS = (
    1.0  # where it does not tell: to look at 10,000 files takes a tenth of a second
)
QUICK_SYNC_SECONDS = 0.02  # what takes no longer than this is done at every use
SYNC_SECONDS_MAX = 2.0  # what takes longer to read goes on at the next call
INDEX_NAME_CHARS = 24
INDEX_DIRECTORY = "notes"
"""Where they lie in the data home."""
OPEN_NOTES_MAX = 32  # each holds a few files open, and a server may see hundreds of projects


class OpenedNotes:
    """What is asked here is answered from the index, which is brought up to date first."""

    def __init__(self, root: Path, folder: NotesFolder, home: Path) -> None:
        self.root = root
        """Of the project."""
        self.folder = folder
        self.budget = BUDGET_TOKENS_DEFAULT
        """Tokens of what an agent is told at the start."""
        place = home / INDEX_DIRECTORY
        create_private_directory(
            place, hint="Move away what is there; the index of notes goes into it."
        )
        name = hashlib.sha256(os.fsencode(os.path.realpath(folder.root))).hexdigest()[
            :INDEX_NAME_CHARS
        ]
        self.lock = WriteLock(place / f"{name}.lock")
        try:
            self.index = NoteIndex(place / f"{name}.db", self.lock)
        except StoreFailure:
            self.lock.close()
            raise
        projects.remember(place, root)
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
            valid = WATCHED_RESCAN_SECONDS if self._watch.is_quiet() else 0.0
        else:
            valid = (
                UNWATCHED_RESCAN_SECONDS if self._last_sync_seconds > QUICK_SYNC_SECONDS else 0.0
            )
        if now - self._last_sync_at < valid and not self.last_sync.pending:
            return self.last_sync
        self.mark_stale()  # until all of it was looked at
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
        """What was just done to this file is in the index, so nobody need look for it."""
        self._watch.acknowledge_own_writes((path,))
        # Somebody else may have written it in the same moment.
        if self.folder.stamp(path) != stamp:
            self.mark_stale()

    def discard_index(self) -> None:
        """Throw the index away; the files are read again at the next use."""
        self.index.renew()
        self.mark_stale()

    def mark_stale(self) -> None:
        """Look at the files again at the next use, however short a while ago that was."""
        self._last_sync_at = -WATCHED_RESCAN_SECONDS

    def close(self) -> None:
        self._watch.close()
        self.index.close()
        self.lock.close()


NotesLocationRefusal: TypeAlias = (
    NoProject | NotesConfigUnreadable | FolderOutsideProject | FolderNotTrusted | NoSuchDirectory
)


class NotesLocation(msgspec.Struct, frozen=True):
    """Where the notes of a project lie."""

    root: Path
    folder: Path
    budget: int
    """Tokens of what an agent is told at the start."""


def notes_location(home: Path, workspace: Path) -> NotesLocation | NotesLocationRefusal:
    if not os.path.isdir(workspace):
        return NoSuchDirectory(str(workspace))
    root = project_root(workspace)
    if root is None:
        return NoProject(str(workspace))
    try:
        asked, user = notes_in(root / project.CONFIG), notes_in(home / "config.toml")
    except SettingsBroken as broken:
        return NotesConfigUnreadable(str(broken))
    budget = user.budget or BUDGET_TOKENS_DEFAULT
    if asked.budget and (asked.budget < budget or _is_trusted(home, root)):
        budget = asked.budget
    # A project names only what lies in it: it came with a clone, and the disk is the user's.
    if chosen := _folder_chosen_by_user(user.folders, root):
        folder = os.path.expanduser(chosen)
        if not os.path.isabs(folder) or "\0" in folder:
            return NotesConfigUnreadable(
                f"[notes.folders] names `{chosen}`, which is no absolute path"
            )
        return NotesLocation(root, Path(folder), budget)
    named = asked.folder or str(project.NOTES_FOLDER)
    # Without links on the way, which a clone may bring along.
    here = os.path.realpath(root)
    place = os.path.normpath(os.path.join(here, named))
    is_inside = os.path.realpath(place) == place and Path(place).is_relative_to(here)
    if not is_inside:
        return FolderOutsideProject(named)
    if asked.folder and not _is_trusted(home, root):
        return FolderNotTrusted(asked.folder)
    return NotesLocation(root, root / named, budget)


def project_root(workspace: Path) -> Path | None:
    """Of the project around a directory."""
    return project.root_of(workspace) or state.root_of(workspace)


def _folder_chosen_by_user(folders: Mapping[str, str], root: Path) -> str:
    """What the user wrote for the project, however its directory is spelled there."""
    here = os.path.realpath(root)
    spelled = {os.path.realpath(os.path.expanduser(at)): folder for at, folder in folders.items()}
    return spelled.get(here, "")


def _is_trusted(home: Path, root: Path) -> bool:
    """Agents write notes in every mode, so where these lie is the user's to say."""
    try:
        return is_policy_trusted(home, root, project.policy_in(root))
    except SettingsBroken:
        return False


def open_notes(app: App, workspace: Path) -> OpenedNotes | NotesLocationRefusal:
    """The notes of the project around `workspace`; opened once in a process."""
    place = notes_location(app.home, workspace)
    if not isinstance(place, NotesLocation):
        return place
    opened = app.notes.pop(place.folder, None)
    if opened is None:
        while len(app.notes) >= OPEN_NOTES_MAX:
            app.notes.pop(next(iter(app.notes))).close()  # the one that was used longest ago
        opened = OpenedNotes(place.root, NotesFolder(place.folder), app.home)
    opened.budget = place.budget  # the settings may have changed since
    app.notes[place.folder] = opened
    return opened
