"""The reasons why something cannot be done with a note."""

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
    """A config cannot be read, so the location of the notes is unknown."""

    reason: str


class FolderOutsideProject(msgspec.Struct, frozen=True):
    """The notes folder is not in the project, or is a symbolic link or behind one."""

    folder: str


class FolderNotTrusted(msgspec.Struct, frozen=True):
    """The project's config names its own notes folder, and the user has not trusted that."""

    folder: str


class NoSuchNote(msgspec.Struct, frozen=True):
    identifier: str
    similar: tuple[str, ...]
    """Paths of notes with a similar name, or with some of its words."""


class SeveralNotes(msgspec.Struct, frozen=True):
    identifier: str
    paths: tuple[str, ...]
    has_more: bool = False
    """Whether there are others, too many to name."""


class NoteExists(msgspec.Struct, frozen=True):
    """No note is overwritten unless the caller has read it."""

    path: str
    version: str
    diff: str
    """From the existing text to the text that was sent."""


class NotePathTaken(msgspec.Struct, frozen=True):
    """A note exists at the path to which another was to be moved."""

    path: str


class SimilarNoteExists(msgspec.Struct, frozen=True):
    """A note with nearly this title exists at another path."""

    title: str
    path: str


class NoteChanged(msgspec.Struct, frozen=True):
    """Somebody has changed the note since the caller read it."""

    path: str
    version: str
    diff: str = ""
    """From the current text to the text that would have been written."""
    current_text: str = ""
    """The beginning of the current text, if no text was sent to compare it with."""


class VersionRequired(msgspec.Struct, frozen=True):
    """A change that replaces text must name the version that its author has read."""

    path: str
    version: str
    action: str


class BadNoteName(msgspec.Struct, frozen=True):
    name: str
    reason: str


class PublishPathTaken(msgspec.Struct, frozen=True):
    """Somebody's own note has the path at which Interlock would publish a page."""

    path: str


class NoteNotWritten(msgspec.Struct, frozen=True):
    """The disk failed, the text contains a NUL, or the file was changed during the operation."""

    reason: str
    hint: str


class FrontmatterUnreadable(msgspec.Struct, frozen=True):
    """The frontmatter cannot be read, or not changed safely, so it is left as it is."""

    path: str
    reason: str


class HandoffFileUnusable(msgspec.Struct, frozen=True):
    """The hand-off file that was named cannot be migrated."""

    path: str
    reason: str


class TooManyFilterValues(msgspec.Struct, frozen=True):
    """A search names more types, statuses or tags than one search may."""

    filter_name: str
    count: int
    maximum: int


class EmptyEdit(msgspec.Struct, frozen=True):
    """An edit that names neither an operation nor metadata."""


class UnexpectedEditArgument(msgspec.Struct, frozen=True):
    """An edit has an argument that its operation does not take."""

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
