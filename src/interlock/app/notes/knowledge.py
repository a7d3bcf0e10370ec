"""What the notes of a project say to an agent that has just come to it, by typed questions."""

from collections.abc import Iterator

from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.search import shown_title
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.notes import frontmatter
from interlock.core.notes.budget import BriefingPart
from interlock.core.notes.fts_query import label
from interlock.core.protocol.logbook import day_of
from interlock.core.session.state import SessionState
from interlock.core.views.session_note import PUBLISHED_TYPES as PUBLISHED
from interlock.store.notes.rows import NoteFilter, NoteRow
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent

START_SECONDS_MAX = 1.0  # a client waits for its hook; what is not read by then is read later
MANDATORY_NOTES = ("usage-mandatory", "project-constraints")
"""Notes that every session is told, as far as there is room."""
LINE_CHARS_MAX = 240
PART_ITEMS_MAX = 8
OPEN_STATUSES = ("", "open", "active", "blocked")


@refuse_on_disk_failure
def project_knowledge(
    app: App, notes: OpenedNotes, state: SessionState | None
) -> list[BriefingPart] | NoteRefusal:
    """The most important first."""
    synced = notes.refresh(app, seconds_max=START_SECONDS_MAX)
    parts = [
        _constraints(notes),
        _active_work(notes, state),
        _blockers(notes),
        _newest_notes(notes, "Recent decisions", NoteFilter(types=("decision",))),
        _newest_notes(notes, "Recent notes", NoteFilter(not_types=(*PUBLISHED, "decision"))),
    ]
    if synced.pending:
        said = f"{synced.pending} files are not read yet; search_notes goes on with them."
        parts.append(BriefingPart("Notes", (said,)))
    return parts


def _constraints(notes: OpenedNotes) -> BriefingPart:
    named = dict.fromkeys(
        row.path for name in MANDATORY_NOTES for row in notes.index.find_by_name(name)
    )
    # Line by line, so that a long one is told as far as there is room.
    lines = [line for path in named for line in _note_lines(notes, path)]
    wanted = NoteFilter(types=("constraint",), statuses=OPEN_STATUSES)
    rows = notes.index.newest_notes(wanted, limit=PART_ITEMS_MAX)
    lines += [_title_line(row) for row in rows if row.path not in named]
    said, more = _observation_lines(notes, "constraint")
    more += notes.index.count_notes(wanted) - len(rows)
    return BriefingPart("Constraints", (*lines, *said), more)


def _active_work(notes: OpenedNotes, state: SessionState | None) -> BriefingPart:
    names = (state.active_feature, state.active_task) if state else ()
    named = [row for name in names if name for row in notes.index.find_by_name(name)[:1]]
    wanted = NoteFilter(types=("feature", "epic", "task"), statuses=("active",))
    rows = notes.index.newest_notes(wanted, limit=PART_ITEMS_MAX)
    shown = {row.path: _dated_line(row) for row in (*named, *rows)}
    return BriefingPart(
        "Active work", tuple(shown.values()), notes.index.count_notes(wanted) - len(rows)
    )


def _blockers(notes: OpenedNotes) -> BriefingPart:
    wanted = NoteFilter(statuses=("blocked",), not_types=PUBLISHED)
    rows = notes.index.newest_notes(wanted, limit=PART_ITEMS_MAX)
    said, more = _observation_lines(notes, "blocker")
    more += notes.index.count_notes(wanted) - len(rows)
    return BriefingPart("Blockers", (*map(_title_line, rows), *said), more)


def _newest_notes(notes: OpenedNotes, heading: str, note_filter: NoteFilter) -> BriefingPart:
    rows = notes.index.newest_notes(note_filter, limit=PART_ITEMS_MAX)
    items = tuple(_dated_line(row) for row in rows)
    return BriefingPart(heading, items, notes.index.count_notes(note_filter) - len(rows))


def _observation_lines(notes: OpenedNotes, category: str) -> tuple[list[str], int]:
    """Observations of this category in notes that are not done with, and how many more."""
    wanted = NoteFilter(statuses=OPEN_STATUSES, category=category)
    found = notes.index.observations(wanted, limit=PART_ITEMS_MAX)
    more = notes.index.count_observations(wanted) - len(found)
    return [f"{label(one.text, LINE_CHARS_MAX)} [{one.path}]" for one in found], more


def _dated_line(row: NoteRow) -> str:
    # The day and not the age: an item that reads otherwise is told again.
    return f"{_title_line(row)}, {day_of(row.modified_ms)}"


def _title_line(row: NoteRow) -> str:
    return f"{shown_title(row.title, row.path)} [{row.path}]"


def _note_lines(notes: OpenedNotes, path: str) -> Iterator[str]:
    try:
        found = notes.folder.read(path)
    except FolderFailure:
        return
    if isinstance(found, FileContent):
        body = frontmatter.body_of(found.text)
        lines = (label(line, LINE_CHARS_MAX) for line in body.splitlines())
        yield from (f"{line} [{path}]" for line in lines if line.strip("#-*> "))
