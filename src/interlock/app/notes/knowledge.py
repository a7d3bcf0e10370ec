"""What the notes of a project say to an agent that has just come to it, by typed questions."""

from collections.abc import Iterator

from interlock.app.context import App
from interlock.app.notes.opened import OpenedNotes
from interlock.core.notes import front
from interlock.core.notes.budget import Item, Part
from interlock.core.notes.words import one_line
from interlock.core.session.logbook import day_of
from interlock.core.session.state import SessionState
from interlock.store.notes.rows import Filter, Row
from interlock.workspace.failures import FolderFailure
from interlock.workspace.whole_file import Found

START_SECONDS_MAX = 1.0  # a client waits for its hook; what is not read by then is read later
MANDATORY = ("usage-mandatory", "project-constraints")
"""Notes that every session is told, as far as there is room."""
LINE_CHARS_MAX = 240
EACH_MAX = 8
OPEN = ("open", "active", "blocked")
OF_SESSIONS = ("session", "session-pointer")


def knowledge(app: App, notes: OpenedNotes, state: SessionState | None) -> Iterator[Part]:
    """The most important first."""
    synced = notes.refresh(app, seconds_max=START_SECONDS_MAX)
    yield Part("Constraints", tuple(_constraints(notes)))
    yield Part("Active work", tuple(_work(notes, state)))
    yield Part("Blockers", tuple(_blockers(notes)))
    decisions = notes.index.rows(Filter(types=("decision",)), limit=EACH_MAX)
    yield Part("Recent decisions", tuple(_item(row) for row in decisions))
    recent = notes.index.rows(Filter(), limit=EACH_MAX * 4)
    shown = [row for row in recent if row.type not in (*OF_SESSIONS, "decision")]
    yield Part("Recent notes", tuple(_item(row) for row in shown[:EACH_MAX]))
    if synced.pending:
        said = f"{synced.pending} files are not read yet; search_notes goes on with them."
        yield Part("Notes", (Item("pending", said),))


def _constraints(notes: OpenedNotes) -> Iterator[Item]:
    named = dict.fromkeys(row.path for name in MANDATORY for row in notes.index.find(name))
    for path in named:
        # Line by line, so that a long one is told as far as there is room.
        for line in _lines(notes, path):
            yield Item(path, line)
    for row in notes.index.rows(Filter(types=("constraint",), statuses=OPEN), limit=EACH_MAX):
        if row.path not in named:
            yield Item(row.path, f"{row.title} [{row.path}]")
    wanted = Filter(statuses=OPEN, category="constraint")
    for said in notes.index.observations(wanted, limit=EACH_MAX):
        if said.path not in named:
            yield Item(f"{said.path}:{said.text}", f"{_cut(said.text)} [{said.path}]")


def _work(notes: OpenedNotes, state: SessionState | None) -> Iterator[Item]:
    names = (state.active_feature, state.active_task) if state else ()
    named = [row for name in names if name for row in notes.index.find(name)[:1]]
    wanted = Filter(types=("feature", "epic", "task"), statuses=("active",))
    going_on = [row for row in notes.index.rows(wanted, limit=EACH_MAX) if row.front.get("status")]
    for row in {row.path: row for row in (*named, *going_on)}.values():
        yield _item(row)


def _blockers(notes: OpenedNotes) -> Iterator[Item]:
    for row in notes.index.rows(Filter(statuses=("blocked",)), limit=EACH_MAX):
        if row.type not in OF_SESSIONS:
            yield Item(row.path, f"{row.title} [{row.path}]")
    for category in ("blocker", "blocked"):
        wanted = Filter(statuses=OPEN, category=category)
        for said in notes.index.observations(wanted, limit=EACH_MAX):
            yield Item(f"{said.path}:{said.text}", f"{_cut(said.text)} [{said.path}]")


def _item(row: Row) -> Item:
    # The day and not the age: an item that reads otherwise is told again.
    return Item(row.path, f"{row.title} [{row.path}], {day_of(row.modified_ms)}")


def _lines(notes: OpenedNotes, path: str) -> Iterator[str]:
    try:
        found = notes.folder.read(path)
    except FolderFailure:
        return
    if isinstance(found, Found):
        body = front.read(found.text)[1]
        lines = (_cut(line) for line in body.splitlines())
        yield from (f"{line} [{path}]" for line in lines if line.strip("#-*> "))


def _cut(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}…"
