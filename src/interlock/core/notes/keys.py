"""The keys of a note: the folded names by which links and addresses refer to it."""

import re
import unicodedata
from typing import Literal

from interlock.core.notes.note_types import number_of

KeyRank = Literal[0, 1, 2]
"""0: an address, written to mean this note (its permalink, its path). 1: a name (title, file).
2: the number of a typed note, which counts where nothing else has that name."""

_SEPARATOR_RUN = re.compile(r"[\s_-]+")
_SCHEME = "memory://"
_SUFFIX = ".md"


def fold_name(text: str) -> str:
    """Return one form for all spellings of a name: `Ad hoc_Notes` becomes `ad-hoc-notes`."""
    if not text.isascii():
        text = unicodedata.normalize("NFD", text)
    text = text.casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return _SEPARATOR_RUN.sub("-", text).strip("-")


def key_of(target: str) -> str:
    """Return the key by which a link's target or an address is looked up."""
    target = target.strip().removeprefix(_SCHEME).removeprefix("./").strip("/")
    name = target[: -len(_SUFFIX)] if target.lower().endswith(_SUFFIX) else target
    return fold_name(name).strip("-/")


def folded_path(path: str) -> str:
    """Return the folded path, without the suffix that every note has."""
    return fold_name(path.removesuffix(_SUFFIX))


def keys_of(path: str, *, title: str, permalink: str) -> dict[str, KeyRank]:
    """Return all keys of one note.

    A file in no directory has a name and no address: a link from a note beside a file of the same
    name means that neighbour.
    """
    path_key = folded_path(path)
    stem = fold_name(path.rpartition("/")[2].removesuffix(_SUFFIX))
    number = number_of(path)
    keys: dict[str, KeyRank] = {fold_name(str(number)): 2} if number else {}
    keys |= {fold_name(title): 1, stem: 1}
    if "/" in path_key:
        keys[path_key] = 0
    if permalink:
        keys[key_of(permalink)] = 0
    return {key: rank for key, rank in keys.items() if key}
