"""Change a part of a note, or values in its frontmatter."""

import msgspec

from interlock.app.callers.caller import Caller
from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.lookup import find_note_file
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import (
    EmptyEdit,
    FrontmatterUnreadable,
    NoteChanged,
    UnexpectedEditArgument,
    VersionRequired,
)
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.write_and_index import (
    calling_session,
    diff_of,
    record_written_note,
    refuse_on_disk_failure,
    shown_permalink,
    write_and_index,
)
from interlock.core.notes import edits, frontmatter, frontmatter_values
from interlock.core.notes.edit_refusals import EditRefusal
from interlock.core.notes.edits import NoteEdit
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.note import Metadata
from interlock.core.notes.operations import ArgumentName, EditOperation, first_unused_argument
from interlock.core.notes.versions import version_matches, version_of
from interlock.core.refusal import Refusal


class EditRequest(msgspec.Struct, frozen=True):
    """An operation by its name, with all arguments of the call, whether it takes them or not."""

    operation: EditOperation | None
    content: str = ""
    section: str = ""
    find: str = ""
    expected: int = 1
    with_subsections: bool = False


class NoteChange(msgspec.Struct, frozen=True):
    edit: NoteEdit | None
    metadata: Metadata = {}
    """Values to set in the frontmatter; None removes a key."""
    version: str | None = None
    """The version that the caller has read. Required to replace a section."""


def resolve_edit(request: EditRequest) -> NoteEdit | UnexpectedEditArgument | None:
    """Return the edit that the request names, or None if it names no operation.

    An argument that the operation does not take is refused: the text would land elsewhere than its
    author says.
    """
    is_argument_given: dict[ArgumentName, bool] = {
        "content": bool(request.content),
        "section": bool(request.section),
        "find": bool(request.find),
        "expected": request.expected != 1,
        "subsections": request.with_subsections,
    }
    unused_argument = first_unused_argument(
        request.operation, {name for name, is_given in is_argument_given.items() if is_given}
    )
    if unused_argument is not None:
        return UnexpectedEditArgument(request.operation, unused_argument)
    match request.operation:
        case None:
            return None
        case "append":
            return edits.Append(request.content)
        case "prepend":
            return edits.Prepend(request.content)
        case "find_replace":
            return edits.FindReplace(request.find, request.content, request.expected)
        case "replace_section":
            return edits.ReplaceSection(request.section, request.content, request.with_subsections)
        case "insert_before_section":
            return edits.InsertBefore(request.section, request.content)
        case "insert_after_section":
            return edits.InsertAfter(request.section, request.content)


@refuse_on_disk_failure
def apply_note_edit(
    app: App,
    notes: OpenedNotes,
    identifier: str,
    change: NoteChange,
    call: RequestKey | None = None,
    *,
    caller: Caller,
) -> NoteChangeResult | Refusal:
    """Apply an edit to the note as it is now.

    Text can be added without a version; to replace a section, the caller must name the version it
    has read.
    """
    notes.refresh(app)
    with notes.lock.hold():
        if (earlier_result := repeated_calls.find_earlier_result(app, notes, call)) is not None:
            return earlier_result
        lookup = find_note_file(notes, identifier)
        if not isinstance(lookup, tuple):
            return lookup
        row, note_file = lookup
        version = version_of(note_file.digest)
        text = _edited_text(note_file.text, change)
        if isinstance(text, UnwritableFrontmatter):
            return FrontmatterUnreadable(row.path, text.problem)
        if not isinstance(text, str):
            return text
        if change.version and not version_matches(change.version, note_file.digest):
            return NoteChanged(row.path, version, diff_of(note_file.text, text))
        if not change.version and isinstance(change.edit, edits.ReplaceSection):
            return VersionRequired(row.path, version, "replace_section")
        if text == note_file.text:
            return NoteChangeResult(
                "unchanged", row.path, shown_permalink(row.permalink, row.path), version
            )
        result = write_and_index(
            app, notes, row.path, text, existing_file=note_file, result="changed", call=call
        )
    record_written_note(app, calling_session(app, caller), result)
    return result


def _edited_text(
    text: str, change: NoteChange
) -> str | EditRefusal | UnwritableFrontmatter | BadValue | EmptyEdit:
    if change.edit is None and not change.metadata:
        return EmptyEdit()
    if change.edit is not None:
        edited = edits.apply_edit(text, change.edit)
        if not isinstance(edited, str):
            return edited
        text = edited
    if not change.metadata:
        return text
    front, body = frontmatter.read(text)
    new_front = frontmatter.with_values(front, frontmatter_values.normalise_values(change.metadata))
    if isinstance(new_front, UnwritableFrontmatter):
        return new_front
    bad_value = frontmatter_values.first_bad_value(front.values, new_front.values)
    return bad_value or new_front.text + body
