"""Addresses: how a note is named by whoever wants to read it.

`memory://permalink`, `memory://Title With Spaces`, `memory://folder/*`; without the scheme a
permalink, a title, a path (`folder/name.md`) or a link as it is written (`[[Title]]`). There is
no part for a project: an address never leaves the notes it is used in.
"""

import re
from typing import Final
from urllib.parse import unquote

import msgspec

from interlock.core.notes.keys import key_of

SCHEME: Final = "memory://"
CHARS_MAX: Final = 1_000
WILDCARDS_MAX: Final = 8  # SQLite tries every place for each: more would be slow on purpose

_LINK: Final = re.compile(r"!?\[\[([^\[\]]*)\]\]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DRIVE: Final = re.compile(r"[A-Za-z]:/")
_STARS: Final = re.compile(r"\*+")
_GLOB_SPECIAL: Final = re.compile(r"[\[?]")


class NoteAddress(msgspec.Struct, frozen=True):
    text: str
    """As it was meant: without scheme, brackets and percent signs."""
    key: str
    """To be compared with the keys of permalinks, titles and paths."""
    glob: str = ""
    """For SQLite's GLOB on those keys; empty where the address has no wildcard."""


class InvalidNoteAddress(msgspec.Struct, frozen=True):
    """It names no note and never will."""

    reason: str
    """What is true of it."""


def parse_address(text: str) -> NoteAddress | InvalidNoteAddress:
    if len(text) > CHARS_MAX:
        return InvalidNoteAddress(f"is longer than {CHARS_MAX} characters")
    named = _strip_notation(text.strip())
    if _CONTROL.search(named):
        return InvalidNoteAddress("has characters that cannot be seen")
    named = named.replace("\\", "/")
    if named.startswith("/") or _DRIVE.match(named):
        return InvalidNoteAddress("begins at the root; notes are named from their own folder")
    if {".", ".."} & {part.strip() for part in named.split("/")}:
        return InvalidNoteAddress("leaves the folder of the notes")
    key = key_of(named)
    if not key:
        return InvalidNoteAddress("is empty")
    if "*" not in key:
        return NoteAddress(named, key)
    if len(_STARS.findall(key)) > WILDCARDS_MAX:
        return InvalidNoteAddress(f"has more than {WILDCARDS_MAX} wildcards")
    return NoteAddress(named, key, glob_of(named))


def glob_of(pattern: str) -> str:
    """A pattern for SQLite's GLOB on keys. Only `*` is special; it takes folders in between too."""
    # The ends are kept: `folder/*` must not find `folder-2/x`, nor `a-*` what only begins with a.
    key = key_of(pattern)
    return _GLOB_SPECIAL.sub(lambda special: f"[{special[0]}]", _STARS.sub("*", key))


def _strip_notation(text: str) -> str:
    link = _LINK.fullmatch(text)
    if link:
        target = link[1].partition("|")[0]
        before, _, heading = target.partition("#")
        # `C#` is a title; a heading has a name.
        return (before if before.strip() and heading.strip() else target).strip()
    if text[: len(SCHEME)].lower() == SCHEME:
        return unquote(text[len(SCHEME) :], errors="replace").strip()
    return text
