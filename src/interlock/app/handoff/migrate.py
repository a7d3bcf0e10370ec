"""Take over a hand-off file: its content as notes, and a session that goes on with its work.

The file is never changed. Taken over again, it comes to nothing new: what was written is recognised
by its name, and a note that says something else by now is left as it is.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.callers.caller import CallerClues, resolve_caller
from interlock.app.context import App
from interlock.app.explain import explain
from interlock.app.explanation import Explanation
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import (
    FrontmatterUnreadable,
    HandoffFileUnusable,
    NoteExists,
    NoteRefusal,
    SimilarNoteExists,
)
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.write import NoteDraft, PlannedWrite, plan_write, write_draft
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.app.protocol import gated_sessions
from interlock.core.handoff.migration import HandoffNote, Migration, plan_migration
from interlock.core.handoff.parse import parse_handoff
from interlock.core.notes import frontmatter
from interlock.core.notes.address import glob_of
from interlock.core.notes.fts_query import one_line
from interlock.core.protocol.gated_session import WorkUpdate
from interlock.core.protocol.logbook import day_of
from interlock.core.session.state import SessionState
from interlock.workspace.failures import FileUnreadable
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.projects import handoff_files, project

NOTE_NAME_PREFIX = "handoff"
NAMES_MAX = 1_000
TAG = "handoff"


class MigratedNote(msgspec.Struct, frozen=True, rename="camel"):
    """One note of those that the file comes to."""

    result: Literal["created", "unchanged", "kept"]
    """`kept`: a note of this title is there that says something else. It was left as it is."""
    path: str
    title: str
    type: str


class MigrationReport(msgspec.Struct, frozen=True, rename="camel"):
    source: str
    notes: tuple[MigratedNote, ...]
    session: str | None
    """That goes on with the work, or would."""
    feature: str
    task: str
    remark: str
    """What is to be said about the session."""
    is_dry_run: bool


class _MigrationSession(msgspec.Struct, frozen=True):
    id: str | None
    remark: str


@refuse_on_disk_failure
def migrate_handoff(
    app: App, notes: OpenedNotes, path: Path, *, is_dry_run: bool
) -> MigrationReport | NoteRefusal:
    """What cannot be done at all is said before anything is written."""
    try:
        text = handoff_files.read_handoff(path)
    except FileUnreadable as unreadable:
        return HandoffFileUnusable(str(path), str(unreadable))
    source = _source_name(path, notes.root)
    notes.refresh(app, seconds_max=None)
    found = plan_migration(parse_handoff(text), source)
    drafts = list(_drafts(app, notes, found, source))
    foreseen = _plan_notes(app, notes, drafts)
    if not isinstance(foreseen, list):
        return foreseen
    is_new = any(one.result == "created" for one in foreseen)
    # The session first, so that the notes say where they come from.
    session = _session_for_work(app, notes.root, found, is_new=is_new, is_dry_run=is_dry_run)
    carried = foreseen if is_dry_run else _write_notes(app, notes, drafts)
    if not isinstance(carried, list):
        return carried
    return MigrationReport(
        source,
        tuple(carried),
        session.id,
        found.feature,
        found.task,
        session.remark,
        is_dry_run,
    )


def _drafts(app: App, notes: OpenedNotes, found: Migration, source: str) -> Iterator[NoteDraft]:
    pieces = list(found.notes)
    if found.leftover_text:
        name = _leftover_note_name(app, notes, found.leftover_text)
        pieces.append(HandoffNote(name, "note", "", found.leftover_text))
    for piece in pieces:
        metadata = {"source": source, "status": piece.status}
        yield NoteDraft(
            piece.title,
            piece.content,
            type=piece.type,
            tags=(TAG,),
            metadata={key: value for key, value in metadata.items() if value},
        )


def _leftover_note_name(app: App, notes: OpenedNotes, content: str) -> str:
    """The name under which the same is there already, whatever day that was; else a free one."""
    rows = notes.index.find_by_glob(glob_of(f"{NOTE_NAME_PREFIX}-*"), limit=NAMES_MAX)
    for row in rows:
        found = notes.folder.read(row.path)
        body = frontmatter.read(found.text)[1] if isinstance(found, FileContent) else ""
        if body.strip("\r\n") == content.strip("\r\n"):
            return row.title
    there = {row.path for row in rows}
    name = f"{NOTE_NAME_PREFIX}-{day_of(app.clock.now_ms())}"
    names = (name, *(f"{name}-{number}" for number in range(2, NAMES_MAX)))
    return next(free for free in names if f"{free}.md" not in there)


def _plan_notes(
    app: App, notes: OpenedNotes, drafts: list[NoteDraft]
) -> list[MigratedNote] | NoteRefusal:
    carried: list[MigratedNote] = []
    for draft in drafts:
        taken = [one.path for one in carried]
        outcome = _migrated_note(
            draft, plan_write(app, notes, draft, origin={}, reserved_paths=taken)
        )
        if not isinstance(outcome, MigratedNote):
            return outcome
        carried.append(outcome)
    return carried


def _write_notes(
    app: App, notes: OpenedNotes, drafts: list[NoteDraft]
) -> list[MigratedNote] | NoteRefusal:
    carried: list[MigratedNote] = []
    for draft in drafts:
        outcome = _migrated_note(draft, write_draft(app, notes, draft, notes.root))
        if not isinstance(outcome, MigratedNote):
            return outcome
        carried.append(outcome)
    return carried


def _migrated_note(
    draft: NoteDraft, outcome: PlannedWrite | NoteChangeResult | NoteRefusal
) -> MigratedNote | NoteRefusal:
    if isinstance(outcome, PlannedWrite | NoteChangeResult):
        result = "unchanged" if outcome.result == "unchanged" else "created"
        return MigratedNote(result, outcome.path, draft.title, draft.type)
    if isinstance(outcome, NoteExists | SimilarNoteExists | FrontmatterUnreadable):
        return MigratedNote("kept", outcome.path, draft.title, draft.type)
    return outcome


def _session_for_work(
    app: App, root: Path, found: Migration, *, is_new: bool, is_dry_run: bool
) -> _MigrationSession:
    """The one that goes on with the work of the file, begun if need be."""
    if project.root_of(root) is None:
        return _MigrationSession(
            None, "No session: the project has not opted in (`interlock init`)."
        )
    if not found.feature and not found.task:
        return _MigrationSession(
            None, "No session: the file names neither a feature nor a next step."
        )
    if not is_new:
        return _MigrationSession(None, "No session: the file was taken over before.")
    if is_dry_run:
        here = resolve_caller(app, CallerClues(root))
        known = here if isinstance(here, str) else None
        return _MigrationSession(known, f"A session would go on with {_work_description(found)}.")
    begun = gated_sessions.start(app, root)
    if not isinstance(begun, gated_sessions.StartedSession):
        return _no_session(explain(begun))
    if begun.state.active_feature or begun.state.active_task:
        return _MigrationSession(
            begun.session, "The session is about other work already, and stays so."
        )
    changed = gated_sessions.change_work(app, begun.session, WorkUpdate(found.feature, found.task))
    if not isinstance(changed, SessionState):  # somebody was faster and ended it
        return _no_session(explain(changed))
    return _MigrationSession(begun.session, f"The session goes on with {_work_description(found)}.")


def _work_description(found: Migration) -> str:
    parts = (("feature", found.feature), ("task", found.task))
    return ", ".join(f"{what} “{name}”" for what, name in parts if name)


def _no_session(explanation: Explanation) -> _MigrationSession:
    return _MigrationSession(None, f"No session: {explanation.error}. {explanation.hint}")


def _source_name(path: Path, root: Path) -> str:
    """What the file is called in its project; elsewhere only its name: notes are given away."""
    real, base = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    return one_line(str(real.relative_to(base)) if real.is_relative_to(base) else real.name)
