"""Words as SQLite's full-text index takes them, for PostgreSQL's.

PostgreSQL's own parser knows languages, URLs and file names, and takes each apart in its own way.
A search must find the same in both stores, so texts are cut into words here. They differ where
SQLite's table of Unicode is too old: it takes what came after 2012, such as some pictures, for
letters.
"""

import re
import unicodedata
from collections.abc import Sequence

_POSITION_MAX = 16_383  # further ones are all that one, says PostgreSQL
_BYTES_MAX = 2_000  # a word of PostgreSQL has at most 2,046
_ACCENT = re.compile("[\u0300-\u0331]")
# Letters and digits. An accent that stands for itself belongs to the letter before it.
_WORD = re.compile("(?:[^\\W_][\u0300-\u0331]*)+")


def words_in(text: str) -> list[str]:
    """Runs of letters and digits, in small letters, Latin ones without their accents."""
    return [_fold_word(word) for word in _WORD.findall(text)]


def to_tsvector(texts: Sequence[str]) -> str:
    """The words of these texts as a `tsvector`. None of them follows one of another text."""
    found: list[str] = []
    position = 1
    for text in texts:
        for word in words_in(text):
            found.append(f"'{word}':{min(position, _POSITION_MAX)}")
            position += 1
        position += 1
    return " ".join(found)


def to_tsquery(words: Sequence[str], *, all_of: bool) -> str:
    """A `tsquery` for texts with words that begin so; empty where nothing can be found.

    What the user typed is text and never syntax: only letters and digits are left of it.
    """
    phrases = [" <-> ".join(f"'{word}'" for word in words_in(typed)) for typed in words]
    parts = [f"({phrase}:*)" if phrase else "" for phrase in phrases]
    if all_of:
        return " & ".join(parts) if all(parts) else ""
    return " | ".join(part for part in parts if part)


def _fold_word(word: str) -> str:
    if word.isascii():
        return word[:_BYTES_MAX].lower()
    letters = "".join(_strip_accent(letter).lower() for letter in _ACCENT.sub("", word))
    return letters.encode()[:_BYTES_MAX].decode(errors="ignore")


def _strip_accent(letter: str) -> str:
    """A Latin letter without its accent; one with two keeps them, as SQLite has it."""
    base, _, accent = unicodedata.decomposition(letter).partition(" ")
    return chr(int(base, 16)) if accent and base < "0080" else letter
