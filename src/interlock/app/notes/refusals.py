"""Why something cannot be done with a note."""

from typing import TypeAlias

import msgspec

from interlock.app.refusals import NoSuchDirectory, RequestReused
from interlock.core.notes.edits import EditRefusal
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.operations import ArgumentName, EditOperation


class NoProject(msgspec.Struct, frozen=True):
    """Notes belong to a project, and there is none around this directory."""

    path: str


class Unsettled(msgspec.Struct, frozen=True):
    """A config cannot be read, so nobody can say where the notes lie."""

    why: str


class FolderOutside(msgspec.Struct, frozen=True):
    """The notes folder does not lie in the project, or is a link or behind one."""

    folder: str


class FolderNotTrusted(msgspec.Struct, frozen=True):
    """The project's config names a folder of its own, and the user has not said yes to that."""

    folder: str


class NoSuchNote(msgspec.Struct, frozen=True):
    asked: str
    close: tuple[str, ...]
    """Addresses that look like it."""


class SeveralNotes(msgspec.Struct, frozen=True):
    asked: str
    paths: tuple[str, ...]
    has_more: bool = False
    """There are others, too many to name."""


class NoteExists(msgspec.Struct, frozen=True):
    """Nothing is written over unless the caller has seen what is there."""

    path: str
    version: str
    diff: str
    """From what is there to what was sent."""


class NameTaken(msgspec.Struct, frozen=True):
    """A note is where another was to be moved."""

    path: str


class LooksLike(msgspec.Struct, frozen=True):
    """A note of nearly this title is there under another path."""

    title: str
    path: str


class NoteChanged(msgspec.Struct, frozen=True):
    """Somebody has written since the caller read."""

    path: str
    version: str
    diff: str = ""
    """From what the caller read to what is there now, or from there to what was sent."""
    now: str = ""
    """How what is there now begins, where nothing was sent to compare it with."""


class VersionWanted(msgspec.Struct, frozen=True):
    """What replaces text must say which text its author has seen."""

    path: str
    version: str
    what: str


class BadName(msgspec.Struct, frozen=True):
    name: str
    why: str


class NotOurs(msgspec.Struct, frozen=True):
    """A person's note has the name under which we would publish something."""

    path: str


class NotWritten(msgspec.Struct, frozen=True):
    """The disk said no."""

    why: str
    hint: str


class FrontUnreadable(msgspec.Struct, frozen=True):
    """Its frontmatter is left alone, since nobody can say what it means."""

    path: str
    why: str


class HandoffUnread(msgspec.Struct, frozen=True):
    """The hand-off file that was named cannot be taken over."""

    path: str
    why: str


class TooMany(msgspec.Struct, frozen=True):
    """A search names more types, statuses or tags than are looked for at once."""

    what: str
    count: int
    most: int


class NothingAsked(msgspec.Struct, frozen=True):
    """An edit that names neither an operation nor metadata."""


class NotTaken(msgspec.Struct, frozen=True):
    """An edit came with something that its operation does not take."""

    operation: EditOperation | None
    argument: ArgumentName


NoteRefusal: TypeAlias = (
    NoProject
    | Unsettled
    | FolderOutside
    | FolderNotTrusted
    | NoSuchDirectory
    | NoSuchNote
    | SeveralNotes
    | NoteExists
    | NameTaken
    | LooksLike
    | NoteChanged
    | VersionWanted
    | BadName
    | NotOurs
    | NotWritten
    | FrontUnreadable
    | BadValue
    | NothingAsked
    | NotTaken
    | TooMany
    | HandoffUnread
    | RequestReused
    | EditRefusal
)
