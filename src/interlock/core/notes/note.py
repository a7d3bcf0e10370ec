"""A note: one Markdown file, and what it says to those who look for it.

The text is the truth and is kept as it is, byte for byte; everything else here is read from it.
"""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.canonical import Json

Metadata: TypeAlias = dict[str, Json]
NoteStatus = Literal["open", "active", "blocked", "done", "closed"]
"""What `core.notes.status` reads from it: importing that takes longer than naming them."""


class Frontmatter(msgspec.Struct, frozen=True):
    """The block of YAML at the top of a file."""

    text: str
    """As written, with its fences and a byte order mark; empty where there is none."""
    values: Metadata
    """What it says. Numbers, dates and booleans are the words that stand there."""
    problem: str = ""
    """Why it cannot be read, where it cannot; it is then kept and never changed."""


class Observation(msgspec.Struct, frozen=True):
    """`- [category] text #tag (context)`"""

    category: str
    text: str
    """With its tags."""
    tags: tuple[str, ...]
    context: str
    line: int
    """In the file, from 1."""


class NoteLink(msgspec.Struct, frozen=True):
    """`- kind [[Target]] (context)`, or a link in prose, whose kind is `links_to`."""

    kind: str
    target: str
    """As written, without `|alias` and `#heading`."""
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
    """Of the frontmatter and of the observations; each once, without `#`."""
    permalink: str
    """The one in the frontmatter; empty where none is written."""
    observations: tuple[Observation, ...]
    links: tuple[NoteLink, ...]
    headings: tuple[Heading, ...]

    @property
    def text(self) -> str:
        """The file."""
        return self.front.text + self.body
