"""Cutting texts into words as SQLite's full-text index does, where it is not asked.

PostgreSQL's own parser knows languages, URLs and file names, and takes each apart in its own way,
and what was written lately is not indexed yet. A search must find the same everywhere, so texts are
cut into words here. It differs from SQLite where its Unicode table is too old: it takes characters
added after 2012, such as some pictures, for letters.
"""

import re
import unicodedata
from collections.abc import Sequence

_POSITION_MAX = 16_383  # PostgreSQL gives this one to all further words
_BYTES_MAX = 2_000  # a word of PostgreSQL has at most 2,046
_ACCENT = re.compile("[\u0300-\u0331]")
# Letters and digits. A separate accent belongs to the letter before it.
_WORD = re.compile("(?:[^\\W_][\u0300-\u0331]*)+")


def words_in(text: str) -> list[str]:
    """Return runs of letters and digits, in lower case, Latin ones without their accents."""
    return [_fold_word(word) for word in _WORD.findall(text)]


def has_words(texts: Sequence[str], typed_words: Sequence[str], *, all_of: bool) -> bool:
    """Whether all or some of the typed words occur in the texts, where they begin a word."""
    texts_words = [words_in(text) for text in texts]
    occurrences = (
        any(_has_phrase(words, words_in(typed)) for words in texts_words) for typed in typed_words
    )
    return all(occurrences) if all_of else any(occurrences)


def _has_phrase(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether the words of the phrase follow each other; its last one may be a beginning."""
    if not phrase:
        return False
    *whole, last = phrase
    return any(
        words[at : at + len(whole)] == whole and words[at + len(whole)].startswith(last)
        for at in range(len(words) - len(whole))
    )


def to_tsvector(texts: Sequence[str]) -> str:
    """Return the words of these texts as a `tsvector`, with a gap between any two texts."""
    lexemes: list[str] = []
    position = 1
    for text in texts:
        for word in words_in(text):
            lexemes.append(f"'{word}':{min(position, _POSITION_MAX)}")
            position += 1
        position += 1
    return " ".join(lexemes)


def to_tsquery(words: Sequence[str], *, all_of: bool) -> str:
    """Return a `tsquery` for texts with words that begin so; empty if nothing can match.

    User input is text and never syntax: only its letters and digits are used.
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
    """Return a Latin letter without its accent; one with two keeps them, as in SQLite."""
    base, _, accent = unicodedata.decomposition(letter).partition(" ")
    return chr(int(base, 16)) if accent and base < "0080" else letter
