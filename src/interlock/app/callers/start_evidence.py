"""Observe what the start of a session is judged by: skills, binding notes, branch, logbook."""

import os
from pathlib import Path

from interlock.agents.hosts.registry import NAMES, all_hosts, host_named
from interlock.app.context import App
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.sessions.logbook_file import create_logbook
from interlock.core.ids import SessionId
from interlock.core.notes.keys import fold_name
from interlock.core.notes.versions import version_of
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.events import ObservationRecorded
from interlock.core.session.requirements import Fact
from interlock.core.session.start_evidence import (
    BINDING_NOTES,
    BindingNote,
    StartObservation,
    start_facts,
)
from interlock.store.records import SessionFilter
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.bounded_walk import find_files
from interlock.workspace.projects.named_files import count_skills
from interlock.workspace.projects.notes_folder import NotesFolder

NOTES_MAX = 2_000  # to look at, which takes some milliseconds


def observe_start(
    app: App,
    root: Path,
    conversation: Conversation | None,
    observation: ObservationRecorded | None,
    *,
    session: SessionId,
    keeps_logbook: bool,
    logbook: str = "",
) -> dict[str, Fact]:
    """Return the facts about the start. A session that keeps a `logbook` and has none gets one."""
    log, log_fault = logbook, ""
    if keeps_logbook and not logbook:
        try:
            log = str(create_logbook(root, app.clock.now_ms()))
        except OSError as error:
            log_fault = error.strerror or str(error)
    location = notes_location(app.home, root)
    folder, notes, notes_fault, note_count = "", list[BindingNote](), "", 0
    if isinstance(location, NotesLocation):
        folder = os.path.relpath(location.folder, root)
        notes, note_count = _find_notes(NotesFolder(location.folder))
    else:
        notes_fault = location.explain().error
    is_known = conversation is not None and conversation.host in NAMES
    hosts = [host_named(conversation.host)] if conversation and is_known else all_hosts()
    return start_facts(
        StartObservation(
            branch=(observation.git_branch or "detached") if observation else None,
            skills=count_skills(root, (path for host in hosts for path in host.skill_folders)),
            notes_folder=folder,
            notes_fault=notes_fault,
            binding_notes=notes,
            note_count=note_count,
            earlier_session=_session_before(app, root, session),
            logbook=log,
            logbook_fault=log_fault,
        )
    )


def _session_before(app: App, root: Path, session: SessionId) -> str:
    """Return the session that was the newest in the same directory when this one began."""
    here = SessionFilter(workspace=str(root))
    newest = app.reader.list_sessions(here, before=None, limit=2).sessions
    return next((one.session for one in newest if one.session != session), "")


def _find_notes(folder: NotesFolder) -> tuple[list[BindingNote], int]:
    """Return the binding notes, and the number of all notes."""
    files = find_files(folder.root, ("",), entries_max=NOTES_MAX).paths
    pages = [path for path in files if path.endswith(".md")]
    paths = {fold_name(Path(path).stem): path for path in reversed(pages)}
    found: list[BindingNote] = []
    for name in BINDING_NOTES:
        try:
            file = folder.read(paths[name]) if name in paths else None
        except FolderFailure:
            continue
        if isinstance(file, FileContent):
            found.append(BindingNote(name, version_of(file.digest)))
    return found, len(pages)
