"""Changing the files: compared, written, noted in the index; or refused, with what is different."""

import difflib
import functools
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from interlock.app.callers.request_key import RequestKey
from interlock.app.context import App
from interlock.app.notes import repeated_calls
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import BadNoteName, NoteChanged, NoteNotWritten, NoteRefusal
from interlock.app.notes.results import ChangeOutcome, NoteChangeResult
from interlock.app.notes.sync import parse_note_text
from interlock.core.notes.fts_query import label
from interlock.core.notes.naming import permalink_of
from interlock.core.notes.note import Note
from interlock.core.notes.versions import digest_of, version_of
from interlock.store.failures import StoreDamaged, StoreFailure
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileConflict, FileContent, WrittenFile
from interlock.workspace.files.sandboxed_path import InvalidNotePath
from interlock.workspace.projects.notes_folder import CaseCollision

DIFF_LINES_MAX = 60
LINE_CHARS_MAX = 300
COMPARED_LINES_MAX = 2_000  # of each side: difflib takes time with the square of them
DIFF_CONTEXT_LINES = 2

Params = ParamSpec("Params")
Outcome = TypeVar("Outcome")


def refuse_on_disk_failure(
    use_case: Callable[Params, Outcome],
) -> Callable[Params, Outcome | NoteNotWritten]:
    """A use case to which a disk that fails is one more reason to say no."""

    @functools.wraps(use_case)
    def used(*args: Params.args, **kwargs: Params.kwargs) -> Outcome | NoteNotWritten:
        try:
            try:
                return use_case(*args, **kwargs)
            except StoreDamaged:
                # Of the index, which is only a copy of what the files say.
                for opened in (one for one in args if isinstance(one, OpenedNotes)):
                    opened.discard_index()
                return use_case(*args, **kwargs)
        except FolderFailure as failure:
            return NoteNotWritten(str(failure), failure.hint)

    return used


def write_and_index(
    app: App,
    notes: OpenedNotes,
    path: str,
    text: str,
    *,
    existing_file: FileContent | None,
    result: ChangeOutcome,
    call: RequestKey | None = None,
    hints: tuple[str, ...] = (),
) -> NoteChangeResult | NoteRefusal:
    """Write the file, if it still is what was `found`, and take it into the index.

    The caller holds the lock. A `call` is noted first, so that it is known when it comes again.
    """
    if "\0" in text and not (existing_file and "\0" in existing_file.text):
        return NoteNotWritten("The text holds a NUL, so it is no text", "Leave that character out.")
    note, problem = parse_note_text(path, text)
    version = version_of(digest_of(text))
    done = NoteChangeResult(result, path, shown_permalink(note.permalink, path), version, hints)
    before = existing_file.digest if existing_file else ""
    repeated_calls.remember(app, notes, call, done, path=path, previous_digest=before)
    now_ms = app.clock.now_ms()
    with withdraw_request_on_failure(notes, call):
        written = notes.folder.write(path, text, expected=before or None)
    if isinstance(written, FileConflict | CaseCollision | InvalidNotePath):
        repeated_calls.withdraw(notes, call)
        return write_refusal(path, text, written)
    with index_transaction(notes, call):
        index_written(notes, path, note, written, now_ms=now_ms, problem=problem)
    return done


@contextmanager
def withdraw_request_on_failure(notes: OpenedNotes, call: RequestKey | None) -> Generator[None]:
    """Around a change of the files, which are as they were if that is not possible."""
    try:
        yield
    except FolderFailure:
        repeated_calls.withdraw(notes, call)
        raise


@contextmanager
def index_transaction(notes: OpenedNotes, call: RequestKey | None) -> Generator[None]:
    """Around what the index is told of a file that was changed: that it was, and by which call.

    Whatever the index answers, the file is changed, and so is the answer to the caller. The next
    look at the files finds what the index lacks.
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
    """Into the index, what was just written."""
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
            there = refusal.current
            version = version_of(there.digest) if there else ""
            return NoteChanged(path, version, diff_of(there.text if there else "", text))


def with_leading_blank_line(content: str) -> str:
    """With an empty line before it, where frontmatter will stand above."""
    return content if not content or content.startswith(("\n", "\r", "---")) else f"\n{content}"


def shown_permalink(written: str, path: str) -> str:
    """The one in the frontmatter, in which anything may stand; else what the path makes."""
    return label(written) or permalink_of(path)


def diff_of(before: str, after: str, *, names: tuple[str, str] = ("there now", "yours")) -> str:
    """What differs, as far as it can be shown. It is asked for while the folder is locked."""
    old, new = before.splitlines(), after.splitlines()
    alike = _common_prefix_length(old, new)
    ending = _common_prefix_length(old[alike:][::-1], new[alike:][::-1])
    first = max(0, alike - DIFF_CONTEXT_LINES)
    old_end, new_end = len(old) - ending, len(new) - ending
    if max(old_end, new_end) - alike > COMPARED_LINES_MAX:
        return _first_lines_of_each(old[alike:old_end], new[alike:new_end], alike + 1, names)
    lines = difflib.unified_diff(
        old[first : old_end + DIFF_CONTEXT_LINES],
        new[first : new_end + DIFF_CONTEXT_LINES],
        *names,
        lineterm="",
        n=DIFF_CONTEXT_LINES,
    )
    return truncate_lines([_HUNK.sub(lambda at: _shift_hunk(at, first), line) for line in lines])


def truncate_lines(lines: Sequence[str]) -> str:
    """So much of them as an answer has room for."""
    shown = [line[:LINE_CHARS_MAX] for line in lines[:DIFF_LINES_MAX]]
    if len(lines) > DIFF_LINES_MAX:
        shown.append(f"… {len(lines) - DIFF_LINES_MAX} more lines")
    return "\n".join(shown)


_HUNK = re.compile(r"\A@@ -(\d+)(\S*) \+(\d+)(\S*) @@\Z")


def _shift_hunk(hunk: re.Match[str], by: int) -> str:
    """Where it is in the whole file, and not in what was compared."""
    return f"@@ -{int(hunk[1]) + by}{hunk[2]} +{int(hunk[3]) + by}{hunk[4]} @@"


def _common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _first_lines_of_each(
    old: Sequence[str], new: Sequence[str], line: int, names: tuple[str, str]
) -> str:
    each = DIFF_LINES_MAX // 2
    shown = [f"- {text}" for text in old[:each]] + [f"+ {text}" for text in new[:each]]
    counted = f"{len(old)} lines ({names[0]}) and {len(new)} lines ({names[1]})"
    return f"From line {line} on, {counted} differ. The first of each:\n{truncate_lines(shown)}"
