"""Check the notes: their names, numbers and statuses, their frontmatter, and where links lead."""

from collections import defaultdict
from collections.abc import Iterator

from interlock.app.context import App
from interlock.app.notes.changing import told
from interlock.app.notes.opened import OpenedNotes
from interlock.app.notes.refusals import NoteRefusal
from interlock.app.notes.results import Checked, Finding
from interlock.core.notes.grammar import parse
from interlock.core.notes.problems import is_published, problems
from interlock.core.notes.typed import Number, number_of
from interlock.core.notes.words import one_line
from interlock.workspace.whole_file import Found

LINKS_MAX = 10_000


@told
def check(app: App, notes: OpenedNotes) -> Checked | NoteRefusal:
    synced = notes.refresh(app, seconds_max=None)
    paths = [title.path for title in notes.index.titles()]
    found = [*_each(notes, paths), *_doubles(notes, paths), *_links(notes)]
    found.sort(key=lambda finding: (finding.path, finding.line, finding.what))
    return Checked(len(paths), tuple(found), synced.unreadable)


def _each(notes: OpenedNotes, paths: list[str]) -> Iterator[Finding]:
    for path in paths:
        found = notes.folder.read(path)
        if not isinstance(found, Found):
            continue  # gone since it was listed
        for problem in problems(path, parse(found.text, path=path)):
            what, instead = one_line(problem.message), one_line(problem.suggestion)
            yield Finding(path, 0, problem.severity, what, instead)


def _doubles(notes: OpenedNotes, paths: list[str]) -> Iterator[Finding]:
    """Numbers and permalinks that two notes have."""
    numbers = defaultdict[Number, list[str]](list)
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
            yield Finding(path, 0, "error", what, "give one of them another")


def _links(notes: OpenedNotes) -> Iterator[Finding]:
    for link in notes.index.unresolved(limit=LINKS_MAX):
        if not is_published(link.path):
            what = f"[[{one_line(link.target)}]] leads nowhere yet"
            yield Finding(
                link.path, link.line, "hint", what, "write that note, or correct the link"
            )
