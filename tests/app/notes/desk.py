"""A project with notes, and short ways to use them."""

from pathlib import Path
from typing import Any

from interlock.app.callers.caller import local_caller
from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes.edit import NoteChange, apply_note_edit
from interlock.app.notes.inspect import read_note_text
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.results import NoteChangeResult, NoteSearchResult, NoteText
from interlock.app.notes.search import NoteQuery, search
from interlock.app.notes.write import NoteDraft, write_draft
from interlock.core.notes.edits import NoteEdit
from interlock.core.refusal import Refusal


class Desk:
    def __init__(self, app: App, root: Path) -> None:
        self.app, self.root = app, root
        (root / ".git").mkdir(parents=True, exist_ok=True)
        self.folder = root / ".interlock" / "notes"

    @property
    def notes(self) -> OpenedNotes:
        found = open_notes(self.app, self.root)
        assert isinstance(found, OpenedNotes), found
        return found

    def file(self, path: str, text: str) -> Path:
        """Written by hand."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8", "surrogateescape"))
        return target

    def write(self, title: str, content: str, **more: Any) -> NoteChangeResult | Refusal:
        call: RequestKey | None = more.pop("call", None)
        caller = local_caller(self.app, self.root)
        return write_draft(self.app, caller, self.notes, NoteDraft(title, content, **more), call)

    def written(self, title: str, content: str, **more: Any) -> NoteChangeResult:
        done = self.write(title, content, **more)
        assert isinstance(done, NoteChangeResult), done
        return done

    def edit(
        self, name: str, change: NoteEdit | None, call: RequestKey | None = None, **more: Any
    ) -> Any:
        caller = local_caller(self.app, self.root)
        edited = NoteChange(change, **more)
        return apply_note_edit(self.app, self.notes, name, edited, call, caller=caller)

    def read(self, name: str) -> NoteText:
        found = read_note_text(self.app, self.notes, name)
        assert isinstance(found, NoteText), found
        return found

    def search(self, query: str, **more: Any) -> NoteSearchResult:
        found = search(self.app, self.notes, NoteQuery(query, **more))
        assert isinstance(found, NoteSearchResult)
        return found

    def found(self, query: str) -> list[str]:
        return [hit.note.path for hit in self.search(query).hits]
