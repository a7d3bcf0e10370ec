"""Whether the notes of a project are still what somebody has seen."""

import hashlib
import time
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes, open_notes

STATE_CHARS = 16


class NotesPoll(msgspec.Struct, frozen=True):
    state: str
    """Another one whenever a page about the notes would say something else."""
    cpu_seconds: float
    """Seconds of the processor."""
    is_behind: bool
    """There was more to read than could be read at once."""


def notes_state(app: App, workspace: Path) -> str:
    """By what the index knows: cheap enough to be asked twice a second.

    What goes through Interlock is in the index at once, whichever process it was.
    """
    notes = open_notes(app, workspace)
    if isinstance(notes, OpenedNotes):
        seen = str(notes.folder.root), str(notes.index.change_mark()), *notes.last_sync.unreadable
    else:
        seen = type(notes).__name__, *map(str, msgspec.structs.astuple(notes))
    return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:STATE_CHARS]


def poll_files(app: App, workspace: Path) -> NotesPoll:
    """By what the files say: notices what was done by hand or by git."""
    started = time.thread_time()
    notes = open_notes(app, workspace)
    is_behind = isinstance(notes, OpenedNotes) and notes.refresh(app).pending > 0
    state = notes_state(app, workspace)
    return NotesPoll(state, time.thread_time() - started, is_behind)
