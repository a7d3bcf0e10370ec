"""Observe what the start of a session is judged by: skills, binding notes, branch, logbook."""

import os
from pathlib import Path

from interlock.agents.hosts.registry import NAMES, all_hosts, host_named
from interlock.app.context import App
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.sessions.logbook_file import create_logbook
from interlock.core.gate.state import Profile
from interlock.core.notes.keys import fold_name
from interlock.core.notes.versions import version_of
from interlock.core.protocol.gated_session import Conversation
from interlock.core.protocol.start_evidence import (
    BINDING_NOTES,
    BindingNote,
    StartObservation,
    start_evidence,
)
from interlock.core.session.events import ObservationRecorded
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.bounded_walk import find_files
from interlock.workspace.projects.notes_folder import NotesFolder
from interlock.workspace.projects.skills import count_skills

NOTES_MAX = 2_000  # to look at, which takes some milliseconds


def observe_start(
    app: App,
    root: Path,
    profile: Profile,
    conversation: Conversation | None,
    observation: ObservationRecorded | None,
) -> dict[str, str]:
    """Return the evidence of the start. A logbook that cannot be written stops nobody."""
    log, log_fault = "", ""
    if profile != "light":
        try:
            log = str(create_logbook(root, app.clock.now_ms()))
        except OSError as error:
            log_fault = error.strerror or str(error)
    location = notes_location(app.home, root)
    folder, notes, notes_fault = "", list[BindingNote](), ""
    if isinstance(location, NotesLocation):
        folder = os.path.relpath(location.folder, root)
        notes = _binding_notes(NotesFolder(location.folder))
    else:
        notes_fault = location.explain().error
    is_known = conversation is not None and conversation.host in NAMES
    hosts = [host_named(conversation.host)] if conversation and is_known else all_hosts()
    return start_evidence(
        StartObservation(
            (observation.git_branch or "detached") if observation else None,
            count_skills(root, (path for host in hosts for path in host.skill_folders)),
            folder,
            notes_fault,
            notes,
            log,
            log_fault,
        )
    )


def _binding_notes(folder: NotesFolder) -> list[BindingNote]:
    files = find_files(folder.root, ("",), entries_max=NOTES_MAX).paths
    paths = {fold_name(Path(path).stem): path for path in reversed(files) if path.endswith(".md")}
    found: list[BindingNote] = []
    for name in BINDING_NOTES:
        try:
            file = folder.read(paths[name]) if name in paths else None
        except FolderFailure:
            continue
        if isinstance(file, FileContent):
            found.append(BindingNote(name, version_of(file.digest)))
    return found
