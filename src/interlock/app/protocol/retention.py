"""Retention: remove what was only kept for a while.

That is notes of compacted histories (the log keeps all of it, and `session show --full` prints it),
archived sessions if the user says for how long, old journals and tracebacks. What a person has
written into stays. Each removal can be repeated: what is gone is not listed again.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.context import App
from interlock.app.notes.project_notes import NotesLocation, OpenedNotes, notes_location, open_notes
from interlock.app.protocol import deletion
from interlock.app.protocol.publish import (
    DAY_MS,
    UNPUBLISH_LOCK_WAIT_SECONDS,
    publish_session,
    remove_page,
)
from interlock.core.ids import SessionId
from interlock.core.notes.grammar import parse_note
from interlock.core.views.session_note import HISTORY_TYPE, session_note_name, user_text_in
from interlock.store.failures import StoreFailure
from interlock.store.records import SessionFilter
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.machine.spool import old_files, remove_old_files
from interlock.workspace.projects.notes_folder import NotesFolder
from interlock.workspace.projects.settings import retention_in

FILES_DAYS = 30
_ALL = 1_000_000
_HISTORY_FILE = re.compile(r"session-(ses_[0-9a-f]+)-history-([0-9]{1,15})\.md")


class ExpiredItem(msgspec.Struct, frozen=True, rename="camel"):
    kind: Literal["history_note", "archived_session", "file"]
    name: str
    """The path of the note in its folder, the id of the session, or the path of the file."""
    workspace: str = ""
    leftovers: tuple[str, ...] = ()
    """What is still there of it, each in a sentence with the reason."""


def apply_retention(app: App, *, is_dry: bool) -> list[ExpiredItem]:
    """Remove what is older than it may be; return it. `is_dry`: return what would be removed.

    Raises:
        SettingsBroken: the user's config cannot be used; then nothing is removed.
    """
    settings, now_ms = retention_in(app.home / "config.toml"), app.clock.now_ms()
    expired = list(_expired_notes(app, now_ms - settings.compaction_days * DAY_MS))
    if not is_dry:
        expired = [_remove_note(app, item) for item in expired]
    if settings.archived_days is not None:
        expired += _expired_sessions(app, now_ms - settings.archived_days * DAY_MS, is_dry=is_dry)
    before_ms = now_ms - FILES_DAYS * DAY_MS
    find_files = old_files if is_dry else remove_old_files
    return expired + [
        ExpiredItem("file", str(path)) for path in find_files(app.home, before_ms=before_ms)
    ]


def _expired_notes(app: App, before_ms: int) -> Iterator[ExpiredItem]:
    """The notes of histories that were compacted before then, by what their names say."""
    folders: dict[Path, str] = {}
    for workspace in app.reader.workspaces(limit=_ALL):
        if os.path.isdir(workspace):  # a shared store has directories of other machines
            location = notes_location(app.home, Path(workspace))
            if isinstance(location, NotesLocation):
                folders.setdefault(location.folder, workspace)
    for folder, workspace in folders.items():
        try:
            names = sorted(os.listdir(folder / "sessions"))
        except OSError:
            continue
        for name in names:
            match = _HISTORY_FILE.fullmatch(name)
            if match and int(match[2]) < before_ms and _is_removable(folder, f"sessions/{name}"):
                yield ExpiredItem("history_note", f"sessions/{name}", workspace)


def _is_removable(folder: Path, path: str) -> bool:
    """Whether it is a note that we have published, and nobody has written into."""
    try:
        page = NotesFolder(folder).read(path)
    except FolderFailure:
        return False
    if not isinstance(page, FileContent) or user_text_in(page.text):
        return False
    return parse_note(page.text, path=path).type == HISTORY_TYPE


def _remove_note(app: App, item: ExpiredItem) -> ExpiredItem:
    match = _HISTORY_FILE.fullmatch(Path(item.name).name)
    assert match is not None, "it was found by its name"
    session = SessionId(match[1])
    try:
        notes = open_notes(app, Path(item.workspace))
        if not isinstance(notes, OpenedNotes):
            return _with_leftover(item, notes.explain().error)
        with notes.lock.hold(UNPUBLISH_LOCK_WAIT_SECONDS):
            message = remove_page(notes, item.name, session)
        page = notes.folder.root / f"{session_note_name(session)}.md"
        if not message and page.exists() and app.reader.stream(session):
            publish_session(app, session)  # it links to the note no more
    except (StoreFailure, FolderFailure) as failure:
        return _with_leftover(item, str(failure))
    return _with_leftover(item, message) if message else item


def _with_leftover(item: ExpiredItem, reason: str) -> ExpiredItem:
    return msgspec.structs.replace(item, leftovers=(reason,))


def _expired_sessions(app: App, before_ms: int, *, is_dry: bool) -> Iterator[ExpiredItem]:
    archived = SessionFilter(is_archived=True)
    for listed in app.reader.list_sessions(archived, before=None, limit=_ALL).sessions:
        # Those of another machine that shares the store are not ours to delete.
        if listed.head.updated_ms >= before_ms or not os.path.isdir(listed.head.workspace):
            continue
        outcome = None if is_dry else deletion.delete(app, listed.session)
        leftovers = outcome.leftovers if isinstance(outcome, deletion.SessionDeletion) else ()
        yield ExpiredItem("archived_session", listed.session, listed.head.workspace, leftovers)
