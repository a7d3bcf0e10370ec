"""What the use cases of notes come to, for every surface alike."""

from typing import Literal

import msgspec

from interlock.core.notes.problems import QUALITY_RULES

Result = Literal["created", "replaced", "changed", "unchanged", "moved", "deleted"]


class Done(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note was written, changed, moved or deleted, or already was as it should be."""

    result: Result
    path: str
    permalink: str
    version: str
    """Names the text of the note; whoever replaces some of it says which text it has seen."""
    hints: tuple[str, ...] = ()


class NoteText(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    path: str
    permalink: str
    title: str
    type: str
    version: str
    text: str
    """The file, or a page of it."""
    modified_ms: int
    page: int = 1
    pages: int = 1
    linked_from: tuple[str, ...] = ()
    """Paths."""
    hints: tuple[str, ...] = ()


class Described(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note in a list."""

    path: str
    title: str
    type: str
    status: str
    modified_ms: int
    tags: tuple[str, ...] = ()


class Why(msgspec.Struct, frozen=True, rename="camel"):
    """What a place in the results rests on."""

    text: float
    recency: float
    links: float
    words: str


class Hit(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    note: Described
    score: float
    excerpt: str
    why: Why | None = None
    """Where that was asked for."""


class Hits(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    hits: tuple[Hit, ...]
    is_loose: bool = False
    """No note has all the words, so these have some of them."""
    is_wordless: bool = False
    """What was asked for has no letter and no digit, so nothing can be searched for."""
    has_more: bool = False
    pending: int = 0
    """Files that are not indexed yet."""


class Recent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: tuple[Described, ...]
    """The newest first."""
    has_more: bool = False
    pending: int = 0


class Linked(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A link between two notes, seen from one of them."""

    kind: str
    to: str
    """The path of the other note; of one that is not written yet, its name as the link has it."""
    is_backward: bool = False
    is_written: bool = True


class Around(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note in the neighbourhood of another."""

    note: Described
    distance: int
    via: str
    """The path of the note that led here."""
    observations: tuple[str, ...]
    links: tuple[Linked, ...]
    links_left_out: int = 0
    """How many more it has to others."""


class Context(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: tuple[Around, ...]
    left_out: int = 0
    pending: int = 0


class Edge(msgspec.Struct, frozen=True, rename="camel"):
    source: str
    target: str
    kind: str


class Graph(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: tuple[Described, ...]
    unwritten: tuple[str, ...]
    """What links name and nobody has written."""
    edges: tuple[Edge, ...]
    """Between paths, or the names of what is not written."""
    left_out: int = 0
    """How many more notes there are."""
    unwritten_left_out: int = 0
    edges_left_out: int = 0


class Finding(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    line: int
    severity: Literal["error", "warning", "hint"]
    what: str
    instead: str
    rule: str = ""
    """Which one of `core.notes.problems` it is about, if any."""

    @property
    def is_about_quality(self) -> bool:
        return self.rule in QUALITY_RULES


class Checked(msgspec.Struct, frozen=True, rename="camel"):
    notes: int
    findings: tuple[Finding, ...]
    unreadable: tuple[str, ...]
    """Directories that could not be looked at; the folder itself is an empty string."""
