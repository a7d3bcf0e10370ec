"""Publish sessions as notes of their project, under reserved names.

The log is the truth, and the notes are never read back. A page that cannot be written now is
written later: each says how many events it was made from, so that a stale one is recognised.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from interlock.app.context import App
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.gate.policy import load_effective_policy
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.refusals import BadNoteName, NoteNotWritten
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.write_and_index import (
    refuse_on_disk_failure,
    with_leading_blank_line,
    write_and_index,
)
from interlock.app.refusals import NoProject, NoSuchDirectory
from interlock.app.runs.user_actions import open_gaps
from interlock.core.ids import SessionId
from interlock.core.notes.grammar import ComposedNote, compose_note, parse_note
from interlock.core.notes.note import Metadata
from interlock.core.refusal import PlainRefusal, Refusal
from interlock.core.session import state
from interlock.core.session.delegation_events import HistoryCompacted
from interlock.core.session.events import Envelope, NoteWritten
from interlock.core.session.orchestration import decode_history
from interlock.core.session.plan import Stream
from interlock.core.session.state import SessionState
from interlock.core.views.session_note import (
    CURRENT_SESSION_NOTE,
    PUBLISHED_TYPES,
    SessionNotePage,
    current_page,
    history_page,
    merge_user_text,
    session_note_name,
    session_page,
    specialist_pages,
    user_text_in,
)
from interlock.store.failures import StoreFailure
from interlock.workspace.failures import FolderFailure, SettingsBroken
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects import project
from interlock.workspace.projects.notes_folder import DeletedFile, NotesFolder
from interlock.workspace.projects.settings import retention_in

OUTDATED_SESSIONS_MAX = 10
DAY_MS = 24 * 3_600_000
LOCK_WAIT_SECONDS = 0.5  # a session continues without its note, which comes later
UNPUBLISH_LOCK_WAIT_SECONDS = 2.0  # a deleted session has no second chance
VERSION_DIGITS_MAX = 12  # of a version; somebody who edits a note may write any number


def publish_session(app: App, session: SessionId) -> NoteChangeResult | Refusal:
    """Write the current state of the session to the notes of its project."""
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    workspace = Path(stream.head.workspace)
    notes = open_notes(app, workspace)
    if not isinstance(notes, OpenedNotes):
        return notes
    envelopes = app.reader.history(session)
    folded = state.fold(envelopes)
    session_state = folded if folded.mode_history else None
    runs = app.reader.runs(session)
    has_gaps = any(run.gaps_open for run in runs)
    gaps = tuple(entry.gap for entry in open_gaps(app, session)) if has_gaps else ()
    written = [e.event.note for e in envelopes if isinstance(e.event, NoteWritten)]
    expired = _expired_histories(app, envelopes)
    # What a person has written into is still there, and can be linked to.
    gone = [name for name in expired if not os.path.lexists(notes.folder.root / f"{name}.md")]
    page = session_page(stream, runs, session_state, gaps, written=written, expired=gone)
    # First: the page of the session says by its version that all are up to date.
    for further in _further_pages(app, stream, session_state, envelopes):
        if further.name in expired:
            continue
        further_result = publish_page(app, notes, further)
        if not isinstance(further_result, NoteChangeResult):
            return further_result
    result = publish_page(app, notes, page)
    if isinstance(result, NoteChangeResult) and result.result == "created":
        _exclude_from_git(notes)
    if session_state and session_state.status == "active" and isinstance(result, NoteChangeResult):
        publish_page(app, notes, current_page(session))
    return result


def _expired_histories(app: App, envelopes: Sequence[Envelope]) -> set[str]:
    """The names of the notes of histories that are too old to be kept as notes."""
    compacted = [
        (envelope.at_ms, envelope.event.note)
        for envelope in envelopes
        if isinstance(envelope.event, HistoryCompacted)
    ]
    try:
        days = retention_in(app.home / "config.toml").compaction_days if compacted else 0
    except SettingsBroken:
        return set()  # for how long they are kept is not known
    cutoff_ms = app.clock.now_ms() - days * DAY_MS
    return {name for at_ms, name in compacted if at_ms < cutoff_ms}


def _further_pages(
    app: App, stream: Stream, session_state: SessionState | None, envelopes: Sequence[Envelope]
) -> Iterator[SessionNotePage]:
    """The pages that keep what agents have found, and what was compacted."""
    if session_state is None or session_state.orchestrator_workflow is None:
        return
    yield from specialist_pages(stream.session, stream.version, session_state.orchestrator_workflow)
    for envelope in envelopes:
        if isinstance(envelope.event, HistoryCompacted):
            content = app.reader.blob(envelope.event.history)
            compacted = decode_history(content).delegations
            yield history_page(stream.session, envelope.event.note, envelope.seq, compacted)


@refuse_on_disk_failure
def publish_page(app: App, notes: OpenedNotes, page: SessionNotePage) -> NoteChangeResult | Refusal:
    """Write the page, unless a newer one is there. Text that people wrote below its line stays."""
    path = f"{page.name}.md"
    with notes.lock.hold(LOCK_WAIT_SECONDS):
        file = notes.folder.read(path)
        if isinstance(file, InvalidNotePath):
            return BadNoteName(path, file.reason)
        old_note = parse_note(file.text, path=path) if file else None
        if old_note and old_note.type not in PUBLISHED_TYPES:
            return PlainRefusal(
                "note_exists",
                f"`{path}` is somebody's own note, and was left alone",
                "Give that note another name; its place is where sessions are published.",
            )
        if old_note and _page_version(old_note.front.values) > _page_version(page.metadata):
            return NoteChangeResult("unchanged", path, page.name, "")
        composed = compose_note(
            title=page.title,
            type=str(page.metadata["type"]),
            content=with_leading_blank_line(
                merge_user_text(page, old_note.body if old_note else "")
            ),
            tags=(),
            metadata={key: value for key, value in page.metadata.items() if key != "type"},
            permalink=page.name,
        )
        assert isinstance(composed, ComposedNote), "our own metadata is short and flat"
        if file and composed.text == file.text:
            return NoteChangeResult("unchanged", path, page.name, "")
        return write_and_index(
            app,
            notes,
            path,
            composed.text,
            front=composed.front,
            existing_file=file,
            result="replaced" if file else "created",
        )


def unpublish_session(app: App, session: SessionId, workspace: Path) -> tuple[str, ...]:
    """Delete the published pages of a session, except those that a person has written into.

    The session itself is gone, so nothing may fail here. Returns messages about the pages that
    stay, with the reasons.
    """
    location = notes_location(app.home, workspace)
    if isinstance(location, NoSuchDirectory | NoProject):
        return ()
    if not isinstance(location, NotesLocation):
        reason = location.explain().error
        return (f"What was published of it, if anything, stays: {reason}.",)
    pages = (*_own_pages(location.folder, session), f"{CURRENT_SESSION_NOTE}.md")
    # Without the lock, which may be held for long: most sessions have published nothing.
    published = [
        path for path in pages if _may_mention_session(session, NotesFolder(location.folder), path)
    ]
    if not published:
        return ()
    try:
        notes = open_notes(app, workspace)
        if not isinstance(notes, OpenedNotes):
            return tuple(_still_there_message(path, notes.explain().error) for path in published)
        with notes.lock.hold(UNPUBLISH_LOCK_WAIT_SECONDS):
            messages = [remove_page(notes, path, session) for path in published]
    except StoreFailure as failure:
        messages = [_still_there_message(path, str(failure)) for path in published]
    return tuple(message for message in messages if message)


def _own_pages(folder: Path, session: SessionId) -> list[str]:
    own = session_note_name(session)
    try:
        names = [f"sessions/{name}" for name in os.listdir(folder / "sessions")]
    except OSError:
        return [f"{own}.md"]  # whoever reads it finds out what is wrong
    return sorted(name for name in names if name == f"{own}.md" or name.startswith(f"{own}-"))


def _may_mention_session(session: SessionId, folder: NotesFolder, path: str) -> bool:
    try:
        return _read_page_of(session, folder, path) is not None
    except FolderFailure:
        return True


def _read_page_of(session: SessionId, folder: NotesFolder, path: str) -> FileContent | None:
    """The page, if it mentions this session: the pointer may lead to another by now."""
    content = folder.read(path)
    return content if isinstance(content, FileContent) and session in content.text else None


def remove_page(notes: OpenedNotes, path: str, session: SessionId) -> str:
    """Delete a page. Returns a message if anything of it stays. The caller holds the lock."""
    try:
        page = _read_page_of(session, notes.folder, path)
        if page is None:
            return ""
        if user_text_in(page.text):
            return _still_there_message(path, "somebody has written into it")
        deletion = notes.folder.delete(path, expected=page.digest)
    except FolderFailure as failure:
        return _still_there_message(path, str(failure))
    if not isinstance(deletion, DeletedFile):
        return _still_there_message(path, "somebody changed it at the same moment")
    try:
        notes.index.erase(path)
    except StoreFailure as failure:
        return f"`{path}` is deleted, but not its words in the index of the notes: {failure}."
    return ""


def _still_there_message(path: str, reason: str) -> str:
    return f"`{path}` is still there: {reason}. Delete it by hand if it is not needed."


def _exclude_from_git(notes: OpenedNotes) -> None:
    """Keep the notes of sessions out of git: unlike the others, they belong to this machine."""
    sessions = os.path.relpath(notes.folder.root, notes.root)
    if not sessions.startswith(".."):
        with suppress(OSError):
            project.exclude_from_git(notes.root, f"{sessions}/sessions/")


def publish_outdated_sessions(app: App, root: Path) -> tuple[str, ...]:
    """Publish the sessions of the project whose notes are outdated.

    A failure stops nobody: it is returned as a message.
    """
    if load_effective_policy(app.home, root, at_ms=app.clock.now_ms()).policy.profile == "light":
        return ()
    try:
        notes = open_notes(app, root)
        outdated = _outdated_sessions(app, notes, root) if isinstance(notes, OpenedNotes) else notes
        if not isinstance(outdated, list):
            return _not_written_message(outdated)
        for session in outdated:
            result = publish_session(app, session)
            if not isinstance(result, NoteChangeResult):
                return _not_written_message(result)
    except StoreFailure as failure:
        return _not_written_message(NoteNotWritten(str(failure), failure.hint))
    return ()


def _not_written_message(refusal: Refusal) -> tuple[str, ...]:
    return (f"The note of the session was not written: {refusal.explain().error}.",)


@refuse_on_disk_failure
def _outdated_sessions(app: App, notes: OpenedNotes, root: Path) -> list[SessionId] | Refusal:
    """The sessions whose notes are missing or older than the session."""
    outdated: list[SessionId] = []
    for attended in app.reader.attended_sessions_in(str(root))[:OUTDATED_SESSIONS_MAX]:
        row = notes.index.by_path(f"{session_note_name(attended.session)}.md")
        if row is None or _page_version(row.front) < attended.version:
            outdated.append(attended.session)
    return outdated


def published_file(app: App, session: SessionId, result: NoteChangeResult) -> Path:
    """The path of the published note on the disk."""
    location = notes_location(app.home, Path(app.reader.head(session).workspace))
    assert isinstance(location, NotesLocation), "a note was published there"
    return location.folder / result.path


def _page_version(metadata: Metadata) -> int:
    text = str(metadata.get("version", ""))
    is_ours = text.isascii() and text.isdigit() and len(text) <= VERSION_DIGITS_MAX
    return int(text) if is_ours else 0
