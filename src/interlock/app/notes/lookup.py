"""Which note is meant, or which notes."""

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
COMPARED_MAX = 2_000  # notes, each by a few names: a hint must not take long
COMPARED_CHARS_MAX = 100
SIMILARITY_MIN = 0.75  # of 1: two letters of seven may be in the wrong order


def find_note(
    notes: OpenedNotes, identifier: str
) -> NoteRow | NoSuchNote | SeveralNotes | BadNoteName:
    """The note that goes by this path, permalink, title or file name."""
    rows = find_matching_notes(notes, identifier, limit=SIMILAR_MAX + 1)
    if not isinstance(rows, list):
        return rows
    paths = tuple(row.path for row in rows)
    several = SeveralNotes(identifier, paths[:SIMILAR_MAX], has_more=len(paths) > SIMILAR_MAX)
    return rows[0] if len(rows) == 1 else several


def find_note_file(
    notes: OpenedNotes, identifier: str
) -> tuple[NoteRow, FileContent] | NoSuchNote | SeveralNotes | BadNoteName:
    """The note that goes by this name, and its file as it is now, whatever the index says of it."""
    row = find_note(notes, identifier)
    if not isinstance(row, NoteRow):
        return row
    found = notes.folder.read(row.path)
    if found is None:
        return NoSuchNote(identifier, ())
    if isinstance(found, InvalidNotePath):
        return BadNoteName(row.path, found.reason)
    return row, found


def find_matching_notes(
    notes: OpenedNotes, identifier: str, *, limit: int
) -> list[NoteRow] | NoSuchNote | BadNoteName:
    """All that go by this name, or that a pattern such as `specs/*` fits; at least one."""
    if row := notes.index.by_path(identifier):
        return [row]
    wanted = parse_address(identifier)
    if isinstance(wanted, InvalidNoteAddress):
        return BadNoteName(identifier, f"it {wanted.reason}")
    if row := notes.index.by_path(wanted.text):
        return [row]
    rows = notes.index.find_by_name(wanted.key)
    # One that has it for an address is meant before those that are merely called so.
    rows = [row for row in rows if wanted.text in (row.path, row.permalink)] or rows
    if not rows and wanted.glob:
        rows = notes.index.find_by_glob(wanted.glob, limit=limit)
    return rows[:limit] or NoSuchNote(identifier, _similar_paths(notes, wanted))


def _similar_paths(notes: OpenedNotes, requested_address: NoteAddress) -> tuple[str, ...]:
    """Notes that are called nearly so; then those that have some of the words."""
    words = fts_expression(requested_address.text.replace("/", " "), all_of=False)
    hits = notes.index.search(words, NoteFilter(), limit=SIMILAR_MAX) if words else []
    paths = dict.fromkeys(
        (*_paths_with_similar_names(notes, requested_address.key), *(hit.row.path for hit in hits))
    )
    return tuple(paths)[:SIMILAR_MAX]


def _paths_with_similar_names(notes: OpenedNotes, key: str) -> Iterator[str]:
    """The most alike first. Long names are cut: comparing takes time with the square of them."""
    named = defaultdict[str, list[str]](list)
    for title in notes.index.titles()[:COMPARED_MAX]:
        for name in keys_of(title.path, title=title.title, permalink=title.permalink):
            # A name with a folder is compared with such names only: half of them are enough.
            if ("/" in name) == ("/" in key):
                named[name[:COMPARED_CHARS_MAX]].append(title.path)
    alike = difflib.get_close_matches(
        key[:COMPARED_CHARS_MAX], named, n=SIMILAR_MAX, cutoff=SIMILARITY_MIN
    )
    return (path for name in alike for path in named[name])
