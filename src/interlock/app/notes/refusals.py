"""Refusals of what is asked about notes, each with its explanation."""

from interlock.core.explanation import Explanation
from interlock.core.notes.fts_query import label, one_line
from interlock.core.notes.operations import ArgumentName, EditOperation, operations_taking
from interlock.core.notes.wording import TOOL_WORDING, WordedRefusal, Wording
from interlock.core.refusal import Refusal, TextRefusal


class NoSuchNote(Refusal, frozen=True):
    identifier: str
    similar: tuple[str, ...]
    """Paths of notes with a similar name, or with some of its words."""

    def explain(self) -> Explanation:
        return Explanation(
            "unknown_note",
            f"There is no note `{self.identifier}`",
            "Name one of those, or search for it." if self.similar else "Search for it.",
            self.similar,
        )


class SeveralNotes(Refusal, frozen=True):
    identifier: str
    paths: tuple[str, ...]
    has_more: bool = False
    """Whether there are others, too many to name."""

    def explain(self) -> Explanation:
        more = "More than " if self.has_more else ""
        return Explanation(
            "several_notes",
            f"{more}{len(self.paths)} notes are called `{self.identifier}`",
            "Name one by its path.",
            self.paths,
        )


class NoteExists(WordedRefusal, frozen=True):
    """No note is overwritten unless the caller has read it."""

    path: str
    version: str
    diff: str
    """From the existing text to the text that was sent."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        return Explanation(
            "note_exists",
            f"`{self.path}` is there already, and nothing was written. From it to yours:"
            f"\n{self.diff}\n",
            f"Edit it ({wording.operation('append')}, {wording.operation('replace_section')}, …)."
            f" To write over it, {wording.overwrite.format(self.version)}.",
        )


class NotePathTaken(TextRefusal, frozen=True):
    """A note exists at the path to which another was to be moved."""

    path: str

    code = "note_exists"
    error = "`{path}` is there already, and nothing was moved"
    hint = "Choose another path."


class SimilarNoteExists(WordedRefusal, frozen=True):
    """A note with nearly this title exists at another path."""

    title: str
    path: str

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        return Explanation(
            "note_exists",
            f"`{self.path}` (“{label(self.title)}”) is about the same, and nothing was written",
            f"Read it and edit it. If yours is about something else, {wording.separate}.",
        )


class NoteChanged(WordedRefusal, frozen=True):
    """Somebody has changed the note since the caller read it."""

    path: str
    version: str
    diff: str = ""
    """From the current text to the text that would have been written."""
    current_text: str = ""
    """The beginning of the current text, if no text was sent to compare it with."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        comparison = f"The difference:\n{self.diff}"
        if self.current_text:
            comparison = f"There now:\n{self.current_text}"
        return Explanation(
            "note_changed",
            f"`{self.path}` is not what you have read: somebody changed it, and nothing was"
            f" written. {comparison}\n",
            f"Bring the two together, and {wording.again.format(self.version)}."
            if self.version
            else "It is gone. Write it anew if it is still wanted.",
        )


class VersionRequired(WordedRefusal, frozen=True):
    """A change that replaces text must name the version that its author has read."""

    path: str
    version: str
    action: str

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        return Explanation(
            "note_refused",
            f"{wording.operation(self.action)} replaces what is there, so it needs the version you"
            " have read",
            f"Read `{self.path}`, and {wording.version}.",
        )


class BadNoteName(TextRefusal, frozen=True):
    name: str
    reason: str

    code = "note_refused"
    error = "`{name}` cannot be a note: {reason}"
    hint = "Choose a path below the notes folder, such as `decisions/use-sqlite.md`."


class NoteNotWritten(Refusal, frozen=True):
    """The disk failed, the text contains a NUL, or the file was changed during the operation."""

    reason: str
    hint: str

    def explain(self) -> Explanation:
        return Explanation("note_not_written", self.reason, self.hint)


class FrontmatterUnreadable(Refusal, frozen=True):
    """The frontmatter cannot be read, or not changed safely, so it is left as it is."""

    path: str
    reason: str

    def explain(self) -> Explanation:
        return Explanation(
            "note_refused",
            f"The frontmatter of `{self.path}` cannot be read: {one_line(self.reason)}",
            "It was left as it is. Correct the block between the two `---` lines first.",
        )


class EmptyEdit(WordedRefusal, frozen=True):
    """An edit that names neither an operation nor metadata."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        return Explanation(
            "invalid_arguments",
            f"The edit names neither an operation nor {wording.frontmatter}",
            f"Say what to change: an operation such as append, or {wording.frontmatter}.",
        )


class UnexpectedEditArgument(WordedRefusal, frozen=True):
    """An edit has an argument that its operation does not take."""

    operation: EditOperation | None
    argument: ArgumentName

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        argument = wording.arguments[self.argument]
        takers = " or ".join(wording.operation(name) for name in operations_taking(self.argument))
        if self.operation is None:
            error = f"{argument} comes with no operation, and nothing was changed"
            hint = f"Name one that takes it: {takers}."
        else:
            operation = wording.operation(self.operation)
            error = f"{operation} takes no {argument}, and nothing was changed"
            hint = f"{argument} goes with {takers}. Take one of these, or leave it out."
            if self.operation == "find_replace":
                hint += " More of the text says which place is meant."
        return Explanation("invalid_arguments", error, hint)
