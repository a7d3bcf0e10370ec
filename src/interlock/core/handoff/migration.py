"""Migration: which notes a hand-off file becomes, and what a session that goes on is about.

One note holds the work itself, with its progress, next steps and blockers: that of the feature, or
a task where no feature is named. Each decision is a note. What is not understood is one more.
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
    """One note to be."""

    title: str
    type: str
    status: str
    """As it is written in the frontmatter."""
    content: str


class Migration(msgspec.Struct, frozen=True):
    notes: tuple[HandoffNote, ...]
    """The work first, then the decisions."""
    leftover_text: str
    """What was not understood, as it stands in the file; empty where there is nothing."""
    feature: str
    """That a session is about: the title of its note. Empty where none is named."""
    task: str
    """What is next."""


def plan_migration(handoff: HandoffContent, source: str) -> Migration:
    """`source` is what the file is called."""
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
    """Those of one title are one decision, said more than once."""
    said: dict[str, tuple[str, list[str]]] = {}
    for text in texts:
        title = _title(text) or "Decision"
        if canonical_title(title) in titles:
            title = f"{title} (decision)"
        said.setdefault(canonical_title(title), (title, []))[1].append(_decision_body(title, text))
    for title, bodies in said.values():
        parts = [f"# {title}", *dict.fromkeys(body for body in bodies if body)]
        parts.append(f"Taken from `{source}`.")
        if feature and not _NOT_IN_LINKS & set(feature):
            parts.append(f"- part_of [[{feature}]]")
        yield HandoffNote(title, "decision", "accepted", "\n\n".join(parts) + "\n")


def _decision_body(title: str, text: str) -> str:
    """What the decision says that its title does not: all of it, if that says it otherwise."""
    first, _, more = text.partition("\n")
    return more.strip("\n") if first == title else text


def _leftover_text(sections: Sequence[HandoffSection], source: str) -> str:
    said = [section for section in sections if section.text.strip() or section.level > 1]
    if not said:
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
    """The first line, cut at a word where it is long."""
    line = one_line(strip_emphasis(text.strip().partition("\n")[0]))
    if len(line) <= TITLE_CHARS_MAX:
        return line
    kept = line[:TITLE_CHARS_MAX]
    return f"{(kept.rpartition(' ')[0] or kept).rstrip()}…"


def _indented_item(text: str) -> str:
    """With all its lines inside of the list item that it is put into."""
    first, *more = text.strip("\n").split("\n")
    return "\n".join([first, *(line if line[:2] in ("", "  ") else f"  {line}" for line in more)])
