"""The status of a note in one of five words, whatever people call it.

`open`: nobody works on it yet · `active`: somebody does, or it is in force · `blocked`: it waits ·
`done` · `closed`: nothing more will come of it.
"""

import re
from typing import Final

from interlock.core.notes.note import Note, NoteStatus
from interlock.core.notes.note_types import TYPES

_WORDS: Final[dict[NoteStatus, str]] = {
    "open": "open not-started todo to-do draft new planned proposed pending backlog ready",
    "active": "active in-progress wip doing started ongoing current approved accepted",
    "blocked": "blocked stuck waiting on-hold paused",
    "done": "done complete completed finished resolved fixed implemented shipped merged",
    "closed": (
        "closed abandoned cancelled canceled rejected superseded deprecated obsolete archived"
        " deferred wontfix wont-fix ended"
    ),
}
_STATUS_BY_WORD: Final[dict[str, NoteStatus]] = {
    word: status for status, words in _WORDS.items() for word in words.split()
}
_SPACING: Final = re.compile(r"[\s_\-]+")
_TITLE_PREFIX: Final = re.compile(r"\s*(WIP|TODO|DONE|BLOCKED|CLOSED):")
_TITLE_BRACKETS: Final = re.compile(r"\[(wip|todo|done|blocked|closed)\]", re.IGNORECASE)
# `**Status:** done`, `- Status: done`, `## Status` with the word on the next line that has any.
_STATUS_LINE: Final = re.compile(
    r"^[ \t]*(?:[#>*\-][#>*\- \t]*+)?status[ \t]*+(?:\*\*)?(?::[ \t*`]*+|[ \t]*+\r?\n\s*+[*`]*+)"
    r"([A-Za-z][A-Za-z_\-]*+(?: progress| hold| started)?)",
    re.IGNORECASE | re.MULTILINE,
)


def status_of(note: Note) -> NoteStatus | None:
    """Return the status of the note, or None.

    It is in the frontmatter, else in a line of the text, else in a mark in the title.
    """
    value = note.front.values.get("status")
    if isinstance(value, str) and (status := parse_status(value)):
        return status
    line = _STATUS_LINE.search(note.body)
    if line and (status := parse_status(line[1])):
        return status
    mark = _TITLE_PREFIX.match(note.title) or _TITLE_BRACKETS.search(note.title)
    return _STATUS_BY_WORD[mark[1].casefold()] if mark else None


def parse_status(word: str) -> NoteStatus | None:
    """Return the status that a word means; None where nobody can say."""
    return _STATUS_BY_WORD.get(_normalise_word(word))


def is_allowed(word: str, type_name: str) -> bool:
    """Whether a note of that type may have this status: a word of the type, or one with a meaning.

    Notes of types that are not ours may use any word.
    """
    if type_name.casefold() not in TYPES:
        return bool(word.strip())
    type_statuses = _type_statuses(type_name)
    return (
        _normalise_word(word) in type_statuses if type_statuses else parse_status(word) is not None
    )


def allowed_words(type_name: str) -> tuple[str, ...]:
    """Return the words to suggest to people."""
    return _type_statuses(type_name) or tuple(_WORDS)


def _type_statuses(type_name: str) -> tuple[str, ...]:
    type_ = TYPES.get(type_name.casefold())
    return type_.statuses if type_ else ()


def _normalise_word(word: str) -> str:
    return _SPACING.sub("-", word.strip().casefold())
