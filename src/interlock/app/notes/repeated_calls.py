"""A call that changes a note, made again: answered from the first, unless that came to nothing."""

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
    """What the same call came to before; None where it is to be carried out."""
    before = notes.index.find_request(call.key) if call else None
    if call is None or before is None:
        return None
    if before.arguments != call.arguments:
        return RequestReused()
    if not call.is_named and app.clock.now_ms() - before.at_ms > UNNAMED_VALID_MS:
        return None
    return _confirmed_result(notes, before)


def _confirmed_result(notes: OpenedNotes, before: NoteChangeRequest) -> NoteChangeResult | None:
    """It was noted before the file was written, and the process may have died in between.

    Nothing is answered as done that cannot be seen, or was not seen, to be so.
    """
    done = msgspec.json.decode(before.answer, type=NoteChangeResult)
    if done.result == "deleted":
        return None if _current_digest(notes, before.path) else done
    at = _current_digest(notes, done.path)
    if version_of(at) == done.version:
        return done
    if done.result == "moved" or at == before.before or not before.is_done:
        return None
    hint = "this call was carried out before; the note was changed since"
    return msgspec.structs.replace(done, version=version_of(at), hints=(hint,))


def remember(
    app: App,
    notes: OpenedNotes,
    call: RequestKey | None,
    result: NoteChangeResult,
    *,
    path: str,
    previous_digest: str,
) -> None:
    """`before` is the digest of the file at `path` that is about to be changed; empty for none."""
    if call is None:
        return
    now_ms = app.clock.now_ms()
    caller = "" if call.is_named else call.caller
    answer = msgspec.json.encode(result)
    request = NoteChangeRequest(
        call.key, call.arguments, now_ms, path, previous_digest, answer, caller
    )
    with notes.index.transaction():
        # Who has gone on to something else does not repeat itself: to set a word, set another
        # and set the first again are three changes.
        notes.index.forget_requests(before_ms=now_ms - RETENTION_MS, caller=call.caller, path=path)
        notes.index.put_request(request)


def finish(notes: OpenedNotes, call: RequestKey | None) -> None:
    """The file was changed."""
    if call:
        notes.index.finish_request(call.key)


def withdraw(notes: OpenedNotes, call: RequestKey | None) -> None:
    """The call came to nothing: somebody else was faster, or the disk failed."""
    if call:
        notes.index.withdraw_request(call.key)


def _current_digest(notes: OpenedNotes, path: str) -> str:
    found = notes.folder.read(path)
    return found.digest if isinstance(found, FileContent) else ""
