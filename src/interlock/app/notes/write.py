"""Write a note: a new one, or over one whose version the caller has read.

A draft is planned first, then written, both under the lock of the folder. The plan cleans the title
and the metadata, refuses values that contradict each other, and chooses the path: in the folder
that the draft names; else, to overwrite or for a known type, that of the only note with the same
title; else, for a known type, the usual folder and number; else the top folder. If there is a file
at that path, its type, permalink and other values are kept where the draft sets none, and it is
overwritten only with `overwrite` and its current version. If there is none, a note with nearly the
same title is a refusal unless the draft is declared separate; a new note gets the time of creation
and the session it is written in. The composed text is checked for bad values before it is written.
"""

from collections.abc import Sequence

import msgspec

from interlock.app.callers.caller import Caller
from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import (
    BadNoteName,
    FrontmatterUnreadable,
    NoteChanged,
    NoteExists,
    SimilarNoteExists,
)
from interlock.app.notes.results import ChangeOutcome, NoteChangeResult
from interlock.app.notes.write_and_index import (
    calling_session,
    diff_of,
    record_written_note,
    refuse_on_disk_failure,
    shown_permalink,
    with_leading_blank_line,
    write_and_index,
)
from interlock.core.ids import SessionId
from interlock.core.notes import frontmatter_values
from interlock.core.notes.address import glob_of
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.fts_query import fts_expression, one_line
from interlock.core.notes.grammar import TYPE_DEFAULT, ComposedNote, compose_note, parse_note
from interlock.core.notes.markdown_blocks import newline_of
from interlock.core.notes.naming import canonical_title, file_name, permalink_of
from interlock.core.notes.note import Metadata, Note
from interlock.core.notes.note_types import (
    TYPES,
    number_of,
    plain_title,
    suggest_name,
    type_of_name,
)
from interlock.core.notes.versions import version_matches, version_of
from interlock.core.protocol.logbook import day_of
from interlock.core.refusal import Refusal
from interlock.core.session.state import timestamp
from interlock.store.failures import StoreFailure
from interlock.store.notes.rows import NoteFilter
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.sandboxed_path import InvalidNotePath

SIMILAR_TITLES_MAX = 1_000
NUMBERED_NOTES_MAX = 10_000
LATEST_RUNS_MAX = 20  # runs of a session that are searched for the open one


class NoteDraft(msgspec.Struct, frozen=True):
    title: str
    content: str
    folder: str | None = None
    """Relative to the notes folder; None if the type of the note decides it."""
    type: str = ""
    tags: tuple[str, ...] = ()
    metadata: Metadata = {}
    overwrite: bool = False
    version: str | None = None
    """The version of the note to overwrite, as the caller has read it."""
    is_separate: bool = False
    """Whether the caller knows the note with nearly this title, and means another one."""


class PlannedWrite(msgspec.Struct, frozen=True):
    """The outcome of a draft: this text at this path, replacing the existing file if any."""

    path: str
    note: ComposedNote
    result: ChangeOutcome
    existing_file: FileContent | None = None
    hints: tuple[str, ...] = ()


class _NotePlacement(msgspec.Struct, frozen=True):
    """The path and the title that a note gets, with hints about them for the caller."""

    path: str
    title: str
    hints: tuple[str, ...] = ()


@refuse_on_disk_failure
def write_draft(
    app: App,
    caller: Caller,
    notes: OpenedNotes,
    draft: NoteDraft,
    call: RequestKey | None = None,
) -> NoteChangeResult | Refusal:
    """Write the draft to the notes.

    If a note of this name exists already, nothing is written unless the caller asks for that and
    names the version it has read. Writing the same text again is no change.
    """
    notes.refresh(app, seconds_max=None)
    session = calling_session(app, caller)
    origin = _origin_metadata(app, session)
    with notes.lock.hold():
        if (earlier_result := repeated_calls.find_earlier_result(app, notes, call)) is not None:
            return earlier_result
        planned = plan_write(app, notes, draft, origin=origin)
        if not isinstance(planned, PlannedWrite):
            return planned
        result = write_and_index(
            app,
            notes,
            planned.path,
            planned.note.text,
            front=planned.note.front,
            existing_file=planned.existing_file,
            result=planned.result,
            call=call,
            hints=planned.hints,
        )
    record_written_note(app, session, result)
    return result


def plan_write(
    app: App,
    notes: OpenedNotes,
    draft: NoteDraft,
    *,
    origin: Metadata,
    reserved_paths: Sequence[str] = (),
) -> PlannedWrite | NoteChangeResult | Refusal:
    """Return what writing the draft would do now, without writing it.

    `reserved_paths` are paths that other drafts are about to take.
    """
    if not one_line(draft.title):
        return BadNoteName("", "its title has nothing in it that can be seen")
    draft = msgspec.structs.replace(
        draft,
        title=frontmatter_values.clean_title(draft.title),
        type=one_line(draft.type),
        metadata=frontmatter_values.normalise_values(draft.metadata),
    )
    values = {"type": draft.type or TYPE_DEFAULT, **draft.metadata}
    if bad_value := _contradiction(draft) or frontmatter_values.first_bad_value({}, values):
        return bad_value
    placement = _note_placement(app, notes, draft, reserved_paths)
    path, draft = placement.path, msgspec.structs.replace(draft, title=placement.title)
    existing_file = notes.folder.read(path)
    if isinstance(existing_file, InvalidNotePath):
        return BadNoteName(path, existing_file.reason)
    if existing_file is not None:
        return _plan_overwrite(path, existing_file, draft)
    if not draft.is_separate and (similar_note := _similar_note(notes, draft)):
        return similar_note
    default_metadata = {"created": timestamp(app.clock.now_ms()), **origin}
    note = _compose(draft, path, {**default_metadata, **draft.metadata})
    if isinstance(note, UnwritableFrontmatter):
        return FrontmatterUnreadable(path, note.problem)
    if bad_value := frontmatter_values.first_bad_value({}, note.front.values):
        return bad_value
    return PlannedWrite(path, note, "created", hints=placement.hints)


def _plan_overwrite(
    path: str, existing_file: FileContent, draft: NoteDraft
) -> PlannedWrite | NoteChangeResult | Refusal:
    existing_note = parse_note(existing_file.text, path=path)
    existing_front = existing_note.front
    if existing_front.problem:
        return FrontmatterUnreadable(path, existing_front.problem)
    version = version_of(existing_file.digest)
    # Values of the existing frontmatter that the draft does not set are kept.
    metadata = {**existing_front.values, **draft.metadata}
    note = _compose(draft, path, metadata, existing_note)
    if isinstance(note, UnwritableFrontmatter):
        return FrontmatterUnreadable(path, note.problem)
    if bad_value := frontmatter_values.first_bad_value(existing_front.values, note.front.values):
        return bad_value
    if note.text == existing_file.text:
        permalink = shown_permalink(existing_note.permalink, path)
        return NoteChangeResult("unchanged", path, permalink, version)
    if not draft.overwrite or draft.version is None:
        return NoteExists(path, version, diff_of(existing_file.text, note.text))
    if not version_matches(draft.version, existing_file.digest):
        return NoteChanged(path, version, diff_of(existing_file.text, note.text))
    return PlannedWrite(path, note, "replaced", existing_file)


def _compose(
    draft: NoteDraft, path: str, metadata: Metadata, existing_note: Note | None = None
) -> ComposedNote | UnwritableFrontmatter:
    return compose_note(
        title=draft.title,
        type=draft.type or (existing_note.type if existing_note else ""),
        content=with_leading_blank_line(_with_final_newline(draft.content)),
        tags=draft.tags or _tags_in(metadata),
        metadata=metadata,
        permalink=str(draft.metadata.get("permalink") or "")
        or (existing_note.permalink if existing_note else "")
        or permalink_of(path),
    )


def _with_final_newline(content: str) -> str:
    """Return the content with a newline at its end, like every file that people edit."""
    if not content or content.endswith(("\n", "\r")):
        return content
    return content + (newline_of(content) or "\n")


def _contradiction(draft: NoteDraft) -> BadValue | None:
    """Return a title or type in the metadata that differs from that of the draft itself."""
    for key, draft_value in (("title", draft.title), ("type", draft.type)):
        metadata_value = draft.metadata.get(key)
        if metadata_value is not None and metadata_value not in ("", draft_value):
            reason = f"the metadata names another {key} than the note has"
            return BadValue(key, reason, f"Say it as `{key}`, and leave it out of the metadata.")
    return None


def _tags_in(metadata: Metadata) -> tuple[str, ...]:
    tags = metadata.get("tags")
    return tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()


def _note_placement(
    app: App, notes: OpenedNotes, draft: NoteDraft, reserved_paths: Sequence[str]
) -> _NotePlacement:
    same_title_paths = [
        row.path for row in notes.index.find_by_name(draft.title) if row.title == draft.title
    ]
    if draft.overwrite and draft.folder is None and len(same_title_paths) == 1:
        return _NotePlacement(same_title_paths[0], draft.title)
    folder = (draft.folder or "").strip("/")
    name = file_name(draft.title)
    plain_path = f"{folder}/{name}" if folder else name
    note_type = TYPES.get(draft.type.casefold())
    if note_type is None:
        return _NotePlacement(plain_path, draft.title)
    rows = notes.index.find_by_glob(glob_of(f"*{note_type.prefix}-*"), limit=NUMBERED_NOTES_MAX)
    numbered_paths = (*(row.path for row in rows), *reserved_paths)
    usual = suggest_name(draft.type, draft.title, numbered_paths, day_of(app.clock.now_ms()))
    if draft.folder is not None:
        is_usual_name = type_of_name(name) == note_type
        hints = () if is_usual_name else (f"a {draft.type} is usually named like `{usual.path}`",)
        holder = _number_holder(plain_path, numbered_paths)
        clash = (f"{number_of(plain_path)} is {holder} already",) if holder else ()
        return _NotePlacement(plain_path, draft.title, (*hints, *clash))
    if len(same_title_paths) == 1:
        return _NotePlacement(same_title_paths[0], draft.title)
    wished, assigned = number_of(name), number_of(usual.path)
    if (
        wished is None
        or assigned is None
        or wished.prefix != assigned.prefix
        or str(wished) == str(assigned)
    ):
        return _NotePlacement(usual.path, draft.title)
    # If the title kept the number of another note, a search for that number would find this one.
    holder = _number_holder(f"{usual.path.rpartition('/')[0]}/{name}", numbered_paths)
    reason = f"{wished} is {holder} already" if holder else f"{wished} was not to be had"
    return _NotePlacement(usual.path, usual.title, (f"{reason}, so this one is {assigned}",))


def _number_holder(path: str, numbered_paths: Sequence[str]) -> str:
    """Return another note with the number that the path would have; empty if there is none."""
    number = number_of(path)
    holders = (
        numbered_path
        for numbered_path in numbered_paths
        if number and numbered_path != path and number_of(numbered_path) == number
    )
    return next(holders, "")


def _similar_note(notes: OpenedNotes, draft: NoteDraft) -> SimilarNoteExists | None:
    """Return a note whose title differs only in case, punctuation, spacing or type number."""
    title = canonical_title(draft.title)
    same_name_rows = notes.index.find_by_name(title)
    words = fts_expression(plain_title(draft.title))
    hits = (
        notes.index.search(f"title : ({words})", NoteFilter(), limit=SIMILAR_TITLES_MAX)
        if words
        else []
    )
    for row in (*same_name_rows, *(hit.row for hit in hits)):
        if canonical_title(row.title) == title:
            return SimilarNoteExists(row.title, row.path)
    return None


def _origin_metadata(app: App, session: SessionId | None) -> Metadata:
    """Return the session and the node in which the note is written, as far as they are known."""
    if session is None:
        return {}
    try:
        runs = app.reader.runs(session, latest=LATEST_RUNS_MAX)
    except StoreFailure:
        return {}
    tip = next((run.tip for run in reversed(runs) if run.status in ("open", "waiting")), None)
    return {"session": session, "node": tip} if tip else {"session": session}
