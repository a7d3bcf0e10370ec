"""Hand-off files: what a HANDOFF.md says, however its author headed and numbered it.

Nothing is lost: what is not understood is kept as it stands in `other`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from interlock.core.handoff.list_items import BULLET, FENCE, ListItem, parse_list
from interlock.core.notes import status


class HandoffStep(msgspec.Struct, frozen=True, rename="camel"):
    text: str
    is_done: bool | None
    """None where nobody said: it may be a fact, and not work."""


class HandoffSection(msgspec.Struct, frozen=True, rename="camel"):
    heading: str
    """Without its marks; empty for what stands before the first."""
    level: int
    text: str
    """The lines below the heading, as they are."""


class HandoffContent(msgspec.Struct, frozen=True, rename="camel"):
    feature: str
    """In one line."""
    progress: tuple[HandoffStep, ...]
    decisions: tuple[str, ...]
    blockers: tuple[str, ...]
    next_steps: tuple[str, ...]
    other: tuple[HandoffSection, ...]


Subject = Literal["feature", "progress", "doing", "done", "decisions", "blockers", "next"]

_SUBJECT_NAMES: Final[dict[Subject, str]] = {
    "feature": (
        "active feature|current feature|feature|active task|current task|current focus"
        "|active work|current work|working on"
    ),
    "progress": "progress|current progress|progress so far",
    "doing": "in progress|work in progress",
    "done": "completed|done|completed work|work completed|what was done|finished",
    "decisions": (
        "decisions|decision|decisions made|key decisions|decision log|design decisions"
        "|architecture decisions|architectural decisions|technical decisions|recent decisions"
    ),
    "blockers": (
        "blockers|blocker|open blockers|current blockers|active blockers|known blockers"
        "|blocked|blocked on|blocked by"
    ),
    "next": (
        "next steps|next step|next|todo|todos|to do|to dos|next actions|next tasks|action items"
        "|remaining|remaining work|whats next|up next|upcoming|immediate next steps"
    ),
}
_SUBJECTS: Final[dict[str, Subject]] = {
    name: subject for subject, names in _SUBJECT_NAMES.items() for name in names.split("|")
}
_PAST_HEADING: Final = re.compile(r"\b(?:history|archived?|previous|past|old|older|earlier)\b")

_ATX_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_UNDERLINE: Final = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*")
_BOLD_HEADING: Final = re.compile(r"(\*\*|__)([^*_]+?):?\1:?[ \t]*(.*)")
_PLAIN_HEADING: Final = re.compile(r"([A-Za-z][A-Za-z ]{2,30}):[ \t]*(.*)")
_AMBIGUOUS_NAMES: Final = frozenset(
    {"next", "done", "completed", "finished", "remaining", "decision"}
)
_NUMBERING: Final = re.compile(r"\A(?:[\W_]|\d+[.)\]:]\s*)+")
_QUALIFIER_START: Final = re.compile(
    r"[(/&,:\u2013\u2014]| - | and | or | for | from | with ", re.IGNORECASE
)
_HEADING_CONTINUATION: Final = re.compile(r":\s*|\s[-\u2013\u2014]\s")
_EMPHASIS: Final = re.compile(r"(\*\*|__|[*_`])(?=\S)(.+?)(?<=\S)\1")
_NONE_PLACEHOLDERS: Final = frozenset(
    {"", "none", "na", "n a", "nothing", "none currently", "none at the moment", "no blockers"}
)
_LEVEL_BELOW_HEADINGS: Final = 7
_LINE_CHARS_MAX: Final = 500  # beyond it is no name, and looking for pairs of marks takes long


class _HeadedBlock(msgspec.Struct):
    """A heading and the lines under it, up to the next heading of any level."""

    heading: str
    level: int
    lines: list[str]


class _HandoffBuilder(msgspec.Struct):
    feature: str = ""
    progress: list[HandoffStep] = []
    decisions: list[str] = []
    blockers: list[str] = []
    next_steps: list[str] = []
    other: list[HandoffSection] = []


def parse_handoff(text: str) -> HandoffContent:
    found = _HandoffBuilder()
    above: list[tuple[_HeadedBlock, Subject | None]] = []
    for block in _split_continued_headings(_blocks(text)):
        above = [pair for pair in above if pair[0].level < block.level]
        is_past = any(_PAST_HEADING.search(_heading_words(outer.heading)) for outer, _ in above)
        inherited = above[-1][1] if above else None
        subject = None if is_past else _subject(block.heading) or inherited
        _add_block(found, block, subject, is_subsection=_subject(block.heading) is None)
        above.append((block, subject))
    return HandoffContent(
        found.feature,
        tuple(found.progress),
        tuple(found.decisions),
        tuple(found.blockers),
        tuple(found.next_steps),
        tuple(found.other),
    )


def _add_block(
    builder: _HandoffBuilder, block: _HeadedBlock, subject: Subject | None, *, is_subsection: bool
) -> None:
    # A part of a section that is understood: `### Phase 1` under `## Progress`.
    prefix = strip_emphasis(block.heading) if is_subsection else ""
    match subject:
        case "feature" if not builder.feature:
            builder.feature, rest = _split_feature(prefix, block.lines)
            _add_remarks(builder, block, rest)
        case None | "feature":
            if block.heading or any(line.strip() for line in block.lines):
                builder.other.append(_section(block, "\n".join(block.lines)))
        case "decisions" if prefix:
            builder.decisions.append("\n".join([prefix, *_trim_lines(block.lines)]))
        case "decisions":
            items, remarks = _list_items(block)
            builder.decisions += [item.text for item in items]
            _add_remarks(builder, block, remarks)
        case "blockers":
            _add_items(builder, block, builder.blockers, prefix)
        case "next":
            _add_items(builder, block, builder.next_steps, prefix)
        case "progress" | "doing" | "done":
            is_done = None if subject == "progress" else subject == "done"
            _add_steps(builder, block, prefix, is_done=is_done)


def _add_items(
    builder: _HandoffBuilder, block: _HeadedBlock, open_items: list[str], prefix: str
) -> None:
    items, remarks = _list_items(block)
    for item in items:
        text = _with_prefix(prefix, item.text)
        if item.is_done:
            # A next step that was taken, a blocker that is gone: no longer what the heading says.
            builder.progress.append(HandoffStep(text, is_done=True))
        else:
            open_items.append(text)
    if not items and not is_none_placeholder(prefix):
        open_items.append(prefix)
    _add_remarks(builder, block, remarks)


def _add_steps(
    builder: _HandoffBuilder, block: _HeadedBlock, prefix: str, *, is_done: bool | None
) -> None:
    meaning = status.parse_status(_heading_words(prefix)) if prefix else None
    if meaning:  # `### Not started`
        prefix, is_done = "", meaning == "done"
    items, remarks = _list_items(block)
    builder.progress += [
        HandoffStep(
            _with_prefix(prefix, item.text), is_done if item.is_done is None else item.is_done
        )
        for item in items
    ]
    if prefix and not items:
        builder.progress.append(HandoffStep(prefix, is_done))
    _add_remarks(builder, block, remarks)


def _list_items(block: _HeadedBlock) -> tuple[list[ListItem], list[str]]:
    """What is listed, without what only says that nothing is."""
    items, remarks = parse_list(block.lines)
    return [item for item in items if not is_none_placeholder(item.text)], remarks


def _add_remarks(builder: _HandoffBuilder, block: _HeadedBlock, lines: Sequence[str]) -> None:
    """What a section that is understood says besides."""
    if any(line.strip() for line in lines):
        builder.other.append(_section(block, "\n".join(lines)))


def _section(block: _HeadedBlock, text: str) -> HandoffSection:
    return HandoffSection(strip_emphasis(block.heading), min(block.level, 6), text)


def _split_feature(prefix: str, lines: list[str]) -> tuple[str, list[str]]:
    """The name of the feature, and what is said about it besides."""
    if prefix:
        return prefix, lines
    for number, line in enumerate(lines):
        bullet = BULLET.fullmatch(line.rstrip())
        name = strip_emphasis(bullet[2] if bullet else line)
        if not is_none_placeholder(name):
            return name, [*lines[:number], *lines[number + 1 :]]
    return "", lines


def _split_continued_headings(blocks: Iterable[_HeadedBlock]) -> Iterator[_HeadedBlock]:
    """A heading that goes on (`## Decision: Use SQLite`) is two, the second below the first."""
    for block in blocks:
        name, *more = _HEADING_CONTINUATION.split(strip_emphasis(block.heading), maxsplit=1)
        if more and more[0] and _heading_words(name) in _SUBJECTS:
            yield _HeadedBlock(name, block.level, [])
            yield _HeadedBlock(more[0], block.level + 1, block.lines)
        else:
            yield block


def _blocks(text: str) -> Iterator[_HeadedBlock]:
    lines = text.removeprefix("\ufeff").split("\n")
    begin = _front_line_count(lines)
    block = _HeadedBlock("", 0, lines[:begin])
    fence = ""
    for number, raw in enumerate(lines[begin:], begin):
        line = raw.rstrip()
        mark = FENCE.match(line)
        opened = None if fence or mark else _begin_block(line, block, lines[number - 1 : number])
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        if opened:
            yield block
            block = opened
        else:
            block.lines.append(raw)
    yield block


def _front_line_count(lines: list[str]) -> int:
    """How many lines the frontmatter has."""
    if lines[0].rstrip() != "---":
        return 0
    return next((n + 1 for n, line in enumerate(lines) if n and line.rstrip() == "---"), 0)


def _begin_block(line: str, block: _HeadedBlock, before: list[str]) -> _HeadedBlock | None:
    """The block that a line begins, if it does. An underlined heading is taken from `block`."""
    if heading := _ATX_HEADING.match(line):
        return _HeadedBlock(
            _strip_closing_hashes(line[heading.end() :].strip()), len(heading[1]), []
        )
    if (underline := _UNDERLINE.fullmatch(line)) and _ends_with_lone_line(block):
        return _HeadedBlock(block.lines.pop().strip(), 1 if underline[1][0] == "=" else 2, [])
    if bold := _BOLD_HEADING.fullmatch(line):
        name, rest = bold[2], bold[3]
    elif (plain := _PLAIN_HEADING.fullmatch(line)) and not "".join(before).strip():
        name, rest = plain[1], plain[2]
        if _heading_words(name) in _AMBIGUOUS_NAMES:
            return None
    else:
        return None
    return (
        _HeadedBlock(name, _LEVEL_BELOW_HEADINGS, [rest] if rest else [])
        if _heading_words(name) in _SUBJECTS
        else None
    )


def _strip_closing_hashes(heading: str) -> str:
    """Without the hashes that may follow a heading, which need a space before them: not `C#`."""
    bare = heading.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else heading


def _ends_with_lone_line(block: _HeadedBlock) -> bool:
    """Whether the last line is a paragraph by itself, which a line below makes a heading."""
    if not block.lines or not block.lines[-1].strip() or "|" in block.lines[-1]:
        return False
    is_alone = len(block.lines) == 1 or not block.lines[-2].strip()
    return is_alone and not BULLET.fullmatch(block.lines[-1].rstrip())


def _subject(heading: str) -> Subject | None:
    named = _SUBJECTS.get(_heading_words(heading))
    return named or _SUBJECTS.get(
        _heading_words(_QUALIFIER_START.split(strip_emphasis(heading))[0])
    )


def _heading_words(text: str) -> str:
    """The words of a heading, by which it is known."""
    text = _NUMBERING.sub("", strip_emphasis(text))
    return " ".join(re.sub(r"[^\w\s]", "", text.replace("-", " ")).casefold().split())


def strip_emphasis(text: str) -> str:
    """On one line, without emphasis around words."""
    line = " ".join(text.split())
    if len(line) > _LINE_CHARS_MAX:
        return line
    return _EMPHASIS.sub(r"\2", line).strip().removesuffix(":")


def _trim_lines(lines: Sequence[str]) -> list[str]:
    return "\n".join(line.rstrip() for line in lines).strip("\n").split("\n") if lines else []


def _with_prefix(prefix: str, text: str) -> str:
    return f"{prefix}: {text}" if prefix else text


def is_none_placeholder(text: str) -> bool:
    """Whether it only says that there is nothing: `None`, `N/A`."""
    return _heading_words(text) in _NONE_PLACEHOLDERS
