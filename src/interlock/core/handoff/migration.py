"""Migration: the notes that a hand-off file becomes, and what a session that goes on is about.

One note holds the work itself, with its progress, next steps and blockers: that of the feature, or
a task where no feature is named. Each decision is a note. The text that is not understood is one
more.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from interlock.core.handoff.parse import HandoffContent, HandoffSection, strip_emphasis
from interlock.core.notes.fts_query import one_line
from interlock.core.notes.naming import canonical_title

TITLE_CHARS_MAX: Final = 100
_CHECKBOXES: Final[dict[bool | None, str]] = {True: "[x] ", False: "[ ] ", None: ""}
_NOT_IN_LINKS: Final = frozenset("[]|#^`\\<")


class HandoffNote(msgspec.Struct, frozen=True):
    """A note to be written."""

    title: str
    type: str
    status: str
    """The status as it is written in the frontmatter."""
    content: str


class Migration(msgspec.Struct, frozen=True):
    notes: tuple[HandoffNote, ...]
    """The note of the work first, then the decisions."""
    leftover_text: str
    """The text that was not understood, as it is in the file; empty where there is none."""
    feature: str
    """The feature that a session is about: the title of its note. Empty where none is named."""
    task: str
    """The next thing to do."""


def plan_migration(handoff: HandoffContent, source: str) -> Migration:
    """Return the notes that a hand-off file becomes. `source` is the name of the file."""
    feature = _title(handoff.feature) if handoff.feature else ""
    work = _work_note(handoff, feature, source)
    titles = {canonical_title(work.title)} if work else set[str]()
    decisions = tuple(_decision_notes(handoff.decisions, titles, feature, source))
    return Migration(
        (work, *decisions) if work else decisions,
        _leftover_text(handoff.other, source),
        feature,
        next((_title(text) for text in _open_steps(handoff)), ""),
    )


def _work_note(handoff: HandoffContent, feature: str, source: str) -> HandoffNote | None:
    steps = [
        f"- {_CHECKBOXES[step.is_done]}{_indented_item(step.text)}" for step in handoff.progress
    ]
    to_do = [f"- [ ] {_indented_item(text)}" for text in handoff.next_steps]
    blockers = [f"- [blocker] {_indented_item(text)}" for text in handoff.blockers]
    sections = (("Progress", steps), ("Next steps", to_do), ("Blockers", blockers))
    if not feature and not any(lines for _, lines in sections):
        return None
    title = feature or f"Go on from {source}"
    text = [f"# {title}", f"Taken from `{source}`."]
    if feature != handoff.feature:
        text.append(handoff.feature)
    for heading, lines in sections:
        if lines:
            text += [f"## {heading}", "\n".join(lines)]
    return HandoffNote(
        title, "feature" if feature else "task", "in-progress", "\n\n".join(text) + "\n"
    )


def _decision_notes(
    texts: Iterable[str], titles: set[str], feature: str, source: str
) -> Iterator[HandoffNote]:
    """Return one note for each title: the same title is the same decision, stated again."""
    by_title: dict[str, tuple[str, list[str]]] = {}
    for text in texts:
        title = _title(text) or "Decision"
        if canonical_title(title) in titles:
            title = f"{title} (decision)"
        by_title.setdefault(canonical_title(title), (title, []))[1].append(
            _decision_body(title, text)
        )
    for title, bodies in by_title.values():
        parts = [f"# {title}", *dict.fromkeys(body for body in bodies if body)]
        parts.append(f"Taken from `{source}`.")
        if feature and not _NOT_IN_LINKS & set(feature):
            parts.append(f"- part_of [[{feature}]]")
        yield HandoffNote(title, "decision", "accepted", "\n\n".join(parts) + "\n")


def _decision_body(title: str, text: str) -> str:
    """Return the text beyond the title; all of it where the title is not its first line."""
    first, _, more = text.partition("\n")
    return more.strip("\n") if first == title else text


def _leftover_text(sections: Sequence[HandoffSection], source: str) -> str:
    nonempty = [section for section in sections if section.text.strip() or section.level > 1]
    if not nonempty:
        return ""
    blocks = (
        f"{'#' * section.level} {section.heading}\n{section.text}"
        if section.level
        else section.text
        for section in sections
    )
    return f"What `{source}` says besides, as it stands there.\n\n" + "\n".join(blocks)


def _open_steps(handoff: HandoffContent) -> Iterator[str]:
    yield from handoff.next_steps
    yield from (step.text for step in handoff.progress if step.is_done is False)


def _title(text: str) -> str:
    """Return the first line, cut at a word where it is long."""
    line = one_line(strip_emphasis(text.strip().partition("\n")[0]))
    if len(line) <= TITLE_CHARS_MAX:
        return line
    cut = line[:TITLE_CHARS_MAX]
    return f"{(cut.rpartition(' ')[0] or cut).rstrip()}…"


def _indented_item(text: str) -> str:
    """Return a text with all its lines indented to be inside of a list item."""
    first, *more = text.strip("\n").split("\n")
    return "\n".join([first, *(line if line[:2] in ("", "  ") else f"  {line}" for line in more)])
