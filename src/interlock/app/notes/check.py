"""Check the notes: unreadable files, names, numbers, statuses, and links without a target."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from interlock.app.context import App
from interlock.app.notes.project_notes import OpenedNotes
from interlock.app.notes.results import NoteFinding, NotesCheckReport
from interlock.app.notes.sync import parse_note_text
from interlock.app.notes.write_and_index import refuse_on_disk_failure
from interlock.core.notes.fts_query import UNDECODED_BYTE, one_line
from interlock.core.notes.note_types import NoteNumber, number_of
from interlock.core.notes.problems import find_problems, is_published
from interlock.core.refusal import Refusal
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.projects.notes_folder import SUFFIX

LINKS_MAX = 10_000
_SEVERITY_ORDER = {"error": 0, "warning": 1, "hint": 2}


@refuse_on_disk_failure
def check_notes(app: App, notes: OpenedNotes) -> NotesCheckReport | Refusal:
    """Return all findings, the gravest first; those about mere quality come last."""
    synced = notes.refresh(app, seconds_max=None)
    paths = [title.path for title in notes.index.titles()]
    unread_files = [path for path in synced.unreadable if path.endswith(SUFFIX)]
    findings = [
        *_findings_in_files(notes, sorted({*paths, *unread_files})),
        *_findings_on_skipped_files(notes, synced.skipped),
        *_duplicate_findings(notes, paths),
        *_link_findings(notes),
    ]
    findings.sort(key=_sort_key)
    unreadable_directories = tuple(path for path in synced.unreadable if path not in unread_files)
    return NotesCheckReport(len(paths), tuple(findings), unreadable_directories)


def _sort_key(finding: NoteFinding) -> tuple[int, bool, str, int, str]:
    gravity = _SEVERITY_ORDER[finding.severity]
    return gravity, finding.is_about_quality, finding.path, finding.line, finding.what


def _findings_in_files(notes: OpenedNotes, paths: Sequence[str]) -> Iterator[NoteFinding]:
    for path in paths:
        try:
            note_file = notes.folder.read(path)
        except FolderFailure as failure:
            # The other files may be readable all the same.
            hint = one_line(failure.hint).removesuffix(".")
            remedy = f"{hint[:1].lower()}{hint[1:]}"
            yield NoteFinding(path, 0, "error", one_line(str(failure)), remedy)
            continue
        if isinstance(note_file, FileContent):  # else it was removed since it was listed
            yield from _findings_in_text(path, note_file.text)


def _findings_in_text(path: str, text: str) -> Iterator[NoteFinding]:
    note, problem = parse_note_text(path, text)
    if problem:
        message = f"nothing but its name is known: {problem[:1].lower()}{problem[1:]}"
        yield NoteFinding(path, 0, "error", message, "mend the file, or move it out of the notes")
        return
    if undecoded := UNDECODED_BYTE.search(text):
        line = text.count("\n", 0, undecoded.start()) + 1
        message = "it is not UTF-8 here; these bytes are kept, but nobody can read or find them"
        yield NoteFinding(path, line, "error", message, "save the file as UTF-8")
    for found_problem in find_problems(path, note):
        message, remedy = one_line(found_problem.message), one_line(found_problem.suggestion)
        yield NoteFinding(path, 0, found_problem.severity, message, remedy, found_problem.rule)


def _findings_on_skipped_files(notes: OpenedNotes, paths: Sequence[str]) -> Iterator[NoteFinding]:
    for path in paths:
        shown_path = one_line(UNDECODED_BYTE.sub("\ufffd", path))
        reason = one_line(UNDECODED_BYTE.sub("\ufffd", notes.folder.skip_reason(path)))
        message = f"it is not read as a note: {reason}"
        yield NoteFinding(
            shown_path, 0, "warning", message, "give it another name, or move it elsewhere"
        )


def _duplicate_findings(notes: OpenedNotes, paths: Sequence[str]) -> Iterator[NoteFinding]:
    """Yield the numbers and permalinks that several notes share."""
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
            message = f"{one_line(str(name))} is {holders[0]} already"
            yield NoteFinding(path, 0, "error", message, "give one of them another")


def _link_findings(notes: OpenedNotes) -> Iterator[NoteFinding]:
    for link in notes.index.unresolved_links(limit=LINKS_MAX):
        if not is_published(link.path):
            message = f"[[{one_line(link.target)}]] leads nowhere yet"
            yield NoteFinding(
                link.path, link.line, "hint", message, "write that note, or correct the link"
            )
    for link, paths in notes.index.ambiguous_links(limit=LINKS_MAX):
        if not is_published(link.path):
            message = f"[[{one_line(link.target)}]] may mean {', '.join(paths)}"
            remedy = "name one by its path or its permalink"
            yield NoteFinding(link.path, link.line, "warning", message, remedy)
