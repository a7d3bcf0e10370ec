"""Check the notes: what cannot be read, their names, numbers and statuses, and where links lead."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.results import NoteFinding, NotesCheckReport
from interlock.app.notes.sync import parse_note_text
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.notes.fts_query import UNDECODED_BYTE, one_line
from interlock.core.notes.note_types import NoteNumber, number_of
from interlock.core.notes.problems import find_problems, is_published
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.projects.notes_folder import SUFFIX

LINKS_MAX = 10_000
_SEVERITY_ORDER = {"error": 0, "warning": 1, "hint": 2}


@refuse_on_disk_failure
def check_notes(app: App, notes: OpenedNotes) -> NotesCheckReport | NoteRefusal:
    """The gravest first, and what only would make a note better last."""
    synced = notes.refresh(app, seconds_max=None)
    paths = [title.path for title in notes.index.titles()]
    unread = [path for path in synced.unreadable if path.endswith(SUFFIX)]
    found = [
        *_findings_in_files(notes, sorted({*paths, *unread})),
        *_findings_on_skipped_files(notes, synced.skipped),
        *_duplicate_findings(notes, paths),
        *_link_findings(notes),
    ]
    found.sort(key=_sort_key)
    elsewhere = tuple(path for path in synced.unreadable if path not in unread)
    return NotesCheckReport(len(paths), tuple(found), elsewhere)


def _sort_key(finding: NoteFinding) -> tuple[int, bool, str, int, str]:
    gravity, is_last = _SEVERITY_ORDER[finding.severity], finding.is_about_quality
    return gravity, is_last, finding.path, finding.line, finding.what


def _findings_in_files(notes: OpenedNotes, paths: Sequence[str]) -> Iterator[NoteFinding]:
    for path in paths:
        try:
            found = notes.folder.read(path)
        except FolderFailure as failure:
            # That one file cannot be read says nothing about the others.
            hint = one_line(failure.hint).removesuffix(".")
            instead = f"{hint[:1].lower()}{hint[1:]}"
            yield NoteFinding(path, 0, "error", one_line(str(failure)), instead)
            continue
        if isinstance(found, FileContent):  # else it is gone since it was listed
            yield from _findings_in_text(path, found.text)


def _findings_in_text(path: str, text: str) -> Iterator[NoteFinding]:
    note, problem = parse_note_text(path, text)
    if problem:
        what = f"nothing but its name is known: {problem[:1].lower()}{problem[1:]}"
        yield NoteFinding(path, 0, "error", what, "mend the file, or move it out of the notes")
        return
    if foul := UNDECODED_BYTE.search(text):
        line = text.count("\n", 0, foul.start()) + 1
        what = "it is not UTF-8 here; these bytes are kept, but nobody can read or find them"
        yield NoteFinding(path, line, "error", what, "save the file as UTF-8")
    for found in find_problems(path, note):
        what, instead = one_line(found.message), one_line(found.suggestion)
        yield NoteFinding(path, 0, found.severity, what, instead, found.rule)


def _findings_on_skipped_files(notes: OpenedNotes, paths: Sequence[str]) -> Iterator[NoteFinding]:
    for path in paths:
        shown = one_line(UNDECODED_BYTE.sub("\ufffd", path))
        why = one_line(UNDECODED_BYTE.sub("\ufffd", notes.folder.skip_reason(path)))
        what = f"it is not read as a note: {why}"
        yield NoteFinding(shown, 0, "warning", what, "give it another name, or move it elsewhere")


def _duplicate_findings(notes: OpenedNotes, paths: Sequence[str]) -> Iterator[NoteFinding]:
    """Numbers and permalinks that two notes have."""
    numbers = defaultdict[NoteNumber, list[str]](list)
    for path in paths:
        if number := number_of(path):
            numbers[number].append(path)
    permalinks = defaultdict[str, list[str]](list)
    for title in notes.index.titles():
        if title.permalink:
            permalinks[title.permalink].append(title.path)
    for name, holders in (*numbers.items(), *permalinks.items()):
        for path in holders[1:]:
            what = f"{one_line(str(name))} is {holders[0]} already"
            yield NoteFinding(path, 0, "error", what, "give one of them another")


def _link_findings(notes: OpenedNotes) -> Iterator[NoteFinding]:
    for link in notes.index.unresolved_links(limit=LINKS_MAX):
        if not is_published(link.path):
            what = f"[[{one_line(link.target)}]] leads nowhere yet"
            yield NoteFinding(
                link.path, link.line, "hint", what, "write that note, or correct the link"
            )
    for link, paths in notes.index.ambiguous_links(limit=LINKS_MAX):
        if not is_published(link.path):
            what = f"[[{one_line(link.target)}]] may mean {', '.join(paths)}"
            instead = "name one by its path or its permalink"
            yield NoteFinding(link.path, link.line, "warning", what, instead)
