"""Write a note: a new one, or over one that the caller has seen."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from interlock.app.callers.caller import CallerClues, resolve_caller
from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import (
    BadNoteName,
    FrontmatterUnreadable,
    NoteChanged,
    NoteExists,
    NoteRefusal,
    SimilarNoteExists,
)
from interlock.app.notes.results import ChangeOutcome, NoteChangeResult
from interlock.app.notes.write_and_index import (
    diff_of,
    refuse_on_disk_failure,
    shown_permalink,
    with_leading_blank_line,
    write_and_index,
)
from interlock.core.notes import frontmatter, frontmatter_values
from interlock.core.notes.address import glob_of
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.fts_query import fts_expression, one_line
from interlock.core.notes.grammar import TYPE_DEFAULT, compose_note, parse_note
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
from interlock.core.session.state import timestamp
from interlock.store.failures import StoreFailure
from interlock.store.notes.rows import NoteFilter
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.sandboxed_path import InvalidNotePath

SIMILAR_TITLES_MAX = 1_000
NUMBERED_NOTES_MAX = 10_000


class NoteDraft(msgspec.Struct, frozen=True):
    title: str
    content: str
    folder: str | None = None
    """From the notes folder on; None where the type of the note says it."""
    type: str = ""
    tags: tuple[str, ...] = ()
    metadata: Metadata = {}
    overwrite: bool = False
    version: str | None = None
    """Of the note that is written over, as the caller has read it."""
    is_separate: bool = False
    """The caller knows of the note with nearly this title, and means another."""


class PlannedWrite(msgspec.Struct, frozen=True):
    """What a draft comes to: this text at this path, in the place of what was found there."""

    path: str
    text: str
    result: ChangeOutcome
    existing_file: FileContent | None = None
    hints: tuple[str, ...] = ()


class _NotePlacement(msgspec.Struct, frozen=True):
    """Where the note goes and what it is called there, and what is to be said about that."""

    path: str
    title: str
    hints: tuple[str, ...] = ()


@refuse_on_disk_failure
def write_draft(
    app: App, notes: OpenedNotes, draft: NoteDraft, workspace: Path, call: RequestKey | None = None
) -> NoteChangeResult | NoteRefusal:
    """
    Where a note of this name is there already, nothing is written unless the caller says so and
    names the version it has seen. The same text again is no change.
    """
    notes.refresh(app, seconds_max=None)
    origin = _origin_metadata(app, workspace)
    with notes.lock.hold():
        if (before := repeated_calls.find_earlier_result(app, notes, call)) is not None:
            return before
        planned = plan_write(app, notes, draft, origin=origin)
        if not isinstance(planned, PlannedWrite):
            return planned
        return write_and_index(
            app,
            notes,
            planned.path,
            planned.text,
            existing_file=planned.existing_file,
            result=planned.result,
            call=call,
            hints=planned.hints,
        )


def plan_write(
    app: App,
    notes: OpenedNotes,
    draft: NoteDraft,
    *,
    origin: Metadata,
    reserved_paths: Sequence[str] = (),
) -> PlannedWrite | NoteChangeResult | NoteRefusal:
    """What writing the draft would come to, as things are. `taken` are paths about to be taken."""
    if not one_line(draft.title):
        return BadNoteName("", "its title has nothing in it that can be seen")
    draft = msgspec.structs.replace(
        draft,
        title=frontmatter_values.clean_title(draft.title),
        type=one_line(draft.type),
        metadata=frontmatter_values.normalise_values(draft.metadata),
    )
    given = {"type": draft.type or TYPE_DEFAULT, **draft.metadata}
    if bad := _contradiction(draft) or frontmatter_values.first_bad_value({}, given):
        return bad
    place = _note_placement(app, notes, draft, reserved_paths)
    path, draft = place.path, msgspec.structs.replace(draft, title=place.title)
    found = notes.folder.read(path)
    if isinstance(found, InvalidNotePath):
        return BadNoteName(path, found.reason)
    if found is not None:
        return _plan_overwrite(path, found, draft)
    if not draft.is_separate and (alike := _similar_note(notes, draft)):
        return alike
    made = {"created": timestamp(app.clock.now_ms()), **origin}
    text = _compose_text(draft, path, {**made, **draft.metadata})
    if isinstance(text, UnwritableFrontmatter):
        return FrontmatterUnreadable(path, text.problem)
    if bad := frontmatter_values.first_bad_value({}, frontmatter.read(text)[0].values):
        return bad
    return PlannedWrite(path, text, "created", hints=place.hints)


def _plan_overwrite(
    path: str, found: FileContent, draft: NoteDraft
) -> PlannedWrite | NoteChangeResult | NoteRefusal:
    known = parse_note(found.text, path=path)
    if known.front.problem:
        return FrontmatterUnreadable(path, known.front.problem)
    version = version_of(found.digest)
    # What the frontmatter says and the caller does not speak of stays.
    text = _compose_text(draft, path, {**known.front.values, **draft.metadata}, known)
    if isinstance(text, UnwritableFrontmatter):
        return FrontmatterUnreadable(path, text.problem)
    if bad := frontmatter_values.first_bad_value(
        known.front.values, frontmatter.read(text)[0].values
    ):
        return bad
    if text == found.text:
        return NoteChangeResult("unchanged", path, shown_permalink(known.permalink, path), version)
    if not draft.overwrite or draft.version is None:
        return NoteExists(path, version, diff_of(found.text, text))
    if not version_matches(draft.version, found.digest):
        return NoteChanged(path, version, diff_of(found.text, text))
    return PlannedWrite(path, text, "replaced", found)


def _compose_text(
    draft: NoteDraft, path: str, metadata: Metadata, known: Note | None = None
) -> str | UnwritableFrontmatter:
    return compose_note(
        title=draft.title,
        type=draft.type or (known.type if known else ""),
        content=with_leading_blank_line(_with_final_newline(draft.content)),
        tags=draft.tags or _tags_in(metadata),
        metadata=metadata,
        permalink=str(draft.metadata.get("permalink") or "")
        or (known.permalink if known else "")
        or permalink_of(path),
    )


def _with_final_newline(content: str) -> str:
    """With a newline at its end, like every file that people edit."""
    if not content or content.endswith(("\n", "\r")):
        return content
    return content + (newline_of(content) or "\n")


def _contradiction(draft: NoteDraft) -> BadValue | None:
    """What the draft says itself is not said otherwise by its metadata."""
    for key, said in (("title", draft.title), ("type", draft.type)):
        other = draft.metadata.get(key)
        if other is not None and other not in ("", said):
            why = f"the metadata names another {key} than the note has"
            return BadValue(key, why, f"Say it as `{key}`, and leave it out of the metadata.")
    return None


def _tags_in(metadata: Metadata) -> tuple[str, ...]:
    tags = metadata.get("tags")
    return tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()


def _note_placement(
    app: App, notes: OpenedNotes, draft: NoteDraft, reserved_paths: Sequence[str]
) -> _NotePlacement:
    titled = [row.path for row in notes.index.find_by_name(draft.title) if row.title == draft.title]
    if draft.overwrite and draft.folder is None and len(titled) == 1:
        return _NotePlacement(titled[0], draft.title)
    folder = (draft.folder or "").strip("/")
    name = file_name(draft.title)
    plain = f"{folder}/{name}" if folder else name
    kind = TYPES.get(draft.type.casefold())
    if kind is None:
        return _NotePlacement(plain, draft.title)
    like = notes.index.find_by_glob(glob_of(f"*{kind.prefix}-*"), limit=NUMBERED_NOTES_MAX)
    there = (*(row.path for row in like), *reserved_paths)
    usual = suggest_name(draft.type, draft.title, there, day_of(app.clock.now_ms()))
    if draft.folder is not None:
        fits = type_of_name(name) == kind
        hints = () if fits else (f"a {draft.type} is usually named like `{usual.path}`",)
        holder = _number_holder(plain, there)
        clash = (f"{number_of(plain)} is {holder} already",) if holder else ()
        return _NotePlacement(plain, draft.title, (*hints, *clash))
    if len(titled) == 1:
        return _NotePlacement(titled[0], draft.title)
    wish, got = number_of(name), number_of(usual.path)
    if wish is None or got is None or wish.prefix != got.prefix or str(wish) == str(got):
        return _NotePlacement(usual.path, draft.title)
    # A title with a number that another note has would be found for that one.
    holder = _number_holder(f"{usual.path.rpartition('/')[0]}/{name}", there)
    why = f"{wish} is {holder} already" if holder else f"{wish} was not to be had"
    return _NotePlacement(usual.path, usual.title, (f"{why}, so this one is {got}",))


def _number_holder(path: str, there: Sequence[str]) -> str:
    """Who has the number that the path would have; empty if nobody else does."""
    number = number_of(path)
    holders = (one for one in there if number and one != path and number_of(one) == number)
    return next(holders, "")


def _similar_note(notes: OpenedNotes, draft: NoteDraft) -> SimilarNoteExists | None:
    """A note whose title says the same in other words, if they are the same words."""
    wanted = canonical_title(draft.title)
    called = notes.index.find_by_name(wanted)
    words = fts_expression(plain_title(draft.title))
    hits = (
        notes.index.search(f"title : ({words})", NoteFilter(), limit=SIMILAR_TITLES_MAX)
        if words
        else []
    )
    for row in (*called, *(hit.row for hit in hits)):
        if canonical_title(row.title) == wanted:
            return SimilarNoteExists(row.title, row.path)
    return None


def _origin_metadata(app: App, workspace: Path) -> Metadata:
    """Which session and which step of it the note comes from, where that is known.

    A store that is away or cannot be used keeps nobody from writing a note: that is a file.
    """
    try:
        session = resolve_caller(app, CallerClues(workspace))
        stream = app.reader.stream(session) if isinstance(session, str) else None
    except StoreFailure:
        return {}
    if not isinstance(session, str):
        return {}
    runs = stream.head.runs if stream and stream.head else ()
    tip = next((run.tip for run in reversed(runs) if run.status in ("open", "waiting")), None)
    return {"session": session, "node": tip} if tip else {"session": session}
