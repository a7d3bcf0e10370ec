"""The results of the use cases of notes, the same for every surface."""

from typing import Literal

import msgspec

from interlock.core.notes.problems import QUALITY_RULES

ChangeOutcome = Literal["created", "replaced", "changed", "unchanged", "moved", "deleted"]


class NoteChangeResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note was written, changed, moved or deleted, or already was as requested."""

    result: ChangeOutcome
    path: str
    permalink: str
    version: str
    """Identifies the text of the note; to replace text, a caller names the version it has read."""
    hints: tuple[str, ...] = ()


class NoteText(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    path: str
    permalink: str
    title: str
    type: str
    version: str
    text: str
    """The content of the file, or a page of it."""
    modified_ms: int
    page: int = 1
    pages: int = 1
    linked_from: tuple[str, ...] = ()
    """Paths of the notes that link to it."""
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
    """The parts of a score that decide the position in the results."""

    text: float
    recency: float
    links: float
    words: str


class NoteSearchHit(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    note: NoteSummary
    score: float
    excerpt: str
    why: ScoreExplanation | None = None
    """Present if the query asked for it."""


class NoteSearchResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    hits: tuple[NoteSearchHit, ...]
    is_loose: bool = False
    """Whether no note has all the words, so that these have only some of them."""
    is_wordless: bool = False
    """Whether the query has no letter and no digit, so that nothing can be searched for."""
    has_more: bool = False
    pending: int = 0
    """The number of files that are not indexed yet."""


class RecentNotes(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: tuple[NoteSummary, ...]
    """The newest first."""
    has_more: bool = False
    pending: int = 0


class ContextLink(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A link between two notes, seen from one of them."""

    kind: str
    to: str
    """The path of the other note; if that does not exist yet, its name as written in the link."""
    is_backward: bool = False
    is_written: bool = True


class ContextNote(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A note in the neighbourhood of another."""

    note: NoteSummary
    distance: int
    via: str
    """The path of the note from which it was reached."""
    observations: tuple[str, ...]
    links: tuple[ContextLink, ...]
    links_left_out: int = 0
    """The number of further outgoing links."""


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
    """Targets of links that do not exist as notes."""
    edges: tuple[NoteGraphEdge, ...]
    """Between paths, or names of unwritten notes."""
    left_out: int = 0
    """The number of further notes."""
    unwritten_left_out: int = 0
    edges_left_out: int = 0


class NoteFinding(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    line: int
    severity: Literal["error", "warning", "hint"]
    what: str
    instead: str
    rule: str = ""
    """The rule of `core.notes.problems` that it is about, if any."""

    @property
    def is_about_quality(self) -> bool:
        return self.rule in QUALITY_RULES


class NotesCheckReport(msgspec.Struct, frozen=True, rename="camel"):
    notes: int
    findings: tuple[NoteFinding, ...]
    unreadable: tuple[str, ...]
    """Directories that could not be scanned; the folder itself is an empty string."""
