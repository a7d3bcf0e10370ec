"""Which note is meant, or which notes."""

from interlock.app.notes.opened import OpenedNotes
from interlock.app.notes.refusals import BadName, NoSuchNote, SeveralNotes
from interlock.core.notes.address import NoAddress, address
from interlock.core.notes.words import expression
from interlock.store.notes.rows import Filter, Row
from interlock.workspace.confined import Outside
from interlock.workspace.whole_file import Found

CLOSE_MAX = 5


def find(notes: OpenedNotes, asked: str) -> Row | NoSuchNote | SeveralNotes | BadName:
    """The note that goes by this path, permalink, title or file name."""
    if row := notes.index.by_path(asked):
        return row
    rows = find_all(notes, asked, limit=CLOSE_MAX + 1)
    if not isinstance(rows, list):
        return rows
    # One that has it for an address is meant before those that are merely called so.
    exact = [row for row in rows if asked in (row.path, row.permalink)] or rows
    paths = tuple(row.path for row in exact)
    several = SeveralNotes(asked, paths[:CLOSE_MAX], has_more=len(paths) > CLOSE_MAX)
    return exact[0] if len(exact) == 1 else several


def find_text(
    notes: OpenedNotes, asked: str
) -> tuple[Row, Found] | NoSuchNote | SeveralNotes | BadName:
    """The note that goes by this name, and its file as it is now, whatever the index says of it."""
    row = find(notes, asked)
    if not isinstance(row, Row):
        return row
    found = notes.folder.read(row.path)
    if found is None:
        return NoSuchNote(asked, ())
    if isinstance(found, Outside):
        return BadName(row.path, found.reason)
    return row, found


def find_all(notes: OpenedNotes, asked: str, *, limit: int) -> list[Row] | NoSuchNote | BadName:
    """All that go by this name, or that a pattern such as `specs/*` fits; at least one."""
    wanted = address(asked)
    if isinstance(wanted, NoAddress):
        return BadName(asked, f"it {wanted.reason}")
    if wanted.glob:
        rows = notes.index.like(wanted.glob, limit=limit)
    else:
        rows = notes.index.find(wanted.key)[:limit]
    return rows or NoSuchNote(asked, _close(notes, wanted.text))


def _close(notes: OpenedNotes, asked: str) -> tuple[str, ...]:
    """Notes that have some of the words, those first that have them in the title."""
    words = expression(asked.replace("/", " "), all_of=False)
    hits = notes.index.search(words, Filter(), limit=CLOSE_MAX) if words else []
    return tuple(hit.row.path for hit in hits)
