"""Reading hand-off files: the content of a HANDOFF.md, however its author headed and numbered it.

The text is cut into blocks, each a heading with the lines up to the next heading of any level. A
heading is an ATX or underlined one, or a bold or plain line that names a known subject. A heading
that goes on after its subject (`## Decision: Use SQLite`) becomes two, one below the other.

The subject of a block comes from the words of its heading, else from the heading above it; below a
heading such as "History" nothing counts as current. The lists of a block become steps, decisions,
blockers or next steps by its subject. A next step or blocker that is marked as done is progress.

Nothing is lost: text that is not understood is kept as it is in `other`.
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
    """Whether it is done; None where nothing says so: it may be a fact, and not work."""


class HandoffSection(msgspec.Struct, frozen=True, rename="camel"):
    heading: str
    """The heading without its marks; empty for the text before the first one."""
    level: int
    text: str
    """The lines below the heading, unchanged."""


class HandoffContent(msgspec.Struct, frozen=True, rename="camel"):
    feature: str
    """The feature, on one line."""
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
_LINE_CHARS_MAX: Final = 500  # a longer line is no name, and finding pairs of marks in it is slow


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
    builder = _HandoffBuilder()
    enclosing: list[tuple[_HeadedBlock, Subject | None]] = []
    for block in _split_continued_headings(_blocks(text)):
        enclosing = [pair for pair in enclosing if pair[0].level < block.level]
        is_past = any(_PAST_HEADING.search(_heading_words(outer.heading)) for outer, _ in enclosing)
        inherited = enclosing[-1][1] if enclosing else None
        subject = None if is_past else _subject(block.heading) or inherited
        _add_block(builder, block, subject, is_subsection=_subject(block.heading) is None)
        enclosing.append((block, subject))
    return HandoffContent(
        builder.feature,
        tuple(builder.progress),
        tuple(builder.decisions),
        tuple(builder.blockers),
        tuple(builder.next_steps),
        tuple(builder.other),
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
            # A next step that was done, a blocker that is gone: no longer what the heading says.
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
    """Return the items and remarks of a block, without items that only say there are none."""
    items, remarks = parse_list(block.lines)
    return [item for item in items if not is_none_placeholder(item.text)], remarks


def _add_remarks(builder: _HandoffBuilder, block: _HeadedBlock, lines: Sequence[str]) -> None:
    """Keep the other text of a section that is understood."""
    if any(line.strip() for line in lines):
        builder.other.append(_section(block, "\n".join(lines)))


def _section(block: _HeadedBlock, text: str) -> HandoffSection:
    return HandoffSection(strip_emphasis(block.heading), min(block.level, 6), text)


def _split_feature(prefix: str, lines: list[str]) -> tuple[str, list[str]]:
    """Return the name of the feature, and the other lines about it."""
    if prefix:
        return prefix, lines
    for number, line in enumerate(lines):
        bullet = BULLET.fullmatch(line.rstrip())
        name = strip_emphasis(bullet[2] if bullet else line)
        if not is_none_placeholder(name):
            return name, [*lines[:number], *lines[number + 1 :]]
    return "", lines


def _split_continued_headings(blocks: Iterable[_HeadedBlock]) -> Iterator[_HeadedBlock]:
    """Split a heading that goes on (`## Decision: Use SQLite`) into two, one below the other."""
    for block in blocks:
        name, *more = _HEADING_CONTINUATION.split(strip_emphasis(block.heading), maxsplit=1)
        if more and more[0] and _heading_words(name) in _SUBJECTS:
            yield _HeadedBlock(name, block.level, [])
            yield _HeadedBlock(more[0], block.level + 1, block.lines)
        else:
            yield block


def _blocks(text: str) -> Iterator[_HeadedBlock]:
    lines = text.removeprefix("\ufeff").split("\n")
    first_line = _front_line_count(lines)
    block = _HeadedBlock("", 0, lines[:first_line])
    fence = ""
    for number, raw in enumerate(lines[first_line:], first_line):
        line = raw.rstrip()
        mark = FENCE.match(line)
        new_block = None if fence or mark else _begin_block(line, block, lines[number - 1 : number])
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        if new_block:
            yield block
            block = new_block
        else:
            block.lines.append(raw)
    yield block


def _front_line_count(lines: list[str]) -> int:
    """Return the number of lines in the frontmatter."""
    if lines[0].rstrip() != "---":
        return 0
    return next((n + 1 for n, line in enumerate(lines) if n and line.rstrip() == "---"), 0)


def _begin_block(line: str, block: _HeadedBlock, previous_lines: list[str]) -> _HeadedBlock | None:
    """Return the block that a line begins, if any. An underlined heading is taken from `block`."""
    if heading := _ATX_HEADING.match(line):
        return _HeadedBlock(
            _strip_closing_hashes(line[heading.end() :].strip()), len(heading[1]), []
        )
    if (underline := _UNDERLINE.fullmatch(line)) and _ends_with_lone_line(block):
        return _HeadedBlock(block.lines.pop().strip(), 1 if underline[1][0] == "=" else 2, [])
    if bold := _BOLD_HEADING.fullmatch(line):
        name, rest = bold[2], bold[3]
    elif (plain := _PLAIN_HEADING.fullmatch(line)) and not "".join(previous_lines).strip():
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
    """Remove the hashes that may follow a heading after a space; `C#` keeps its own."""
    bare = heading.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else heading


def _ends_with_lone_line(block: _HeadedBlock) -> bool:
    """Whether the last line is a paragraph by itself, which an underline makes a heading."""
    if not block.lines or not block.lines[-1].strip() or "|" in block.lines[-1]:
        return False
    is_alone = len(block.lines) == 1 or not block.lines[-2].strip()
    return is_alone and not BULLET.fullmatch(block.lines[-1].rstrip())


def _subject(heading: str) -> Subject | None:
    subject = _SUBJECTS.get(_heading_words(heading))
    return subject or _SUBJECTS.get(
        _heading_words(_QUALIFIER_START.split(strip_emphasis(heading))[0])
    )


def _heading_words(text: str) -> str:
    """Return the words of a heading, by which it is recognised."""
    text = _NUMBERING.sub("", strip_emphasis(text))
    return " ".join(re.sub(r"[^\w\s]", "", text.replace("-", " ")).casefold().split())


def strip_emphasis(text: str) -> str:
    """Return the text on one line, without emphasis around words."""
    line = " ".join(text.split())
    if len(line) > _LINE_CHARS_MAX:
        return line
    return _EMPHASIS.sub(r"\2", line).strip().removesuffix(":")


def _trim_lines(lines: Sequence[str]) -> list[str]:
    return "\n".join(line.rstrip() for line in lines).strip("\n").split("\n") if lines else []


def _with_prefix(prefix: str, text: str) -> str:
    return f"{prefix}: {text}" if prefix else text


def is_none_placeholder(text: str) -> bool:
    """Whether a text only says that there is nothing: `None`, `N/A`."""
    return _heading_words(text) in _NONE_PLACEHOLDERS
