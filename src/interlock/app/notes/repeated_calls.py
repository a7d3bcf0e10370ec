"""Recognise a repeated call that changes a note, and answer it with the result of the first."""

import msgspec

from interlock.app.callers.request_key import UNNAMED_VALID_MS, RequestKey
from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.results import NoteChangeResult
from interlock.app.refusals import RequestReused
from interlock.core.notes.versions import version_of
from interlock.store.notes.rows import NoteChangeRequest
from interlock.workspace.files.atomic_file import FileContent

RETENTION_MS = 30 * 86_400_000  # whoever repeats a call does so within minutes


def find_earlier_result(
    app: App, notes: OpenedNotes, call: RequestKey | None
) -> NoteChangeResult | RequestReused | None:
    """Return the result of the same call made earlier; None if the call is to be carried out."""
    earlier_request = notes.index.find_request(call.key) if call else None
    if call is None or earlier_request is None:
        return None
    if earlier_request.arguments != call.arguments:
        return RequestReused()
    if not call.is_named and app.clock.now_ms() - earlier_request.at_ms > UNNAMED_VALID_MS:
        return None
    return _confirmed_result(notes, earlier_request)


def _confirmed_result(notes: OpenedNotes, request: NoteChangeRequest) -> NoteChangeResult | None:
    """Return the recorded result, if the change was really made.

    It was recorded before the file was written, and the process may have died in between. So a
    result is returned only if the file shows it, or if the request was recorded as finished.
    """
    result = msgspec.json.decode(request.answer, type=NoteChangeResult)
    if result.result == "deleted":
        return None if _current_digest(notes, request.path) else result
    digest = _current_digest(notes, result.path)
    if version_of(digest) == result.version:
        return result
    if result.result == "moved" or digest == request.before or not request.is_done:
        return None
    hint = "this call was carried out before; the note was changed since"
    return msgspec.structs.replace(result, version=version_of(digest), hints=(hint,))


def remember(
    app: App,
    notes: OpenedNotes,
    call: RequestKey | None,
    result: NoteChangeResult,
    *,
    path: str,
    previous_digest: str,
) -> None:
    """Record the call and its result before the file at `path` is changed.

    `previous_digest` is the digest of that file; empty if there is none.
    """
    if call is None:
        return
    now_ms = app.clock.now_ms()
    caller = "" if call.is_named else call.caller
    answer = msgspec.json.encode(result)
    request = NoteChangeRequest(
        call.key, call.arguments, now_ms, path, previous_digest, answer, caller
    )
    with notes.index.transaction():
        # A caller that makes a different change is no longer repeating the earlier one: setting a
        # word, then another, then the first again are three changes.
        notes.index.forget_requests(before_ms=now_ms - RETENTION_MS, caller=call.caller, path=path)
        notes.index.put_request(request)


def finish(notes: OpenedNotes, call: RequestKey | None) -> None:
    """Record that the file was changed."""
    if call:
        notes.index.finish_request(call.key)


def withdraw(notes: OpenedNotes, call: RequestKey | None) -> None:
    """Forget the call: it changed nothing, since the file had changed or the disk failed."""
    if call:
        notes.index.withdraw_request(call.key)


def _current_digest(notes: OpenedNotes, path: str) -> str:
    note_file = notes.folder.read(path)
    return note_file.digest if isinstance(note_file, FileContent) else ""
