"""The state of a session according to the notes that were written in it.

A migrated hand-off file has become such notes, so the next hand-off contains it again.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.core.handoff.parse import HandoffContent, HandoffStep, parse_handoff
from interlock.core.ids import SessionId
from interlock.core.notes.fts_query import one_line
from interlock.core.notes.grammar import parse_note
from interlock.core.notes.note import Note
from interlock.store.notes.rows import NoteRow
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent

NOTES_MAX = 100
_WORK_TYPES = ("feature", "task")


def handoff_from_notes(
    app: App, workspace: Path, session: SessionId, *, feature: str
) -> HandoffContent:
    """Return the part of the hand-off that the notes hold.

    Empty if the notes cannot be used: a session can be handed over without them.
    """
    location = notes_location(app.home, workspace)
    try:
        # Without a folder of notes nothing is opened: that would create an index.
        has_folder = isinstance(location, NotesLocation) and os.path.isdir(location.folder)
        notes = open_notes(app, workspace) if has_folder else None
        if not isinstance(notes, OpenedNotes):
            return _EMPTY_HANDOFF
        notes.refresh(app)
        rows = notes.index.find_by_frontmatter("session", session, limit=NOTES_MAX)
        work_rows = [row for row in rows if _is_open_work(row, feature)]
        work_notes = list(_parse_notes(notes, work_rows))
    except (StoreFailure, FolderFailure):
        return _EMPTY_HANDOFF
    parts = [parse_handoff(note.body) for note in work_notes]
    decisions = [
        row for row in rows if row.type.casefold() == "decision" and row.status != "closed"
    ]
    return HandoffContent(
        feature="",
        progress=tuple(
            HandoffStep(one_line(step.text), step.is_done)
            for part in parts
            for step in part.progress
        ),
        decisions=tuple(one_line(row.title) for row in sorted(decisions, key=lambda row: row.path)),
        blockers=tuple(text for note in work_notes for text in _blockers(note)),
        next_steps=tuple(one_line(text) for part in parts for text in part.next_steps),
        other=(),
    )


_EMPTY_HANDOFF = HandoffContent("", (), (), (), (), ())


def _is_open_work(row: NoteRow, feature: str) -> bool:
    """Whether it is open work that the session is about, or that a hand-off file contained."""
    is_relevant = row.title == feature or "source" in row.front
    return (
        is_relevant and row.type.casefold() in _WORK_TYPES and row.status not in ("done", "closed")
    )


def _parse_notes(notes: OpenedNotes, rows: list[NoteRow]) -> Iterator[Note]:
    for row in rows:
        note_file = notes.folder.read(row.path)
        if isinstance(note_file, FileContent):
            yield parse_note(note_file.text, path=row.path)


def _blockers(note: Note) -> Iterator[str]:
    for observation in note.observations:
        if observation.category.casefold() == "blocker":
            text, context = one_line(observation.text), one_line(observation.context)
            yield f"{text} ({context})" if context else text
