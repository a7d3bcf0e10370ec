"""Read the text of a note by any of its names."""

from interlock.app.context import App
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.results import NoteText
from interlock.app.notes.search import shown_title
from interlock.app.notes.write_and_index import refuse_on_disk_failure, shown_permalink
from interlock.core.notes.fts_query import is_utf8, label
from interlock.core.notes.grammar import parse_note
from interlock.core.notes.versions import version_of
from interlock.core.refusal import Refusal

PAGE_CHARS = 40_000  # about ten thousand tokens: clients complain about more
LINKED_MAX = 20
HINT_NOT_UTF_8 = (
    "this file is not UTF-8: what is no character in it is shown as \ufffd. To append or insert"
    " leaves it as it is; text that you replace loses it"
)


@refuse_on_disk_failure
def read_note_text(
    app: App, notes: OpenedNotes, identifier: str, *, page: int | None = 1
) -> NoteText | Refusal:
    """Return a page of the file as it is on disk, whatever the index says; all of it for None."""
    notes.refresh(app)
    lookup = find_note_file(notes, identifier)
    if not isinstance(lookup, tuple):
        return lookup
    row, note_file = lookup
    note = parse_note(note_file.text, path=row.path)
    pages = pages_of(note_file.text) if page is not None else [note_file.text]
    page_number = min(max(page or 1, 1), len(pages))
    linking_paths = dict.fromkeys(
        link.path for link in notes.index.links_to(row.path, limit=LINKED_MAX)
    )
    return NoteText(
        row.path,
        shown_permalink(note.permalink, row.path),
        shown_title(note.title, row.path),
        label(note.type),
        version_of(note_file.digest),
        pages[page_number - 1],
        note_file.stamp.modified_ms,
        page_number,
        len(pages),
        tuple(path for path in linking_paths if path != row.path),
        () if is_utf8(note_file.text) else (HINT_NOT_UTF_8,),
    )


def pages_of(text: str) -> list[str]:
    """Cut the text into pages at the ends of lines, unless a line is longer than a page."""
    pages, start = list[str](), 0
    while len(text) - start > PAGE_CHARS:
        cut = text.rfind("\n", start, start + PAGE_CHARS) + 1
        end = cut if cut > start else start + PAGE_CHARS
        pages.append(text[start:end])
        start = end
    return [*pages, text[start:]]
