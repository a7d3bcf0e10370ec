"""Publish what the log knows as notes of the project, under names of their own.

The log is the truth and never reads them back. What cannot be written now is written later: each
page says how many events it was made from, so that a stale one is known.
"""

import os
from contextlib import suppress
from pathlib import Path

from interlock.app.context import App
from interlock.app.gate.policy import load_effective_policy
from interlock.app.notes.explain import explain_note_refusal
from interlock.app.notes.project_notes import NotesLocation, OpenedNotes, notes_location, open_notes
from interlock.app.notes.refusals import (
    BadNoteName,
    NoProject,
    NoteNotWritten,
    NoteRefusal,
    PublishPathTaken,
)
from interlock.app.notes.results import NoteChangeResult
from interlock.app.notes.write_and_index import (
    refuse_on_disk_failure,
    with_leading_blank_line,
    write_and_index,
)
from interlock.app.refusals import NoSuchDirectory
from interlock.app.runs.user_actions import open_gaps
from interlock.core.ids import SessionId
from interlock.core.notes.grammar import compose_note, parse_note
from interlock.core.notes.note import Metadata
from interlock.core.session import state
from interlock.core.session.events import decode_envelope
from interlock.core.views.session_note import (
    CURRENT_SESSION_NOTE,
    PUBLISHED_TYPES,
    SessionNotePage,
    current_page,
    merge_user_text,
    session_note_name,
    session_page,
    user_text_in,
)
from interlock.store.failures import StoreFailure
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects import project
from interlock.workspace.projects.notes_folder import DeletedFile, NotesFolder

OUTDATED_SESSIONS_MAX = 10
LOCK_WAIT_SECONDS = 0.5  # a session goes on without its note, which comes later
UNPUBLISH_LOCK_WAIT_SECONDS = 2.0  # there is no later for a session that is deleted
VERSION_DIGITS_MAX = 12  # of a version; whoever edits a note may write any


def publish_session(app: App, session: SessionId) -> NoteChangeResult | NoteRefusal:
    """The session as it stands, in the notes of its project."""
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    workspace = Path(stream.head.workspace)
    notes = open_notes(app, workspace)
    if not isinstance(notes, OpenedNotes):
        return notes
    envelopes = (decode_envelope(link.body) for link in app.reader.links(session))
    folded = state.fold(envelopes, project=workspace.name)
    has_gaps = any(run.gaps_open for run in stream.head.runs)
    gaps = tuple(found.gap for found in open_gaps(app, session)) if has_gaps else ()
    page = session_page(session, stream.version, stream.head, folded, gaps)
    done = publish_page(app, notes, page)
    if isinstance(done, NoteChangeResult) and done.result == "created":
        _exclude_from_git(notes)
    if folded and folded.status == "active" and isinstance(done, NoteChangeResult):
        publish_page(app, notes, current_page(session))
    return done


@refuse_on_disk_failure
def publish_page(
    app: App, notes: OpenedNotes, page: SessionNotePage
) -> NoteChangeResult | NoteRefusal:
    """Write the page, unless a newer one is there. What people wrote below its line stays."""
    path = f"{page.name}.md"
    with notes.lock.hold(LOCK_WAIT_SECONDS):
        found = notes.folder.read(path)
        if isinstance(found, InvalidNotePath):
            return BadNoteName(path, found.reason)
        known = parse_note(found.text, path=path) if found else None
        if known and known.type not in PUBLISHED_TYPES:
            return PublishPathTaken(path)
        if known and _page_version(known.front.values) > _page_version(page.metadata):
            return NoteChangeResult("unchanged", path, page.name, "")
        text = compose_note(
            title=page.title,
            type=str(page.metadata["type"]),
            content=with_leading_blank_line(merge_user_text(page, known.body if known else "")),
            tags=(),
            metadata={key: value for key, value in page.metadata.items() if key != "type"},
            permalink=page.name,
        )
        assert isinstance(text, str), "our own metadata is short and flat"
        if found and text == found.text:
            return NoteChangeResult("unchanged", path, page.name, "")
        return write_and_index(
            app, notes, path, text, existing_file=found, result="replaced" if found else "created"
        )


def unpublish_session(app: App, session: SessionId, workspace: Path) -> tuple[str, ...]:
    """Take away what was published of a session, but not what a person has written into it.

    The session itself is gone, so nothing may fail here: what is returned says what stays and why.
    """
    place = notes_location(app.home, workspace)
    if isinstance(place, NoSuchDirectory | NoProject):
        return ()
    if not isinstance(place, NotesLocation):
        return (
            f"What was published of it, if anything, stays: {explain_note_refusal(place).error}.",
        )
    pages = (f"{session_note_name(session)}.md", f"{CURRENT_SESSION_NOTE}.md")
    # Without the lock, for which somebody may wait in vain: most sessions have published nothing.
    there = [
        path for path in pages if _may_mention_session(session, NotesFolder(place.folder), path)
    ]
    if not there:
        return ()
    try:
        notes = open_notes(app, workspace)
        if not isinstance(notes, OpenedNotes):
            return tuple(
                _still_there_message(path, explain_note_refusal(notes).error) for path in there
            )
        with notes.lock.hold(UNPUBLISH_LOCK_WAIT_SECONDS):
            left = [_remove_page(notes, path, session) for path in there]
    except StoreFailure as failure:
        left = [_still_there_message(path, str(failure)) for path in there]
    return tuple(one for one in left if one)


def _may_mention_session(session: SessionId, folder: NotesFolder, path: str) -> bool:
    try:
        return _read_page_of(session, folder, path) is not None
    except FolderFailure:
        return True


def _read_page_of(session: SessionId, folder: NotesFolder, path: str) -> FileContent | None:
    """What lies there, if it speaks of this session: the pointer may lead to another by now."""
    found = folder.read(path)
    return found if isinstance(found, FileContent) and session in found.text else None


def _remove_page(notes: OpenedNotes, path: str, session: SessionId) -> str:
    """What stays of the page, in words; nothing where it is gone. The caller holds the lock."""
    try:
        found = _read_page_of(session, notes.folder, path)
        if found is None:
            return ""
        if user_text_in(found.text):
            return _still_there_message(path, "somebody has written into it")
        done = notes.folder.delete(path, expected=found.digest)
    except FolderFailure as failure:
        return _still_there_message(path, str(failure))
    if not isinstance(done, DeletedFile):
        return _still_there_message(path, "somebody changed it at the same moment")
    try:
        notes.index.erase(path)
    except StoreFailure as failure:
        return f"`{path}` is deleted, but not its words in the index of the notes: {failure}."
    return ""


def _still_there_message(path: str, reason: str) -> str:
    return f"`{path}` is still there: {reason}. Delete it by hand if it is not needed."


def _exclude_from_git(notes: OpenedNotes) -> None:
    """Notes of sessions are of this machine; the others are the project's."""
    sessions = os.path.relpath(notes.folder.root, notes.root)
    if not sessions.startswith(".."):
        with suppress(OSError):
            project.exclude_from_git(notes.root, f"{sessions}/sessions/")


def publish_outdated_sessions(app: App, root: Path) -> tuple[str, ...]:
    """Publish the sessions of the project whose notes are older than they are.

    Nobody is stopped where that fails: what is returned is to be said about it.
    """
    if load_effective_policy(app.home, root, at_ms=app.clock.now_ms()).policy.profile == "light":
        return ()
    try:
        notes = open_notes(app, root)
        late = _outdated_sessions(app, notes, root) if isinstance(notes, OpenedNotes) else notes
        if not isinstance(late, list):
            return _not_written_message(late)
        for session in late:
            done = publish_session(app, session)
            if not isinstance(done, NoteChangeResult):
                return _not_written_message(done)
    except StoreFailure as failure:
        return _not_written_message(NoteNotWritten(str(failure), failure.hint))
    return ()


def _not_written_message(refusal: NoteRefusal) -> tuple[str, ...]:
    return (f"The note of the session was not written: {explain_note_refusal(refusal).error}.",)


@refuse_on_disk_failure
def _outdated_sessions(app: App, notes: OpenedNotes, root: Path) -> list[SessionId] | NoteRefusal:
    """Sessions of which there is more to say than their notes do."""
    late: list[SessionId] = []
    for session in app.reader.attended_sessions_in(str(root))[:OUTDATED_SESSIONS_MAX]:
        stream = app.reader.stream(session)
        row = notes.index.by_path(f"{session_note_name(session)}.md")
        if stream and (row is None or _page_version(row.front) < stream.version):
            late.append(session)
    return late


def published_file(app: App, session: SessionId, done: NoteChangeResult) -> Path:
    """Where the note that was published lies on the disk."""
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    place = notes_location(app.home, Path(stream.head.workspace))
    assert isinstance(place, NotesLocation), "a note was published there"
    return place.folder / done.path


def _page_version(metadata: Metadata) -> int:
    said = str(metadata.get("version", ""))
    is_ours = said.isascii() and said.isdigit() and len(said) <= VERSION_DIGITS_MAX
    return int(said) if is_ours else 0
