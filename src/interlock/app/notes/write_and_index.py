"""Write a changed note to its file and to the index, or refuse with the difference."""

import difflib
import functools
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

from interlock.app.append_loop import append_plan
from interlock.app.callers.caller import Caller, session_meant
from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import BadNoteName, NoteChanged, NoteNotWritten
from interlock.app.notes.results import ChangeOutcome, NoteChangeResult
from interlock.app.notes.sync import parse_note_text
from interlock.core.counting import pluralise
from interlock.core.ids import SessionId
from interlock.core.notes.fts_query import label
from interlock.core.notes.naming import permalink_of
from interlock.core.notes.note import Frontmatter, Note
from interlock.core.notes.versions import digest_of, version_of
from interlock.core.refusal import Refusal
from interlock.core.session.events import NoteWritten
from interlock.core.session.plan import EventDraft, Plan, plan
from interlock.store.failures import StoreDamaged, StoreFailure
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileConflict, FileContent, WrittenFile
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects.notes_folder import CaseCollision

DIFF_LINES_MAX = 60
LINE_CHARS_MAX = 300
COMPARED_LINES_MAX = 2_000  # on each side: difflib takes quadratic time
DIFF_CONTEXT_LINES = 2

Params = ParamSpec("Params")
Outcome = TypeVar("Outcome")


def refuse_on_disk_failure(
    use_case: Callable[Params, Outcome],
) -> Callable[Params, Outcome | Refusal]:
    """Wrap a use case so that a failure of the disk becomes a refusal."""

    @functools.wraps(use_case)
    def run_use_case(*args: Params.args, **kwargs: Params.kwargs) -> Outcome | Refusal:
        try:
            try:
                return use_case(*args, **kwargs)
            except StoreDamaged:
                # The index is damaged, which is only a copy of the files.
                for notes in (arg for arg in args if isinstance(arg, OpenedNotes)):
                    notes.discard_index()
                return use_case(*args, **kwargs)
        except FolderFailure as failure:
            return NoteNotWritten(str(failure), failure.hint)

    return run_use_case


def write_and_index(
    app: App,
    notes: OpenedNotes,
    path: str,
    text: str,
    *,
    existing_file: FileContent | None,
    result: ChangeOutcome,
    front: Frontmatter | None = None,
    call: RequestKey | None = None,
    hints: tuple[str, ...] = (),
) -> NoteChangeResult | Refusal:
    """Write the file, if it still is the `existing_file`, and add it to the index.

    `front`: the frontmatter of `text`, where it is known.
    The caller holds the lock. A `call` is recorded first, so that it is recognised if repeated.
    """
    if "\0" in text and not (existing_file and "\0" in existing_file.text):
        return NoteNotWritten("The text holds a NUL, so it is no text", "Leave that character out.")
    note, problem = parse_note_text(path, text, front)
    version = version_of(digest_of(text))
    permalink = shown_permalink(note.permalink, path)
    change_result = NoteChangeResult(result, path, permalink, version, hints)
    previous_digest = existing_file.digest if existing_file else ""
    repeated_calls.remember(
        app, notes, call, change_result, path=path, previous_digest=previous_digest
    )
    now_ms = app.clock.now_ms()
    with withdraw_request_on_failure(notes, call):
        written = notes.folder.write(path, text, expected=previous_digest or None)
    if isinstance(written, FileConflict | CaseCollision | InvalidNotePath):
        repeated_calls.withdraw(notes, call)
        return write_refusal(path, text, written)
    with index_transaction(notes, call):
        index_written(notes, path, note, written, now_ms=now_ms, problem=problem)
    return change_result


@contextmanager
def withdraw_request_on_failure(notes: OpenedNotes, call: RequestKey | None) -> Generator[None]:
    """Forget the call if the change of the files fails; these are then as they were."""
    try:
        yield
    except FolderFailure:
        repeated_calls.withdraw(notes, call)
        raise


@contextmanager
def index_transaction(notes: OpenedNotes, call: RequestKey | None) -> Generator[None]:
    """Update the index for a changed file, and mark the call as finished, in one transaction.

    If the index fails, the file is changed all the same, and the caller is told so. The next
    refresh finds what the index lacks.
    """
    try:
        with notes.index.transaction():
            yield
            repeated_calls.finish(notes, call)
    except StoreFailure:
        notes.mark_stale()


def index_written(
    notes: OpenedNotes,
    path: str,
    note: Note,
    written: WrittenFile,
    *,
    now_ms: int,
    problem: str = "",
) -> None:
    """Add a note that was just written to the index."""
    notes.index.put(
        path,
        note,
        digest=written.digest,
        stamp=written.stamp,
        is_racy=written.stamp.is_racy(now_ms),
        problem=problem,
    )
    notes.acknowledge_own_write(path, written.stamp)


def write_refusal(
    path: str, text: str, refusal: FileConflict | CaseCollision | InvalidNotePath
) -> NoteChanged | BadNoteName:
    match refusal:
        case CaseCollision():
            return BadNoteName(path, f"`{refusal.path}` differs from it only in case")
        case InvalidNotePath():
            return BadNoteName(path, refusal.reason)
        case FileConflict():
            current = refusal.current
            version = version_of(current.digest) if current else ""
            return NoteChanged(path, version, diff_of(current.text if current else "", text))


def with_leading_blank_line(content: str) -> str:
    """Return the content with an empty line before it, to separate it from the frontmatter."""
    return content if not content or content.startswith(("\n", "\r", "---")) else f"\n{content}"


def shown_permalink(written: str, path: str) -> str:
    """Return the permalink from the frontmatter, made safe to show; else that of the path."""
    return label(written) or permalink_of(path)


def diff_of(before: str, after: str, *, names: tuple[str, str] = ("there now", "yours")) -> str:
    """Return a unified diff, cut to a length that can be shown.

    It is computed while the folder is locked, so lines that both texts begin or end with are left
    out before they are compared.
    """
    old, new = before.splitlines(), after.splitlines()
    prefix = _common_prefix_length(old, new)
    suffix = _common_prefix_length(old[prefix:][::-1], new[prefix:][::-1])
    first = max(0, prefix - DIFF_CONTEXT_LINES)
    old_end, new_end = len(old) - suffix, len(new) - suffix
    if max(old_end, new_end) - prefix > COMPARED_LINES_MAX:
        return _first_lines_of_each(old[prefix:old_end], new[prefix:new_end], prefix + 1, names)
    lines = difflib.unified_diff(
        old[first : old_end + DIFF_CONTEXT_LINES],
        new[first : new_end + DIFF_CONTEXT_LINES],
        *names,
        lineterm="",
        n=DIFF_CONTEXT_LINES,
    )
    return truncate_lines(
        [_HUNK.sub(lambda hunk: _shift_hunk(hunk, first), line) for line in lines]
    )


def truncate_lines(lines: Sequence[str]) -> str:
    """Return as many of the lines as an answer has room for."""
    shown = [line[:LINE_CHARS_MAX] for line in lines[:DIFF_LINES_MAX]]
    if len(lines) > DIFF_LINES_MAX:
        shown.append(f"… {len(lines) - DIFF_LINES_MAX} more lines")
    return "\n".join(shown)


_HUNK = re.compile(r"\A@@ -(\d+)(\S*) \+(\d+)(\S*) @@\Z")


def _shift_hunk(hunk: re.Match[str], by: int) -> str:
    """Return the hunk header with line numbers of the whole file, not of the compared part."""
    return f"@@ -{int(hunk[1]) + by}{hunk[2]} +{int(hunk[3]) + by}{hunk[4]} @@"


def _common_prefix_length(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of lines that are the same from the beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(old), len(new)))


def _first_lines_of_each(
    old: Sequence[str], new: Sequence[str], line: int, names: tuple[str, str]
) -> str:
    lines_each = DIFF_LINES_MAX // 2
    shown = [f"- {text}" for text in old[:lines_each]] + [f"+ {text}" for text in new[:lines_each]]
    counts = [pluralise(len(part), "line") for part in (old, new)]
    change = f"{counts[0]} ({names[0]}) differ from {counts[1]} ({names[1]})"
    return f"From line {line} on, {change}. The first of each:\n{truncate_lines(shown)}"


def calling_session(app: App, caller: Caller) -> SessionId | None:
    """Return the session in which a note is written; None if it is unknown.

    A store that is missing or unusable does not prevent a note from being written: it is a file.
    """
    with suppress(StoreFailure):
        session = session_meant(app, caller)
        return session if isinstance(session, str) else None
    return None


def record_written_note(
    app: App, session: SessionId | None, result: NoteChangeResult | Refusal
) -> None:
    """Record that an attended session has written or edited a note; of each note once."""
    if session is None or not isinstance(result, NoteChangeResult) or result.result == "unchanged":
        return
    key = f"note-written:{result.permalink}"

    def decide() -> Plan | None:
        with app.log.snapshot():
            stream = app.log.stream(session)
            attended = stream.head.attended if stream and stream.head else None
            is_open = attended is not None and attended.status != "ended"
            if stream is None or not is_open or app.log.event_with_key(session, key):
                return None
        draft = EventDraft(key, NoteWritten(result.permalink))
        return plan(stream, [draft], blobs={}, at_ms=app.clock.now_ms())

    with suppress(StoreFailure):  # the note is already written, with its origin in it
        append_plan(app, decide)
