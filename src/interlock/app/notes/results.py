"""What the use cases of notes come to, for every surface alike."""

from typing import Literal

import msgspec

from interlock.core.notes.problems import QUALITY_RULES

ChangeOutcome = Literal["created", "replaced", "changed", "unchanged", "moved", "deleted"]


class NoteChangeResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note was written, changed, moved or deleted, or already was as it should be."""

    result: ChangeOutcome
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


class NoteSummary(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note in a list."""

    path: str
    title: str
    type: str
    status: str
    modified_ms: int
    tags: tuple[str, ...] = ()


class ScoreExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """What a place in the results rests on."""

    text: float
    recency: float
    links: float
    words: str


class NoteSearchHit(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    note: NoteSummary
    score: float
    excerpt: str
    why: ScoreExplanation | None = None
    """Where that was asked for."""


class NoteSearchResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    hits: tuple[NoteSearchHit, ...]
    is_loose: bool = False
    """No note has all the words, so these have some of them."""
    is_wordless: bool = False
    """What was asked for has no letter and no digit, so nothing can be searched for."""
    has_more: bool = False
    pending: int = 0
    """Files that are not indexed yet."""


class RecentNotes(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: tuple[NoteSummary, ...]
    """The newest first."""
    has_more: bool = False
    pending: int = 0


class ContextLink(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A link between two notes, seen from one of them."""

    kind: str
    to: str
    """The path of the other note; of one that is not written yet, its name as the link has it."""
    is_backward: bool = False
    is_written: bool = True


class ContextNote(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note in the neighbourhood of another."""

    note: NoteSummary
    distance: int
    via: str
    """The path of the note that led here."""
    observations: tuple[str, ...]
    links: tuple[ContextLink, ...]
    links_left_out: int = 0
    """How many more it has to others."""


class NoteContext(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: tuple[ContextNote, ...]
    left_out: int = 0
    pending: int = 0


class NoteGraphEdge(msgspec.Struct, frozen=True, rename="camel"):
    source: str
    target: str
    kind: str


class NoteGraph(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: tuple[NoteSummary, ...]
    unwritten: tuple[str, ...]
    """What links name and nobody has written."""
    edges: tuple[NoteGraphEdge, ...]
    """Between paths, or the names of what is not written."""
    left_out: int = 0
    """How many more notes there are."""
    unwritten_left_out: int = 0
    edges_left_out: int = 0


class NoteFinding(msgspec.Struct, frozen=True, rename="camel"):
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


class NotesCheckReport(msgspec.Struct, frozen=True, rename="camel"):
    notes: int
    findings: tuple[NoteFinding, ...]
    unreadable: tuple[str, ...]
    """Directories that could not be looked at; the folder itself is an empty string."""
