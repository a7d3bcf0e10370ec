"""The addresses by which notes are looked up.

`memory://permalink`, `memory://Title With Spaces`, `memory://folder/*`; without the scheme a
permalink, a title, a path (`folder/name.md`) or a link as written (`[[Title]]`). No part names a
project: an address never leaves the notes it is used in.
"""

import re
from typing import Final
from urllib.parse import unquote

import msgspec

from interlock.core.notes.keys import key_of

SCHEME: Final = "memory://"
CHARS_MAX: Final = 1_000
WILDCARDS_MAX: Final = 8  # SQLite tries every position for each: more could be slow on purpose

_LINK: Final = re.compile(r"!?\[\[([^\[\]]*)\]\]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DRIVE: Final = re.compile(r"[A-Za-z]:/")
_STARS: Final = re.compile(r"\*+")
_GLOB_SPECIAL: Final = re.compile(r"[\[?]")


class NoteAddress(msgspec.Struct, frozen=True):
    text: str
    """The address without scheme, brackets and percent-encoding."""
    key: str
    """The key to compare with those of permalinks, titles and paths."""
    glob: str = ""
    """The pattern for SQLite's GLOB on those keys; empty where the address has no wildcard."""


class InvalidNoteAddress(msgspec.Struct, frozen=True):
    """An address that names no note and never will."""

    reason: str
    """The predicate of a sentence about the address: `is empty`."""


def parse_address(text: str) -> NoteAddress | InvalidNoteAddress:
    if len(text) > CHARS_MAX:
        return InvalidNoteAddress(f"is longer than {CHARS_MAX} characters")
    name = _strip_notation(text.strip())
    if _CONTROL.search(name):
        return InvalidNoteAddress("has characters that cannot be seen")
    name = name.replace("\\", "/")
    if name.startswith("/") or _DRIVE.match(name):
        return InvalidNoteAddress("begins at the root; notes are named from their own folder")
    if {".", ".."} & {part.strip() for part in name.split("/")}:
        return InvalidNoteAddress("leaves the folder of the notes")
    key = key_of(name)
    if not key:
        return InvalidNoteAddress("is empty")
    if "*" not in key:
        return NoteAddress(name, key)
    if len(_STARS.findall(key)) > WILDCARDS_MAX:
        return InvalidNoteAddress(f"has more than {WILDCARDS_MAX} wildcards")
    return NoteAddress(name, key, glob_of(name))


def glob_of(pattern: str) -> str:
    """Return a pattern for SQLite's GLOB on keys. Only `*` is special; it also matches slashes."""
    # A separator beside a `*` stays: `folder/*` must not match `folder-2/x`, nor `a-*` match `ab`.
    key = key_of(pattern)
    return _GLOB_SPECIAL.sub(lambda special: f"[{special[0]}]", _STARS.sub("*", key))


def _strip_notation(text: str) -> str:
    link = _LINK.fullmatch(text)
    if link:
        target = link[1].partition("|")[0]
        name, _, heading = target.partition("#")
        # `C#` is a title: a `#` begins a heading only where text follows it.
        return (name if name.strip() and heading.strip() else target).strip()
    if text[: len(SCHEME)].lower() == SCHEME:
        return unquote(text[len(SCHEME) :], errors="replace").strip()
    return text
