"""What an index answers."""

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
    """The one in its frontmatter; empty where none is written."""
    front: Metadata
    tags: tuple[str, ...]
    problem: str
    """Why not all of it is known: it is too large, binary, or its frontmatter cannot be read."""
    digest: str
    size: int
    modified_ms: int


class IndexHit(msgspec.Struct, frozen=True):
    row: NoteRow
    score: float
    """bm25, the higher the better; comparable within one search only."""


class LinkRow(msgspec.Struct, frozen=True):
    path: str
    """Where it is written."""
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
    """What the index holds about a file, as far as a scan compares it."""

    stamp: FileStamp
    digest: str
    is_racy: bool
    """It was read so soon after a change that the stamp says nothing."""


class NoteFilter(msgspec.Struct, frozen=True):
    """Which notes are wanted; an empty field asks for nothing."""

    types: tuple[str, ...] = ()
    """Any of them."""
    not_types: tuple[str, ...] = ()
    """None of them."""
    statuses: tuple[str, ...] = ()
    """Any of them; an empty one is that of notes that have none."""
    tags: tuple[str, ...] = ()
    """All of them."""
    category: str = ""
    """Of one of its observations."""
    since_ms: int = 0
    prefix: str = ""
    """What its path begins with: `specs/` for a directory."""


class IndexCounts(msgspec.Struct, frozen=True):
    notes: int
    observations: int
    links: int
    unresolved: int
    """Links to what is not there."""
    tags: int
    problems: int


class FilterChoices(msgspec.Struct, frozen=True):
    """What there is to filter by, with how many notes have it; the most common first."""

    types: dict[str, int]
    statuses: dict[str, int]
    tags: dict[str, int]
    directories: dict[str, int]


class NoteChangeRequest(msgspec.Struct, frozen=True):
    """A call that changes a note, under the name by which a repetition is known."""

    key: str
    arguments: str
    at_ms: int
    path: str
    """Of the file that it changes."""
    before: str
    """The digest of what it found there; empty where it found nothing."""
    answer: bytes
    """What it comes to, in the words of whoever asked."""
    caller: str
    """Who made it; empty where it has a name by which anybody may repeat it."""
    is_done: bool = False
    """Whether the file was seen to be changed."""
