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
from interlock.app.notes.refusals import FolderNotTrusted, FolderOutside, NoProject, Unsettled
from interlock.app.notes.sync import Synced, sync
from interlock.app.refusals import NoSuchDirectory
from interlock.core.notes.stamp import FileStamp
from interlock.store.failures import StoreFailure
from interlock.store.lock import WriteLock
from interlock.store.notes import projects
from interlock.store.notes.index import NoteIndex
from interlock.store.private import make_directory
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files.folder_watch import Watch
from interlock.workspace.git import state
from interlock.workspace.projects import project
from interlock.workspace.projects.notes_folder import Folder
from interlock.workspace.projects.settings import notes_in

BUDGET = 1_500
LOOK_SECONDS = 30.0  # the kernel tells what is written here, but not what a disk elsewhere is told
FRESH_SECONDS = 1.0  # where it does not tell: to look at 10,000 files takes a tenth of a second
QUICK_SECONDS = 0.02  # what takes no longer than this is done at every use
CALL_SECONDS_MAX = 2.0  # what takes longer to read goes on at the next call
NAME_CHARS = 24
INDEXES = "notes"
"""Where they lie in the data home."""
OPENED_MAX = 32  # each holds a few files open, and a server may see hundreds of projects


class OpenedNotes:
    """What is asked here is answered from the index, which is brought up to date first."""

    def __init__(self, root: Path, folder: Folder, home: Path) -> None:
        self.root = root
        """Of the project."""
        self.folder = folder
        self.budget = BUDGET
        """Tokens of what an agent is told at the start."""
        place = home / INDEXES
        make_directory(place, hint="Move away what is there; the index of notes goes into it.")
        name = hashlib.sha256(os.fsencode(os.path.realpath(folder.root))).hexdigest()[:NAME_CHARS]
        self.lock = WriteLock(place / f"{name}.lock")
        try:
            self.index = NoteIndex(place / f"{name}.db", self.lock)
        except StoreFailure:
            self.lock.close()
            raise
        projects.remember(place, root)
        self.synced = Synced(0, 0, 0, ())
        self._watch = Watch(folder.root)
        self._looked = -LOOK_SECONDS
        self._took = 0.0

    def refresh(
        self,
        app: App,
        *,
        seconds_max: float | None = CALL_SECONDS_MAX,
        progress: Callable[[int, int], None] | None = None,
    ) -> Synced:
        """Bring the index up to date with the files, if any of them may have changed."""
        now = time.monotonic()
        if self._watch.can_tell:
            valid = LOOK_SECONDS if self._watch.is_quiet() else 0.0
        else:
            valid = FRESH_SECONDS if self._took > QUICK_SECONDS else 0.0
        if now - self._looked < valid and not self.synced.pending:
            return self.synced
        self.forget_the_time()  # until all of it was looked at
        self._watch.arm()
        deadline = None if seconds_max is None else now + seconds_max
        self.synced = sync(
            self.folder,
            self.index,
            self.lock,
            now_ms=app.clock.now_ms(),
            deadline=deadline,
            progress=progress,
        )
        self._looked, self._took = now, time.monotonic() - now
        return self.synced

    def overlook(self, path: str, stamp: FileStamp | None) -> None:
        """What was just done to this file is in the index, so nobody need look for it."""
        self._watch.overlook((path,))
        # Somebody else may have written it in the same moment.
        if self.folder.stamp(path) != stamp:
            self.forget_the_time()

    def renew(self) -> None:
        """Throw the index away; the files are read again at the next use."""
        self.index.renew()
        self.forget_the_time()

    def forget_the_time(self) -> None:
        """Look at the files again at the next use, however short a while ago that was."""
        self._looked = -LOOK_SECONDS

    def close(self) -> None:
        self._watch.close()
        self.index.close()
        self.lock.close()


NoPlace: TypeAlias = NoProject | Unsettled | FolderOutside | FolderNotTrusted | NoSuchDirectory


class Place(msgspec.Struct, frozen=True):
    """Where the notes of a project lie."""

    root: Path
    folder: Path
    budget: int
    """Tokens of what an agent is told at the start."""


def place_of(home: Path, workspace: Path) -> Place | NoPlace:
    if not os.path.isdir(workspace):
        return NoSuchDirectory(str(workspace))
    root = root_of(workspace)
    if root is None:
        return NoProject(str(workspace))
    try:
        asked, user = notes_in(root / project.CONFIG), notes_in(home / "config.toml")
    except SettingsBroken as broken:
        return Unsettled(str(broken))
    budget = user.budget or BUDGET
    if asked.budget and (asked.budget < budget or _is_trusted(home, root)):
        budget = asked.budget
    # A project names only what lies in it: it came with a clone, and the disk is the user's.
    if chosen := _chosen(user.folders, root):
        folder = os.path.expanduser(chosen)
        if not os.path.isabs(folder) or "\0" in folder:
            return Unsettled(f"[notes.folders] names `{chosen}`, which is no absolute path")
        return Place(root, Path(folder), budget)
    named = asked.folder or str(project.NOTES)
    # Without links on the way, which a clone may bring along.
    here = os.path.realpath(root)
    place = os.path.normpath(os.path.join(here, named))
    is_inside = os.path.realpath(place) == place and Path(place).is_relative_to(here)
    if not is_inside:
        return FolderOutside(named)
    if asked.folder and not _is_trusted(home, root):
        return FolderNotTrusted(asked.folder)
    return Place(root, root / named, budget)


def root_of(workspace: Path) -> Path | None:
    """Of the project around a directory."""
    return project.root_of(workspace) or state.root_of(workspace)


def _chosen(folders: Mapping[str, str], root: Path) -> str:
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


def open_notes(app: App, workspace: Path) -> OpenedNotes | NoPlace:
    """The notes of the project around `workspace`; opened once in a process."""
    place = place_of(app.home, workspace)
    if not isinstance(place, Place):
        return place
    opened = app.notes.pop(place.folder, None)
    if opened is None:
        while len(app.notes) >= OPENED_MAX:
            app.notes.pop(next(iter(app.notes))).close()  # the one that was used longest ago
        opened = OpenedNotes(place.root, Folder(place.folder), app.home)
    opened.budget = place.budget  # the settings may have changed since
    app.notes[place.folder] = opened
    return opened
