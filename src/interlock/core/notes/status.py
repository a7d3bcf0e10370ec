"""The status of a note in one of five words, whatever people call it.

`open` nobody is at it yet · `active` somebody is, or it is in force · `blocked` it waits ·
`done` · `closed` nothing more will come of it.
"""

import re
from typing import Final

from interlock.core.notes.note import Note, Status
from interlock.core.notes.note_types import TYPES

_WORDS: Final[dict[Status, str]] = {
    "open": "open not-started todo to-do draft new planned proposed pending backlog ready",
    "active": "active in-progress wip doing started ongoing current approved accepted",
    "blocked": "blocked stuck waiting on-hold paused",
    "done": "done complete completed finished resolved fixed implemented shipped merged",
    "closed": (
        "closed abandoned cancelled canceled rejected superseded deprecated obsolete archived"
        " deferred wontfix wont-fix ended"
    ),
}
_MEANING: Final[dict[str, Status]] = {
    word: status for status, words in _WORDS.items() for word in words.split()
}
_SPACING: Final = re.compile(r"[\s_\-]+")
_BEGINS: Final = re.compile(r"\s*(WIP|TODO|DONE|BLOCKED|CLOSED):")
_BRACKETS: Final = re.compile(r"\[(wip|todo|done|blocked|closed)\]", re.IGNORECASE)
# `**Status:** done`, `- Status: done`, `## Status` and the word on the next line with any.
_LINE: Final = re.compile(
    r"^[ \t]*(?:[#>*\-][#>*\- \t]*+)?status[ \t]*+(?:\*\*)?(?::[ \t*`]*+|[ \t]*+\r?\n\s*+[*`]*+)"
    r"([A-Za-z][A-Za-z_\-]*+(?: progress| hold| started)?)",
    re.IGNORECASE | re.MULTILINE,
)


def status_of(note: Note) -> Status | None:
    """From the frontmatter, else a line of the text, else a mark in the title; or it has none."""
    written = note.front.values.get("status")
    if isinstance(written, str) and (status := meaning(written)):
        return status
    line = _LINE.search(note.body)
    if line and (status := meaning(line[1])):
        return status
    mark = _BEGINS.match(note.title) or _BRACKETS.search(note.title)
    return _MEANING[mark[1].casefold()] if mark else None


def meaning(word: str) -> Status | None:
    """None where nobody can say."""
    return _MEANING.get(_plain(word))


def fits(word: str, type_name: str) -> bool:
    """Whether a note of that type may say so: a word of the type, or one that has a meaning.

    Notes of types that are not ours say what they like.
    """
    if type_name.casefold() not in TYPES:
        return bool(word.strip())
    of_type = _of_type(type_name)
    return _plain(word) in of_type if of_type else meaning(word) is not None


def known(type_name: str) -> tuple[str, ...]:
    """The words to tell people about."""
    return _of_type(type_name) or tuple(_WORDS)


def _of_type(type_name: str) -> tuple[str, ...]:
    type_ = TYPES.get(type_name.casefold())
    return type_.statuses if type_ else ()


def _plain(word: str) -> str:
    return _SPACING.sub("-", word.strip().casefold())
