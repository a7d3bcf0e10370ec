r"""Text of others, shown so that it cannot hide, turn or overwrite what is read.

A terminal obeys control characters, and Unicode has characters that reverse the text around them
or cannot be seen at all. Each of them is shown as Python writes it: `\x1b`, `\u202e`. A backslash
stays one, so whoever writes `\x1b` in words looks as if they had sent the character; that hides
nothing.
"""

import re
from typing import Final

# Letters, digits and ASCII are passed over at once; the fillers look like blanks, but are letters.
# Not compiled here: that takes more than a millisecond, and a hook rarely needs it.
_SUSPECT: Final = r"[^\w\n\t -~]|[\u115f\u1160\u3164\uffa0]"
_UNDRAWN: Final = frozenset(
    {
        *"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0",
        *map(chr, range(0xFE00, 0xFE10)),
        *map(chr, range(0xE0100, 0xE01F0)),
    }
)
"""Characters that Python calls printable, although nothing is drawn for them."""
_SPACES: Final = frozenset(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
"""Spaces of other widths, which Python does not call printable."""
_JOINERS: Final = ("\u200c", "\u200d")
_STYLE_SELECTORS: Final = ("\ufe0e", "\ufe0f")
"""They make one character a picture, or plain text."""
_LAYOUT: Final = str.maketrans({"\n": r"\n", "\t": r"\t", "\r": r"\r"})


def make_visible(text: str) -> str:
    """Return the text with escapes for what a reader would not see. Lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_SUSPECT, _escape_if_hidden, text)


def make_visible_line(text: str) -> str:
    """Return the text as one line: its line breaks and tabs are escaped too."""
    return make_visible(text).translate(_LAYOUT)


def make_visible_json(document: str) -> str:
    """Return the same JSON with JSON's own escapes for what a reader would not see."""
    return re.sub(_SUSPECT, _escape_in_json, document)


def one_line(text: str) -> str:
    """Return a name that somebody gives as one line: with single spaces, and none around it."""
    return " ".join(text.split())


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing of it."""
    return not any(_is_seen(character) and not character.isspace() for character in text)


def _escape_if_hidden(match: re.Match[str]) -> str:
    character = match[0]
    if _is_seen(character) or _has_effect(character, match.string, match.start()):
        return character
    return character.encode("unicode_escape").decode("ascii")


def _escape_in_json(match: re.Match[str]) -> str:
    character = match[0]
    if _is_seen(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _is_seen(character: str) -> bool:
    return (character.isprintable() or character in _SPACES) and character not in _UNDRAWN


def _has_effect(character: str, text: str, position: int) -> bool:
    """Whether it is seen by its effect on its neighbours: part of a line break, emoji or word."""
    before, following = text[max(0, position - 1) : position], text[position + 1 : position + 2]
    if character == "\r":
        return following == "\n"
    if character in _STYLE_SELECTORS:
        return _can_join(before)
    if character not in _JOINERS:
        return False
    if before in _STYLE_SELECTORS:
        before = text[max(0, position - 2) : position - 1]
    return _can_join(before) and _can_join(following)


def _can_join(character: str) -> bool:
    return bool(character) and not character.isascii() and _is_seen(character)
