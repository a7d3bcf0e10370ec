"""Which note is meant, or which notes."""

import difflib
from collections import defaultdict
from collections.abc import Iterator

from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import BadName, NoSuchNote, SeveralNotes
from interlock.core.notes.address import InvalidNoteAddress, NoteAddress, parse_address
from interlock.core.notes.fts_query import fts_expression
from interlock.core.notes.keys import keys_of
from interlock.store.notes.rows import NoteFilter, NoteRow
from interlock.workspace.files.atomic_file import Found
from interlock.workspace.files.sandboxed_path import Outside

CLOSE_MAX = 5
COMPARED_MAX = 2_000  # notes, each by a few names: a hint must not take long
COMPARED_CHARS_MAX = 100
ALIKE_MIN = 0.75  # of 1: two letters of seven may be in the wrong order


def find(notes: OpenedNotes, asked: str) -> NoteRow | NoSuchNote | SeveralNotes | BadName:
    """The note that goes by this path, permalink, title or file name."""
    rows = find_all(notes, asked, limit=CLOSE_MAX + 1)
    if not isinstance(rows, list):
        return rows
    paths = tuple(row.path for row in rows)
    several = SeveralNotes(asked, paths[:CLOSE_MAX], has_more=len(paths) > CLOSE_MAX)
    return rows[0] if len(rows) == 1 else several


def find_text(
    notes: OpenedNotes, asked: str
) -> tuple[NoteRow, Found] | NoSuchNote | SeveralNotes | BadName:
    """The note that goes by this name, and its file as it is now, whatever the index says of it."""
    row = find(notes, asked)
    if not isinstance(row, NoteRow):
        return row
    found = notes.folder.read(row.path)
    if found is None:
        return NoSuchNote(asked, ())
    if isinstance(found, Outside):
        return BadName(row.path, found.reason)
    return row, found


def find_all(notes: OpenedNotes, asked: str, *, limit: int) -> list[NoteRow] | NoSuchNote | BadName:
    """All that go by this name, or that a pattern such as `specs/*` fits; at least one."""
    if row := notes.index.by_path(asked):
        return [row]
    wanted = parse_address(asked)
    if isinstance(wanted, InvalidNoteAddress):
        return BadName(asked, f"it {wanted.reason}")
    if row := notes.index.by_path(wanted.text):
        return [row]
    rows = notes.index.find_by_name(wanted.key)
    # One that has it for an address is meant before those that are merely called so.
    rows = [row for row in rows if wanted.text in (row.path, row.permalink)] or rows
    if not rows and wanted.glob:
        rows = notes.index.find_by_glob(wanted.glob, limit=limit)
    return rows[:limit] or NoSuchNote(asked, _close(notes, wanted))


def _close(notes: OpenedNotes, wanted: NoteAddress) -> tuple[str, ...]:
    """Notes that are called nearly so; then those that have some of the words."""
    words = fts_expression(wanted.text.replace("/", " "), all_of=False)
    hits = notes.index.search(words, NoteFilter(), limit=CLOSE_MAX) if words else []
    paths = dict.fromkeys((*_mistyped(notes, wanted.key), *(hit.row.path for hit in hits)))
    return tuple(paths)[:CLOSE_MAX]


def _mistyped(notes: OpenedNotes, key: str) -> Iterator[str]:
    """The most alike first. Long names are cut: comparing takes time with the square of them."""
    named = defaultdict[str, list[str]](list)
    for title in notes.index.titles()[:COMPARED_MAX]:
        for name in keys_of(title.path, title=title.title, permalink=title.permalink):
            # A name with a folder is compared with such names only: half of them are enough.
            if ("/" in name) == ("/" in key):
                named[name[:COMPARED_CHARS_MAX]].append(title.path)
    alike = difflib.get_close_matches(
        key[:COMPARED_CHARS_MAX], named, n=CLOSE_MAX, cutoff=ALIKE_MIN
    )
    return (path for name in alike for path in named[name])
