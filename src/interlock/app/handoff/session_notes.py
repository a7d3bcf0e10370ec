"""Where a session stands, as far as its notes say it: those that were written in it.

A hand-off file that was taken over is such notes, and the next hand-off says it again.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from interlock.app.context import App
from interlock.app.failures import StoreFailure
from interlock.app.notes.project_notes import NotesLocation, OpenedNotes, notes_location, open_notes
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
    """Nothing, where the notes cannot be used: a session can be handed over without them."""
    place = notes_location(app.home, workspace)
    try:
        # Nothing is opened for a project that has no notes: that would make an index.
        is_there = isinstance(place, NotesLocation) and os.path.isdir(place.folder)
        notes = open_notes(app, workspace) if is_there else None
        if not isinstance(notes, OpenedNotes):
            return _EMPTY_HANDOFF
        notes.refresh(app)
        rows = notes.index.find_by_frontmatter("session", session, limit=NOTES_MAX)
        work = list(_parse_notes(notes, [row for row in rows if _is_open_work(row, feature)]))
    except (StoreFailure, FolderFailure):
        return _EMPTY_HANDOFF
    said = [parse_handoff(note.body) for note in work]
    made = [row for row in rows if row.type.casefold() == "decision" and row.status != "closed"]
    return HandoffContent(
        feature="",
        progress=tuple(
            HandoffStep(one_line(step.text), step.is_done) for one in said for step in one.progress
        ),
        decisions=tuple(one_line(row.title) for row in sorted(made, key=lambda row: row.path)),
        blockers=tuple(text for note in work for text in _blockers(note)),
        next_steps=tuple(one_line(text) for one in said for text in one.next_steps),
        other=(),
    )


_EMPTY_HANDOFF = HandoffContent("", (), (), (), (), ())


def _is_open_work(row: NoteRow, feature: str) -> bool:
    """What the session is about, or what a hand-off file said, and not all that it wrote."""
    is_meant = row.title == feature or "source" in row.front
    return is_meant and row.type.casefold() in _WORK_TYPES and row.status not in ("done", "closed")


def _parse_notes(notes: OpenedNotes, rows: list[NoteRow]) -> Iterator[Note]:
    for row in rows:
        found = notes.folder.read(row.path)
        if isinstance(found, FileContent):
            yield parse_note(found.text, path=row.path)


def _blockers(note: Note) -> Iterator[str]:
    for one in note.observations:
        if one.category.casefold() == "blocker":
            text, context = one_line(one.text), one_line(one.context)
            yield f"{text} ({context})" if context else text
