"""The structs that an index of notes takes and returns."""

import msgspec

from interlock.core.notes.note import Metadata
from interlock.core.notes.stamp import FileStamp


class NoteRow(msgspec.Struct, frozen=True):
    """A note, without its text."""

    path: str
    title: str
    type: str
    status: str
    permalink: str
    """The permalink in its frontmatter; empty where none is written."""
    front: Metadata
    tags: tuple[str, ...]
    problem: str
    """The reason not all of it is known: too large, binary, or unreadable frontmatter."""
    digest: str
    size: int
    modified_ms: int


class IndexHit(msgspec.Struct, frozen=True):
    row: NoteRow
    score: float
    """bm25, the higher the better; comparable within one search only."""


class LinkRow(msgspec.Struct, frozen=True):
    path: str
    """The note in which it is written."""
    line: int
    kind: str
    target: str
    context: str
    to: str | None
    """The path of the note that it leads to; None as long as there is none."""


class ObservationRow(msgspec.Struct, frozen=True):
    path: str
    title: str
    modified_ms: int
    line: int
    category: str
    text: str
    tags: tuple[str, ...]
    context: str


class NoteTitle(msgspec.Struct, frozen=True):
    path: str
    title: str
    permalink: str


class IndexedFile(msgspec.Struct, frozen=True):
    """The part of what the index knows about a file that a scan compares."""

    stamp: FileStamp
    digest: str
    is_racy: bool
    """Whether it was read so soon after a change that the stamp says nothing."""


class NoteFilter(msgspec.Struct, frozen=True):
    """A filter of notes; an empty field does not restrict them."""

    types: tuple[str, ...] = ()
    """Any of them."""
    not_types: tuple[str, ...] = ()
    """None of them."""
    statuses: tuple[str, ...] = ()
    """Any of them; an empty one stands for notes that have none."""
    tags: tuple[str, ...] = ()
    """All of them."""
    category: str = ""
    """The category of one of its observations."""
    since_ms: int = 0
    prefix: str = ""
    """The beginning of its path: `specs/` for a directory."""


class IndexCounts(msgspec.Struct, frozen=True):
    notes: int
    observations: int
    links: int
    unresolved: int
    """Links to notes that do not exist."""
    tags: int
    problems: int


class FilterChoices(msgspec.Struct, frozen=True):
    """The values to filter by, with how many notes have each; the most common first."""

    types: dict[str, int]
    statuses: dict[str, int]
    tags: dict[str, int]
    directories: dict[str, int]


class NoteChangeRequest(msgspec.Struct, frozen=True):
    """A call that changes a note, under the name by which a repetition is recognised."""

    key: str
    arguments: str
    at_ms: int
    path: str
    """The path of the file that it changes."""
    before: str
    """The digest of the file before the call; empty where there was none."""
    answer: bytes
    """The encoded result; the caller of the index knows its form."""
    caller: str
    """The caller who made it; empty where it has a name by which anybody may repeat it."""
    is_done: bool = False
    """Whether the file is known to have been changed."""
