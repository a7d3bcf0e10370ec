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


class NotesConfigUnreadable(msgspec.Struct, frozen=True):
    """A config cannot be read, so nobody can say where the notes lie."""

    reason: str


class FolderOutsideProject(msgspec.Struct, frozen=True):
    """The notes folder does not lie in the project, or is a link or behind one."""

    folder: str


class FolderNotTrusted(msgspec.Struct, frozen=True):
    """The project's config names a folder of its own, and the user has not said yes to that."""

    folder: str


class NoSuchNote(msgspec.Struct, frozen=True):
    identifier: str
    similar: tuple[str, ...]
    """Addresses that look like it."""


class SeveralNotes(msgspec.Struct, frozen=True):
    identifier: str
    paths: tuple[str, ...]
    has_more: bool = False
    """There are others, too many to name."""


class NoteExists(msgspec.Struct, frozen=True):
    """Nothing is written over unless the caller has seen what is there."""

    path: str
    version: str
    diff: str
    """From what is there to what was sent."""


class NotePathTaken(msgspec.Struct, frozen=True):
    """A note is where another was to be moved."""

    path: str


class SimilarNoteExists(msgspec.Struct, frozen=True):
    """A note of nearly this title is there under another path."""

    title: str
    path: str


class NoteChanged(msgspec.Struct, frozen=True):
    """Somebody has written since the caller read."""

    path: str
    version: str
    diff: str = ""
    """From what the caller read to what is there now, or from there to what was sent."""
    current_text: str = ""
    """How what is there now begins, where nothing was sent to compare it with."""


class VersionRequired(msgspec.Struct, frozen=True):
    """What replaces text must say which text its author has seen."""

    path: str
    version: str
    action: str


class BadNoteName(msgspec.Struct, frozen=True):
    name: str
    reason: str


class PublishPathTaken(msgspec.Struct, frozen=True):
    """A person's note has the name under which we would publish something."""

    path: str


class NoteNotWritten(msgspec.Struct, frozen=True):
    """The disk said no."""

    reason: str
    hint: str


class FrontmatterUnreadable(msgspec.Struct, frozen=True):
    """Its frontmatter is left alone, since nobody can say what it means."""

    path: str
    reason: str


class HandoffFileUnusable(msgspec.Struct, frozen=True):
    """The hand-off file that was named cannot be taken over."""

    path: str
    reason: str


class TooManyFilterValues(msgspec.Struct, frozen=True):
    """A search names more types, statuses or tags than are looked for at once."""

    filter_name: str
    count: int
    maximum: int


class EmptyEdit(msgspec.Struct, frozen=True):
    """An edit that names neither an operation nor metadata."""


class UnexpectedEditArgument(msgspec.Struct, frozen=True):
    """An edit came with something that its operation does not take."""

    operation: EditOperation | None
    argument: ArgumentName


NoteRefusal: TypeAlias = (
    NoProject
    | NotesConfigUnreadable
    | FolderOutsideProject
    | FolderNotTrusted
    | NoSuchDirectory
    | NoSuchNote
    | SeveralNotes
    | NoteExists
    | NotePathTaken
    | SimilarNoteExists
    | NoteChanged
    | VersionRequired
    | BadNoteName
    | PublishPathTaken
    | NoteNotWritten
    | FrontmatterUnreadable
    | BadValue
    | EmptyEdit
    | UnexpectedEditArgument
    | TooManyFilterValues
    | HandoffFileUnusable
    | RequestReused
    | EditRefusal
)
