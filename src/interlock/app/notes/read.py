"""Read a note, by any of its names."""

from interlock.app.context import App
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.results import NoteText
from interlock.app.notes.search import shown_title
from interlock.app.notes.write_and_index import refuse_on_disk_failure, shown_permalink
from interlock.core.notes.fts_query import is_utf8, label
from interlock.core.notes.grammar import parse_note
from interlock.core.notes.versions import version_of

PAGE_CHARS = 40_000  # about ten thousand tokens: clients complain about more
LINKED_MAX = 20
HINT_NOT_UTF_8 = (
    "this file is not UTF-8: what is no character in it is shown as \ufffd. To append or insert"
    " leaves it as it is; text that you replace loses it"
)


@refuse_on_disk_failure
def read_note_text(
    app: App, notes: OpenedNotes, identifier: str, *, page: int | None = 1
) -> NoteText | NoteRefusal:
    """The file as it is on the disk, whatever the index says of it: a page of it, or the whole."""
    notes.refresh(app)
    meant = find_note_file(notes, identifier)
    if not isinstance(meant, tuple):
        return meant
    row, found = meant
    note = parse_note(found.text, path=row.path)
    pages = pages_of(found.text) if page is not None else [found.text]
    chosen = min(max(page or 1, 1), len(pages))
    linked = dict.fromkeys(link.path for link in notes.index.links_to(row.path, limit=LINKED_MAX))
    return NoteText(
        row.path,
        shown_permalink(note.permalink, row.path),
        shown_title(note.title, row.path),
        label(note.type),
        version_of(found.digest),
        pages[chosen - 1],
        found.stamp.modified_ms,
        chosen,
        len(pages),
        tuple(path for path in linked if path != row.path),
        () if is_utf8(found.text) else (HINT_NOT_UTF_8,),
    )


def pages_of(text: str) -> list[str]:
    """Cut at the ends of lines, as far as the lines are not longer than a page."""
    pages, start = list[str](), 0
    while len(text) - start > PAGE_CHARS:
        cut = text.rfind("\n", start, start + PAGE_CHARS) + 1
        end = cut if cut > start else start + PAGE_CHARS
        pages.append(text[start:end])
        start = end
    return [*pages, text[start:]]
