"""Change a part of a note, or what its frontmatter says."""

import msgspec

from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.lookup import find_text
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import (
    FrontUnreadable,
    NoteChanged,
    NoteRefusal,
    NothingAsked,
    NotTaken,
    VersionWanted,
)
from interlock.app.notes.results import Done
from interlock.app.notes.write_and_index import diff_of, put, shown_permalink, told
from interlock.core.notes import edits, frontmatter, frontmatter_values
from interlock.core.notes.edits import EditRefusal, NoteEdit
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.note import Metadata
from interlock.core.notes.operations import ArgumentName, EditOperation, first_unused_argument
from interlock.core.notes.versions import version_matches, version_of


class AskedEdit(msgspec.Struct, frozen=True):
    """An operation by its name, with what came along, whether it takes that or not."""

    operation: EditOperation | None
    content: str = ""
    section: str = ""
    find: str = ""
    expected: int = 1
    with_subsections: bool = False


class Change(msgspec.Struct, frozen=True):
    edit: NoteEdit | None
    metadata: Metadata = {}
    """To set in the frontmatter; None removes a key."""
    version: str | None = None
    """As the caller has read it. What replaces a section must say it."""


def edit_of(asked: AskedEdit) -> NoteEdit | NotTaken | None:
    """What is not taken is refused: the text would land elsewhere than its author says."""
    given: dict[ArgumentName, bool] = {
        "content": bool(asked.content),
        "section": bool(asked.section),
        "find": bool(asked.find),
        "expected": asked.expected != 1,
        "subsections": asked.with_subsections,
    }
    stray = first_unused_argument(
        asked.operation, {name for name, is_given in given.items() if is_given}
    )
    if stray is not None:
        return NotTaken(asked.operation, stray)
    match asked.operation:
        case None:
            return None
        case "append":
            return edits.Append(asked.content)
        case "prepend":
            return edits.Prepend(asked.content)
        case "find_replace":
            return edits.FindReplace(asked.find, asked.content, asked.expected)
        case "replace_section":
            return edits.ReplaceSection(asked.section, asked.content, asked.with_subsections)
        case "insert_before_section":
            return edits.InsertBefore(asked.section, asked.content)
        case "insert_after_section":
            return edits.InsertAfter(asked.section, asked.content)


@told
def edit(
    app: App, notes: OpenedNotes, asked: str, change: Change, call: RequestKey | None = None
) -> Done | NoteRefusal:
    """What is added goes to the note as it is; what replaces text needs the text it has seen."""
    notes.refresh(app)
    with notes.lock.held():
        if (before := repeated_calls.repeated(app, notes, call)) is not None:
            return before
        meant = find_text(notes, asked)
        if not isinstance(meant, tuple):
            return meant
        row, found = meant
        version = version_of(found.digest)
        text = _changed(found.text, change)
        if isinstance(text, UnwritableFrontmatter):
            return FrontUnreadable(row.path, text.problem)
        if not isinstance(text, str):
            return text
        if change.version and not version_matches(change.version, found.digest):
            return NoteChanged(row.path, version, diff_of(found.text, text))
        if not change.version and isinstance(change.edit, edits.ReplaceSection):
            return VersionWanted(row.path, version, "replace_section")
        if text == found.text:
            return Done("unchanged", row.path, shown_permalink(row.permalink, row.path), version)
        return put(app, notes, row.path, text, found=found, result="changed", call=call)


def _changed(
    text: str, change: Change
) -> str | EditRefusal | UnwritableFrontmatter | BadValue | NothingAsked:
    if change.edit is None and not change.metadata:
        return NothingAsked()
    if change.edit is not None:
        edited = edits.apply_edit(text, change.edit)
        if not isinstance(edited, str):
            return edited
        text = edited
    if not change.metadata:
        return text
    before, body = frontmatter.read(text)
    after = frontmatter.with_values(before, frontmatter_values.normalise_values(change.metadata))
    if isinstance(after, UnwritableFrontmatter):
        return after
    return frontmatter_values.first_bad_value(before.values, after.values) or after.text + body
