"""Collect from the notes of a project the knowledge that an agent gets when it starts there."""

import re
from collections.abc import Container, Iterator

from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.search import shown_title
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.counting import pluralise
from interlock.core.notes import frontmatter
from interlock.core.notes.budget import BriefingPart
from interlock.core.notes.fts_query import label
from interlock.core.protocol.logbook import day_of
from interlock.core.refusal import Refusal
from interlock.core.session.start_evidence import BINDING_NOTES
from interlock.core.session.state import SessionState
from interlock.core.views.session_note import PUBLISHED_TYPES as PUBLISHED
from interlock.store.notes.rows import NoteFilter, NoteRow
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent

START_SECONDS_MAX = 1.0  # a client waits for its hook; files not read by then are read later
LINE_CHARS_MAX = 240
PART_ITEMS_MAX = 8
_ITEM_MARK = re.compile(r"^\s*[-*+] (?:\[constraint\] )?")
_WORD = re.compile(r"\w+")
OPEN_STATUSES = ("", "open", "active", "blocked")


@refuse_on_disk_failure
def project_knowledge(
    app: App, notes: OpenedNotes, state: SessionState | None
) -> list[BriefingPart] | Refusal:
    """Return the parts of the briefing, the most important first."""
    synced = notes.refresh(app, seconds_max=START_SECONDS_MAX)
    parts = [
        _constraints(notes),
        _active_work(notes, state),
        _blockers(notes),
        _newest_notes(notes, "Recent decisions", NoteFilter(types=("decision",))),
        _newest_notes(notes, "Recent notes", NoteFilter(not_types=(*PUBLISHED, "decision"))),
    ]
    if synced.pending:
        line = f"Not indexed yet: {pluralise(synced.pending, 'file')}. search_notes continues."
        parts.append(BriefingPart("Notes", (line,)))
    return parts


def _constraints(notes: OpenedNotes) -> BriefingPart:
    mandatory_paths = dict.fromkeys(
        row.path for name in BINDING_NOTES for row in notes.index.find_by_name(name)
    )
    # Line by line, so that as much of a long note is given as there is room for.
    lines = [line for path in mandatory_paths for line in _note_lines(notes, path)]
    open_constraints = NoteFilter(types=("constraint",), statuses=OPEN_STATUSES)
    rows = notes.index.newest_notes(open_constraints, limit=PART_ITEMS_MAX)
    # A constraint of a note that is given in full is among its lines already.
    observations, more = _observation_lines(notes, "constraint", given=mandatory_paths)
    titles = [_title_line(row) for row in rows if row.path not in mandatory_paths]
    more += notes.index.count_notes(open_constraints) - len(rows)
    # Several notes may say the same: the first of them speaks for all.
    told = {_words_of(line) for line in lines}
    for line in (*titles, *observations):
        if _words_of(line) not in told:
            told.add(_words_of(line))
            lines.append(line)
    return BriefingPart("Constraints", tuple(lines), more)


def _words_of(line: str) -> str:
    """Return the words of a line, without its note, its punctuation and its case."""
    return " ".join(_WORD.findall(line.rpartition(" [")[0])).casefold()


def _active_work(notes: OpenedNotes, state: SessionState | None) -> BriefingPart:
    names = (state.active_feature, state.active_task) if state else ()
    session_rows = [row for name in names if name for row in notes.index.find_by_name(name)[:1]]
    active_notes = NoteFilter(types=("feature", "epic", "task"), statuses=("active",))
    rows = notes.index.newest_notes(active_notes, limit=PART_ITEMS_MAX)
    lines = {row.path: _dated_line(row) for row in (*session_rows, *rows)}
    return BriefingPart(
        "Active work", tuple(lines.values()), notes.index.count_notes(active_notes) - len(rows)
    )


def _blockers(notes: OpenedNotes) -> BriefingPart:
    blocked_notes = NoteFilter(statuses=("blocked",), not_types=PUBLISHED)
    rows = notes.index.newest_notes(blocked_notes, limit=PART_ITEMS_MAX)
    observations, more = _observation_lines(notes, "blocker")
    more += notes.index.count_notes(blocked_notes) - len(rows)
    return BriefingPart("Blockers", (*map(_title_line, rows), *observations), more)


def _newest_notes(notes: OpenedNotes, heading: str, note_filter: NoteFilter) -> BriefingPart:
    rows = notes.index.newest_notes(note_filter, limit=PART_ITEMS_MAX)
    items = tuple(_dated_line(row) for row in rows)
    return BriefingPart(heading, items, notes.index.count_notes(note_filter) - len(rows))


def _observation_lines(
    notes: OpenedNotes, category: str, given: Container[str] = ()
) -> tuple[list[str], int]:
    """Return lines of the observations of this category in open notes, and the number of others.

    Those of the notes that are `given` are left out.
    """
    open_observations = NoteFilter(statuses=OPEN_STATUSES, category=category)
    rows = notes.index.observations(open_observations, limit=PART_ITEMS_MAX)
    more = notes.index.count_observations(open_observations) - len(rows)
    shown = [row for row in rows if row.path not in given]
    return [f"{label(row.text, LINE_CHARS_MAX)} [{row.path}]" for row in shown], more


def _dated_line(row: NoteRow) -> str:
    # The day and not the age: an item whose text differs is sent again.
    return f"{_title_line(row)}, {day_of(row.modified_ms)}"


def _title_line(row: NoteRow) -> str:
    return f"{shown_title(row.title, row.path)} [{row.path}]"


def _note_lines(notes: OpenedNotes, path: str) -> Iterator[str]:
    try:
        note_file = notes.folder.read(path)
    except FolderFailure:
        return
    if isinstance(note_file, FileContent):
        body = frontmatter.body_of(note_file.text)
        # The briefing makes each line an item of its own list.
        bare = (_ITEM_MARK.sub("", line) for line in body.splitlines())
        lines = (label(line, LINE_CHARS_MAX) for line in bare)
        yield from (f"{line} [{path}]" for line in lines if line.strip("#-*> "))
