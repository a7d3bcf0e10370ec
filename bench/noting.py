"""Notes: writing, reading, searching and being told of them, with few and with many."""

import random
from pathlib import Path

from bench.measure import Row
from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.notes.edit import NoteChange, apply_note_edit
from interlock.app.notes.inspect import read_note_text
from interlock.app.notes.knowledge import project_knowledge
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.search import NoteQuery, search
from interlock.app.notes.write import NoteDraft, write_draft
from interlock.core.notes import edits
from interlock.core.notes.budget import assemble_briefing

SIZES = (100, 10_000)
TIMES = 30
FOLDERS = 100
WORDS = 5_000


def noting(base: Path, raw: Row) -> list[Row]:
    """A note has 3 KB: frontmatter, prose, five observations, three relations."""
    rows: list[Row] = []
    for size in SIZES:
        chance = random.Random(size)
        words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(WORDS)]
        root = base / f"notes-{size}"
        _vault(root, size, chance, words)
        app = open_app(base / f"noting-{size}")
        notes = open_notes(app, root)
        assert isinstance(notes, OpenedNotes)
        rows += _measured(app, notes, size, words, raw)
        app.close()
    return rows


def _measured(app: App, notes: OpenedNotes, size: int, words: list[str], raw: Row) -> list[Row]:
    many = f"{size:,} notes"
    first = Row(f"first index of {many}")
    first.time(lambda: notes.refresh(app, seconds_max=None))
    looked = Row(f"look at the files of {many}")
    written = Row(f"write a note among {many}", against=raw)
    edited = Row(f"append to a note among {many}", against=raw)
    shown, told = Row(f"read one of {many}"), Row(f"what a session is told of {many}")
    found, common = Row(f"search {many}, two words"), Row(f"search {many}, a word in most")
    caller = local_caller(app, notes.root)
    for number in range(TIMES):
        draft = NoteDraft(
            f"Fresh {number} {words[number]}", "- [fact] new #x\n- relates_to [[Note 5]]"
        )
        change = NoteChange(edits.Append(f"line {number}"))
        pair = NoteQuery(f"{words[number + 900]} {words[number + 1_900]}")
        notes.refresh(app)
        written.time(lambda draft=draft: write_draft(app, caller, notes, draft))
        edited.time(
            lambda change=change: apply_note_edit(app, notes, "Note 7", change, caller=caller)
        )
        shown.time(lambda number=number: read_note_text(app, notes, f"Note {number}"))
        found.time(lambda pair=pair: search(app, notes, pair))
        common.time(lambda number=number: search(app, notes, NoteQuery(words[number])))
        told.time(lambda: _told(app, notes))
    for _ in range(5):
        notes.mark_stale()
        looked.time(lambda: notes.refresh(app))
    return [first, looked, written, edited, shown, found, common, told]


def _told(app: App, notes: OpenedNotes) -> None:
    parts = project_knowledge(app, notes, None)
    assert isinstance(parts, list)
    assemble_briefing(parts, budget=1_500)


def _vault(root: Path, size: int, chance: random.Random, words: list[str]) -> None:
    (root / ".git").mkdir(parents=True)
    for number in range(size):
        # The first words are in most notes, the last in hardly any.
        text = " ".join(words[int(WORDS * chance.random() ** 3)] for _ in range(400))
        said = "\n".join(
            f"- [fact] {chance.choice(words)} #{chance.choice(words)}" for _ in "12345"
        )
        linked = "\n".join(f"- relates_to [[Note {chance.randrange(size)}]]" for _ in "123")
        path = root / ".interlock" / "notes" / f"d{number % FOLDERS}" / f"n{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"---\ntitle: Note {number}\ntype: {chance.choice(('note', 'decision', 'task'))}\n"
            f"tags: [{chance.choice(words)}]\n---\n{text}\n\n{said}\n\n{linked}\n"
        )
