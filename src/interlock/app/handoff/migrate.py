"""Migrate a hand-off file: its content becomes notes, and a session continues its work.

The file is never changed. Migrating it again creates nothing new: its notes are recognised by their
names, and a note that has been changed since is left as it is.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.callers import session_record
from interlock.app.callers.caller import Caller, resolve_caller
from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import FrontmatterUnreadable, NoteExists, SimilarNoteExists
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.write import NoteDraft, PlannedWrite, plan_write, write_draft
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.left_handoffs import receive_from_file
from interlock.core.explanation import Explanation
from interlock.core.handoff.migration import HandoffNote, Migration, plan_migration
from interlock.core.handoff.parse import parse_handoff
from interlock.core.notes import frontmatter
from interlock.core.notes.address import glob_of
from interlock.core.notes.fts_query import one_line
from interlock.core.protocol.gated_session import WorkUpdate
from interlock.core.protocol.logbook import day_of
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.core.session.state import SessionState
from interlock.workspace.failures import FileUnreadable
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.projects import project
from interlock.workspace.projects.named_files import read_handoff

NOTE_NAME_PREFIX = "handoff"
NAMES_MAX = 1_000
TAG = "handoff"


class MigratedNote(msgspec.Struct, frozen=True, rename="camel"):
    """One of the notes that the file becomes."""

    result: Literal["created", "unchanged", "kept"]
    """`kept`: a note of this title exists with other content, and was left as it is."""
    path: str
    title: str
    type: str


class MigrationReport(msgspec.Struct, frozen=True, rename="camel"):
    source: str
    notes: tuple[MigratedNote, ...]
    session: str | None
    """The session that continues the work, or would."""
    feature: str
    task: str
    remark: str
    """A sentence about the session, for the user."""
    is_dry_run: bool


class _MigrationSession(msgspec.Struct, frozen=True):
    id: str | None
    remark: str


@refuse_on_disk_failure
def migrate_handoff(
    app: App, caller: Caller, notes: OpenedNotes, path: Path, *, is_dry_run: bool
) -> MigrationReport | Refusal:
    """Start the session and write the notes.

    A migration that is impossible as a whole is refused before anything is written.
    """
    try:
        text = read_handoff(path)
    except FileUnreadable as unreadable:
        return PlainRefusal(
            "invalid_arguments",
            f"`{path}` cannot be taken over: {unreadable}",
            "Name the hand-off file of the project, such as `HANDOFF.md`.",
        )
    source = _source_name(path, notes.root)
    notes.refresh(app, seconds_max=None)
    migration = plan_migration(parse_handoff(text), source)
    drafts = list(_drafts(app, notes, migration, source))
    planned_notes = _plan_notes(app, notes, drafts)
    if not isinstance(planned_notes, list):
        return planned_notes
    is_new = any(note.result == "created" for note in planned_notes)
    # The session is started first, so that the notes name it as their origin.
    session = _session_for_work(
        app, caller, notes.root, migration, source, is_new=is_new, is_dry_run=is_dry_run
    )
    migrated_notes = planned_notes if is_dry_run else _write_notes(app, caller, notes, drafts)
    if not isinstance(migrated_notes, list):
        return migrated_notes
    return MigrationReport(
        source,
        tuple(migrated_notes),
        session.id,
        migration.feature,
        migration.task,
        session.remark,
        is_dry_run,
    )


def _drafts(app: App, notes: OpenedNotes, migration: Migration, source: str) -> Iterator[NoteDraft]:
    handoff_notes = list(migration.notes)
    if migration.leftover_text:
        name = _leftover_note_name(app, notes, migration.leftover_text)
        handoff_notes.append(HandoffNote(name, "note", "", migration.leftover_text))
    for note in handoff_notes:
        metadata = {"source": source, "status": note.status}
        yield NoteDraft(
            note.title,
            note.content,
            type=note.type,
            tags=(TAG,),
            metadata={key: value for key, value in metadata.items() if value},
        )


def _leftover_note_name(app: App, notes: OpenedNotes, content: str) -> str:
    """Return the name of a note with the same content, of whatever day; else a free name."""
    rows = notes.index.find_by_glob(glob_of(f"{NOTE_NAME_PREFIX}-*"), limit=NAMES_MAX)
    for row in rows:
        note_file = notes.folder.read(row.path)
        body = frontmatter.body_of(note_file.text) if isinstance(note_file, FileContent) else ""
        if body.strip("\r\n") == content.strip("\r\n"):
            return row.title
    used_paths = {row.path for row in rows}
    name = f"{NOTE_NAME_PREFIX}-{day_of(app.clock.now_ms())}"
    names = (name, *(f"{name}-{number}" for number in range(2, NAMES_MAX)))
    return next(name for name in names if f"{name}.md" not in used_paths)


def _plan_notes(
    app: App, notes: OpenedNotes, drafts: list[NoteDraft]
) -> list[MigratedNote] | Refusal:
    planned_notes: list[MigratedNote] = []
    for draft in drafts:
        reserved_paths = [note.path for note in planned_notes]
        outcome = _migrated_note(
            draft, plan_write(app, notes, draft, origin={}, reserved_paths=reserved_paths)
        )
        if not isinstance(outcome, MigratedNote):
            return outcome
        planned_notes.append(outcome)
    return planned_notes


def _write_notes(
    app: App, caller: Caller, notes: OpenedNotes, drafts: list[NoteDraft]
) -> list[MigratedNote] | Refusal:
    written_notes: list[MigratedNote] = []
    for draft in drafts:
        outcome = _migrated_note(draft, write_draft(app, caller, notes, draft))
        if not isinstance(outcome, MigratedNote):
            return outcome
        written_notes.append(outcome)
    return written_notes


def _migrated_note(
    draft: NoteDraft, outcome: PlannedWrite | NoteChangeResult | Refusal
) -> MigratedNote | Refusal:
    if isinstance(outcome, PlannedWrite | NoteChangeResult):
        result = "unchanged" if outcome.result == "unchanged" else "created"
        return MigratedNote(result, outcome.path, draft.title, draft.type)
    if isinstance(outcome, NoteExists | SimilarNoteExists | FrontmatterUnreadable):
        return MigratedNote("kept", outcome.path, draft.title, draft.type)
    return outcome


def _session_for_work(
    app: App,
    caller: Caller,
    root: Path,
    migration: Migration,
    source: str,
    *,
    is_new: bool,
    is_dry_run: bool,
) -> _MigrationSession:
    """Return the session that continues the work of the file, started if necessary."""
    if project.root_of(root) is None:
        return _MigrationSession(
            None, "No session: the project has not opted in (`interlock init`)."
        )
    if not migration.feature and not migration.task:
        return _MigrationSession(
            None, "No session: the file names neither a feature nor a next step."
        )
    if not is_new:
        return _MigrationSession(None, "No session: the file was taken over before.")
    if is_dry_run:
        found = resolve_caller(app, caller)
        session = found if isinstance(found, str) else None
        return _MigrationSession(
            session, f"A session would go on with {_work_description(migration)}."
        )
    started = gated_sessions.start(app, caller)
    if not isinstance(started, session_record.StartedSession):
        return _no_session(started.explain())
    if started.state.active_feature or started.state.active_task:
        return _MigrationSession(
            started.session, "The session is about other work already, and stays so."
        )
    work = WorkUpdate(migration.feature, migration.task)
    outcome = gated_sessions.change_work(app, started.session, work)
    if not isinstance(outcome, SessionState):  # somebody ended the session in the meantime
        return _no_session(outcome.explain())
    text = "\n\n".join(note.content for note in migration.notes if note.type != "decision")
    receive_from_file(app, started.session, source, text or _work_description(migration))
    return _MigrationSession(
        started.session, f"The session goes on with {_work_description(migration)}."
    )


def _work_description(migration: Migration) -> str:
    parts = (("feature", migration.feature), ("task", migration.task))
    return ", ".join(f"{kind} “{name}”" for kind, name in parts if name)


def _no_session(explanation: Explanation) -> _MigrationSession:
    return _MigrationSession(None, f"No session: {explanation.error}. {explanation.hint}")


def _source_name(path: Path, root: Path) -> str:
    """Return the path of the file in its project; elsewhere only its name: notes are shared."""
    real, base = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    return one_line(str(real.relative_to(base)) if real.is_relative_to(base) else real.name)
