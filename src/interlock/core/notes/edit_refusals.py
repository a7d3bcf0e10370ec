"""Refusals of an edit of a note, each with its explanation."""

from typing import TypeAlias

from interlock.core.explanation import Explanation
from interlock.core.notes.fts_query import label, one_line
from interlock.core.notes.wording import TOOL_WORDING, WordedRefusal, Wording
from interlock.core.refusal import Refusal

_NAMES_MAX = 12
_TEXT_MAX = 120


class EmptySearchText(WordedRefusal, frozen=True):
    """The text to find is empty, which would match everywhere."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        return Explanation(
            "note_refused",
            f"{wording.operation('find_replace')} was given nothing to find",
            f"Say which text is replaced: {wording.arguments['find']}.",
        )


class TextNotFound(Refusal, frozen=True):
    find: str
    closest: str
    """The line that is most like it; empty where none is."""
    line: int
    """The number of that line, from 1; 0 where there is none."""

    def explain(self) -> Explanation:
        hint = "Read the note and copy the text as it stands there."
        if self.closest:
            hint = f"Line {self.line} is like it: `{label(self.closest, _TEXT_MAX)}`. Copy it."
        error = f"The note does not contain `{label(self.find, _TEXT_MAX)}`"
        return Explanation("note_refused", error, hint)


class MatchCountMismatch(WordedRefusal, frozen=True):
    expected: int
    found: int
    lines: tuple[int, ...]
    """The line numbers of the first matches."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        is_one = self.found == 1
        times = "once" if is_one else f"{self.found} times"
        rest = " it." if is_one else " all; more of the text, one of them."
        return Explanation(
            "note_refused",
            f"The text is there {times} ({_line_numbers(self.found, self.lines)})",
            f"{wording.arguments['expected']} {self.found} changes{rest}",
        )


class NoSuchSection(Refusal, frozen=True):
    section: str
    existing_sections: tuple[str, ...]
    closest: str

    def explain(self) -> Explanation:
        sections = ", ".join(
            f"“{label(name, _TEXT_MAX)}”" for name in self.existing_sections[:_NAMES_MAX]
        )
        return Explanation(
            "note_refused",
            f"The note has no section “{label(self.section, _TEXT_MAX)}”",
            f"It has {sections}." if sections else "It has no sections; append to it.",
            (one_line(self.closest),) if self.closest else (),
        )


class AmbiguousSection(WordedRefusal, frozen=True):
    section: str
    found: int
    lines: tuple[int, ...]
    """The line numbers of the first headings with this name."""
    is_distinct_by_level: bool
    """Whether no two of the headings have the same number of hashes."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        find_replace = wording.operation("find_replace")
        hint = f"Name it with its hashes (`## Name`), or use {find_replace}."
        if not self.is_distinct_by_level:
            hint = (
                f"Some have the same hashes too, so use {find_replace}: find the heading"
                " together with the line above or below it, which no other has."
            )
        name, lines = label(self.section, _TEXT_MAX), _line_numbers(self.found, self.lines)
        error = f"{self.found} sections are called “{name}” ({lines})"
        return Explanation("note_refused", error, hint)


class FrontmatterConflict(WordedRefusal, frozen=True):
    """The inserted text would become frontmatter, or turn existing text into frontmatter."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        return Explanation(
            "note_refused",
            "The text would become frontmatter, or make some of what is there",
            f"Leave the `---` lines out; frontmatter is changed by {wording.frontmatter}.",
        )


EditRefusal: TypeAlias = (
    EmptySearchText
    | TextNotFound
    | MatchCountMismatch
    | NoSuchSection
    | AmbiguousSection
    | FrontmatterConflict
)


def _line_numbers(count: int, lines: tuple[int, ...]) -> str:
    more = " and more" if count > len(lines) else ""
    noun = "line" if count == 1 else "lines"
    return f"{noun} {', '.join(map(str, lines))}{more}"
