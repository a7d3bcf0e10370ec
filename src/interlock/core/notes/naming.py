"""The slugs, permalinks, canonical titles and file names made from titles and paths.

Letters of every script are kept as they are; nothing is transliterated and no accent is dropped.
"""

import re
import unicodedata
from typing import Final

from interlock.core.notes.invisible import INVISIBLE_CHARACTER

FILE_NAME_BYTES_MAX: Final = 200  # of 255 on most file systems: room for a suffix while writing
SUFFIX: Final = ".md"

_APOSTROPHES: Final = str.maketrans(dict.fromkeys("'\u2019\u02bc"))
_FORBIDDEN: Final = r'/\\:*?"<>|\x00-\x1f\x7f-\x9f\u2028\u2029'
_SEPARATORS: Final = re.compile(rf"[\s{_FORBIDDEN}]+")
# Invisible characters would make two names look alike.
_INVISIBLE: Final = re.compile(INVISIBLE_CHARACTER)
_RESERVED: Final = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\xb9\xb2\xb3])(?=\s*(?:\.|\Z))", re.I
)


def slug(title: str) -> str:
    """Return letters and digits in lower case, with hyphens between the words; never empty."""
    text = normalise_unicode(title).lower().translate(_APOSTROPHES)
    words = "".join(char if _is_word_char(char) else " " for char in text)
    return "-".join(words.split()) or _hex_slug(title)


def is_slug(text: str) -> bool:
    """True if `text` may be used as a slug: in any case, and with underscores."""
    return bool(text) and all(char in "-_" or _is_word_char(char) for char in text)


def permalink_of(path: str) -> str:
    """Return the address of a file that does not state its own."""
    parts = path.removesuffix(SUFFIX).split("/")
    return "/".join(slug(part) for part in parts if part not in ("", ".", ".."))


def canonical_title(title: str) -> str:
    """Return the form that the titles of two notes of one type share if they mean the same.

    Case, punctuation, spacing and a number that a type gives make no difference: `ADR-007: Use
    SQLite` and `Use SQLite` are the same decision. Days do: two sessions may have one subject.
    """
    words = _TYPE_NUMBER_PREFIX.sub("", " ".join(_canonical_words(title)), count=1).strip()
    if words:
        return words
    return " ".join(_canonical_words(title)) or _casefold(title.strip())


def file_name(title: str) -> str:
    """Return a name for the file of a note that every file system accepts, close to its title."""
    stem = _INVISIBLE.sub("", normalise_unicode(title)).strip().removesuffix(SUFFIX)
    stem = _SEPARATORS.sub(_separator_for, stem).strip(" .-")
    if _RESERVED.match(stem):
        stem = f"_{stem}"
    return (_truncate_to_bytes(stem, FILE_NAME_BYTES_MAX - len(SUFFIX)) or "untitled") + SUFFIX


def normalise_unicode(text: str) -> str:
    """Return the text in NFC, and without the lone surrogates of a name that is not UTF-8."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))


# The prefixes of `note_types.TYPES` that are followed by a number, as words of a canonical title.
_TYPE_NUMBER_PREFIX: Final = re.compile(
    r"(?:adr|req|design|task|analysis|feature|epic|crit|qa|sec|skill) [0-9]{1,3}(?: |\Z)"
)


def _canonical_words(title: str) -> list[str]:
    text = _casefold(title).translate(_APOSTROPHES)
    words = "".join(
        # `C++` and `C#` are not `C`.
        char if _is_word_char(char) or (char in "+#" and previous not in " ([") else " "
        for previous, char in zip(" " + text, text, strict=False)
    )
    return words.split()


def _casefold(text: str) -> str:
    # Composed before as well: folding to several characters must not depend on the form it came in.
    return unicodedata.normalize("NFC", normalise_unicode(text).casefold())


def _is_word_char(char: str) -> bool:
    # Marks too: in many scripts they are the vowels.
    return char.isalnum() or (not char.isascii() and unicodedata.category(char)[0] == "M")


def _hex_slug(text: str) -> str:
    """Return a slug for a title of symbols only, so that two of them do not get one name."""
    return "-".join(f"{ord(char):x}" for char in text.strip()[:8]) or "untitled"


def _separator_for(run: re.Match[str]) -> str:
    return " " if any(char.isspace() for char in run[0]) else "-"


def _truncate_to_bytes(text: str, bytes_max: int) -> str:
    raw = text.encode("utf-8")
    if len(raw) <= bytes_max:
        return text
    head = raw[:bytes_max].decode("utf-8", "ignore")
    # Not between a letter and its mark, nor inside an emoji that is made of several characters.
    while head and unicodedata.category(text[len(head)])[0] in "MC":
        head = head[:-1]
    return head.rstrip(" .-\u200c\u200d")
