"""A note: one Markdown file, and everything that is parsed from it.

The text is the truth and is kept as it is, byte for byte; everything else here is read from it.
"""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.canonical import Json

Metadata: TypeAlias = dict[str, Json]
NoteStatus = Literal["open", "active", "blocked", "done", "closed"]
"""The words of `core.notes.status`, which takes longer to import than they do to repeat here."""


class Frontmatter(msgspec.Struct, frozen=True):
    """The block of YAML at the top of a file."""

    text: str
    """As written, with its fences and a byte order mark; empty where there is none."""
    values: Metadata
    """The parsed values. Numbers, dates and booleans are strings, as they are written."""
    problem: str = ""
    """The reason it cannot be read, if it cannot; it is then kept and never changed."""


class Observation(msgspec.Struct, frozen=True):
    """`- [category] text #tag (context)`"""

    category: str
    text: str
    """The text, with its tags."""
    tags: tuple[str, ...]
    context: str
    line: int
    """The line in the file, from 1."""


class NoteLink(msgspec.Struct, frozen=True):
    """`- kind [[Target]] (context)`, or a link in prose, whose kind is `links_to`."""

    kind: str
    target: str
    """The target as written, without `|alias` and `#heading`."""
    context: str
    line: int


class Heading(msgspec.Struct, frozen=True):
    level: int
    text: str
    line: int


class Note(msgspec.Struct, frozen=True):
    front: Frontmatter
    body: str
    title: str
    type: str
    tags: tuple[str, ...]
    """Those of the frontmatter and of the observations; each once, without `#`."""
    permalink: str
    """The permalink in the frontmatter; empty where none is written."""
    observations: tuple[Observation, ...]
    links: tuple[NoteLink, ...]
    headings: tuple[Heading, ...]

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.front.text + self.body
