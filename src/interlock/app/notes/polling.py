"""Poll the notes of a project for changes since a page about them was rendered."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes, open_notes

STATE_CHARS = 16


class NotesPoll(msgspec.Struct, frozen=True):
    state: str
    """A digest that differs whenever a page about the notes would differ."""
    cpu_seconds: float
    """Processor time of the poll."""
    is_behind: bool
    """Whether there was more to read than could be read at once."""


def notes_state(app: App, workspace: Path) -> str:
    """Return the state according to the index: cheap enough to be asked for twice a second.

    Changes made through Interlock are in the index at once, whichever process made them.
    """
    notes = open_notes(app, workspace)
    if isinstance(notes, OpenedNotes):
        parts = str(notes.folder.root), str(notes.index.change_mark()), *notes.last_sync.unreadable
    else:
        parts = type(notes).__name__, *map(str, msgspec.structs.astuple(notes))
    return _digest(parts)


def combine_states(states: Sequence[str]) -> str:
    """Return the state of several projects together; of one it is its own."""
    return states[0] if len(states) == 1 else _digest(states)


def poll_files(app: App, workspace: Path) -> NotesPoll:
    """Return the state according to the files: notices changes made by hand or by git."""
    started = time.thread_time()
    notes = open_notes(app, workspace)
    is_behind = isinstance(notes, OpenedNotes) and notes.refresh(app).pending > 0
    state = notes_state(app, workspace)
    return NotesPoll(state, time.thread_time() - started, is_behind)


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:STATE_CHARS]
