"""Look up notes by path, permalink, title, file name or pattern."""

import difflib
from collections import defaultdict
from collections.abc import Iterator

from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import BadNoteName, NoSuchNote, SeveralNotes
from interlock.core.notes.address import InvalidNoteAddress, NoteAddress, parse_address
from interlock.core.notes.fts_query import fts_expression
from interlock.core.notes.keys import keys_of
from interlock.store.notes.rows import NoteFilter, NoteRow
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.sandboxed_path import InvalidNotePath

SIMILAR_MAX = 5
COMPARED_MAX = 2_000  # notes, each by a few names: a suggestion must not take long
COMPARED_CHARS_MAX = 100
SIMILARITY_MIN = 0.75  # of 1: two letters of seven may be in the wrong order


def find_note(
    notes: OpenedNotes, identifier: str
) -> NoteRow | NoSuchNote | SeveralNotes | BadNoteName:
    """Return the only note with this path, permalink, title or file name."""
    rows = find_matching_notes(notes, identifier, limit=SIMILAR_MAX + 1)
    if not isinstance(rows, list):
        return rows
    paths = tuple(row.path for row in rows)
    several = SeveralNotes(identifier, paths[:SIMILAR_MAX], has_more=len(paths) > SIMILAR_MAX)
    return rows[0] if len(rows) == 1 else several


def find_note_file(
    notes: OpenedNotes, identifier: str
) -> tuple[NoteRow, FileContent] | NoSuchNote | SeveralNotes | BadNoteName:
    """Return the note with this name, and its file as it is now, whatever the index says of it."""
    row = find_note(notes, identifier)
    if not isinstance(row, NoteRow):
        return row
    note_file = notes.folder.read(row.path)
    if note_file is None:
        return NoSuchNote(identifier, ())
    if isinstance(note_file, InvalidNotePath):
        return BadNoteName(row.path, note_file.reason)
    return row, note_file


def find_matching_notes(
    notes: OpenedNotes, identifier: str, *, limit: int
) -> list[NoteRow] | NoSuchNote | BadNoteName:
    """Return all notes that have this name, or match a pattern such as `specs/*`; at least one."""
    if row := notes.index.by_path(identifier):
        return [row]
    address = parse_address(identifier)
    if isinstance(address, InvalidNoteAddress):
        return BadNoteName(identifier, f"it {address.reason}")
    if row := notes.index.by_path(address.text):
        return [row]
    rows = notes.index.find_by_name(address.key)
    # A note with this path or permalink takes precedence over notes that merely have the name.
    rows = [row for row in rows if address.text in (row.path, row.permalink)] or rows
    if not rows and address.glob:
        rows = notes.index.find_by_glob(address.glob, limit=limit)
    return rows[:limit] or NoSuchNote(identifier, _similar_paths(notes, address))


def _similar_paths(notes: OpenedNotes, address: NoteAddress) -> tuple[str, ...]:
    """Return notes with nearly this name first, then notes that contain some of its words."""
    words = fts_expression(address.text.replace("/", " "), all_of=False)
    hits = notes.index.search(words, NoteFilter(), limit=SIMILAR_MAX) if words else []
    paths = dict.fromkeys(
        (*_paths_with_similar_names(notes, address.key), *(hit.row.path for hit in hits))
    )
    return tuple(paths)[:SIMILAR_MAX]


def _paths_with_similar_names(notes: OpenedNotes, key: str) -> Iterator[str]:
    """Return the most similar first. Long names are cut: comparing takes quadratic time."""
    paths_by_name = defaultdict[str, list[str]](list)
    for title in notes.index.titles()[:COMPARED_MAX]:
        for name in keys_of(title.path, title=title.title, permalink=title.permalink):
            # Names with a folder are compared only with each other, which halves the work.
            if ("/" in name) == ("/" in key):
                paths_by_name[name[:COMPARED_CHARS_MAX]].append(title.path)
    similar_names = difflib.get_close_matches(
        key[:COMPARED_CHARS_MAX], paths_by_name, n=SIMILAR_MAX, cutoff=SIMILARITY_MIN
    )
    return (path for name in similar_names for path in paths_by_name[name])
