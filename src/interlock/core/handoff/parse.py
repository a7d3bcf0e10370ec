"""Hand-off files: what a HANDOFF.md says, however its author headed and numbered it.

Nothing is lost: what is not understood is kept as it stands in `other`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from interlock.core.handoff.list_items import BULLET, FENCE, Listed, listed
from interlock.core.notes import status


class Step(msgspec.Struct, frozen=True, rename="camel"):
    text: str
    is_done: bool | None
    """None where nobody said: it may be a fact, and not work."""


class Section(msgspec.Struct, frozen=True, rename="camel"):
    heading: str
    """Without its marks; empty for what stands before the first."""
    level: int
    text: str
    """The lines below the heading, as they are."""


class Handoff(msgspec.Struct, frozen=True, rename="camel"):
    feature: str
    """In one line."""
    progress: tuple[Step, ...]
    decisions: tuple[str, ...]
    blockers: tuple[str, ...]
    next_steps: tuple[str, ...]
    other: tuple[Section, ...]


Subject = Literal["feature", "progress", "doing", "done", "decisions", "blockers", "next"]

_NAMES: Final[dict[Subject, str]] = {
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
    name: subject for subject, names in _NAMES.items() for name in names.split("|")
}
_PAST: Final = re.compile(r"\b(?:history|archived?|previous|past|old|older|earlier)\b")

_ATX: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_UNDERLINE: Final = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*")
_BOLD: Final = re.compile(r"(\*\*|__)([^*_]+?):?\1:?[ \t]*(.*)")
_PLAIN: Final = re.compile(r"([A-Za-z][A-Za-z ]{2,30}):[ \t]*(.*)")
_TOO_COMMON: Final = frozenset({"next", "done", "completed", "finished", "remaining", "decision"})
_NUMBERING: Final = re.compile(r"\A(?:[\W_]|\d+[.)\]:]\s*)+")
_QUALIFIED: Final = re.compile(
    r"[(/&,:\u2013\u2014]| - | and | or | for | from | with ", re.IGNORECASE
)
_GOES_ON: Final = re.compile(r":\s*|\s[-\u2013\u2014]\s")
_EMPHASIS: Final = re.compile(r"(\*\*|__|[*_`])(?=\S)(.+?)(?<=\S)\1")
_NOTHING: Final = frozenset(
    {"", "none", "na", "n a", "nothing", "none currently", "none at the moment", "no blockers"}
)
_BELOW_HEADINGS: Final = 7
_LINE_CHARS_MAX: Final = 500  # beyond it is no name, and looking for pairs of marks takes long


class _Block(msgspec.Struct):
    """A heading and the lines under it, up to the next heading of any level."""

    heading: str
    level: int
    lines: list[str]


class _Found(msgspec.Struct):
    feature: str = ""
    progress: list[Step] = []
    decisions: list[str] = []
    blockers: list[str] = []
    next_steps: list[str] = []
    other: list[Section] = []


def parse_handoff(text: str) -> Handoff:
    found = _Found()
    above: list[tuple[_Block, Subject | None]] = []
    for block in _parted(_blocks(text)):
        above = [pair for pair in above if pair[0].level < block.level]
        is_past = any(_PAST.search(_plain(outer.heading)) for outer, _ in above)
        inherited = above[-1][1] if above else None
        subject = None if is_past else _subject(block.heading) or inherited
        _take(found, block, subject, is_part=_subject(block.heading) is None)
        above.append((block, subject))
    return Handoff(
        found.feature,
        tuple(found.progress),
        tuple(found.decisions),
        tuple(found.blockers),
        tuple(found.next_steps),
        tuple(found.other),
    )


def _take(found: _Found, block: _Block, subject: Subject | None, *, is_part: bool) -> None:
    # A part of a section that is understood: `### Phase 1` under `## Progress`.
    prefix = unmarked(block.heading) if is_part else ""
    match subject:
        case "feature" if not found.feature:
            found.feature, rest = _feature(prefix, block.lines)
            _keep(found, block, rest)
        case None | "feature":
            if block.heading or any(line.strip() for line in block.lines):
                found.other.append(_section(block, "\n".join(block.lines)))
        case "decisions" if prefix:
            found.decisions.append("\n".join([prefix, *_trimmed(block.lines)]))
        case "decisions":
            items, remarks = _listed(block)
            found.decisions += [item.text for item in items]
            _keep(found, block, remarks)
        case "blockers":
            _take_items(found, block, found.blockers, prefix)
        case "next":
            _take_items(found, block, found.next_steps, prefix)
        case "progress" | "doing" | "done":
            is_done = None if subject == "progress" else subject == "done"
            _take_steps(found, block, prefix, is_done=is_done)


def _take_items(found: _Found, block: _Block, open_ones: list[str], prefix: str) -> None:
    items, remarks = _listed(block)
    for item in items:
        text = _under(prefix, item.text)
        if item.is_done:
            # A next step that was taken, a blocker that is gone: no longer what the heading says.
            found.progress.append(Step(text, is_done=True))
        else:
            open_ones.append(text)
    if not items and not is_nothing(prefix):
        open_ones.append(prefix)
    _keep(found, block, remarks)


def _take_steps(found: _Found, block: _Block, prefix: str, *, is_done: bool | None) -> None:
    meaning = status.meaning(_plain(prefix)) if prefix else None
    if meaning:  # `### Not started`
        prefix, is_done = "", meaning == "done"
    items, remarks = _listed(block)
    found.progress += [
        Step(_under(prefix, item.text), is_done if item.is_done is None else item.is_done)
        for item in items
    ]
    if prefix and not items:
        found.progress.append(Step(prefix, is_done))
    _keep(found, block, remarks)


def _listed(block: _Block) -> tuple[list[Listed], list[str]]:
    """What is listed, without what only says that nothing is."""
    items, remarks = listed(block.lines)
    return [item for item in items if not is_nothing(item.text)], remarks


def _keep(found: _Found, block: _Block, lines: Sequence[str]) -> None:
    """What a section that is understood says besides."""
    if any(line.strip() for line in lines):
        found.other.append(_section(block, "\n".join(lines)))


def _section(block: _Block, text: str) -> Section:
    return Section(unmarked(block.heading), min(block.level, 6), text)


def _feature(prefix: str, lines: list[str]) -> tuple[str, list[str]]:
    """The name of the feature, and what is said about it besides."""
    if prefix:
        return prefix, lines
    for number, line in enumerate(lines):
        bullet = BULLET.fullmatch(line.rstrip())
        name = unmarked(bullet[2] if bullet else line)
        if not is_nothing(name):
            return name, [*lines[:number], *lines[number + 1 :]]
    return "", lines


def _parted(blocks: Iterable[_Block]) -> Iterator[_Block]:
    """A heading that goes on (`## Decision: Use SQLite`) is two, the second below the first."""
    for block in blocks:
        name, *more = _GOES_ON.split(unmarked(block.heading), maxsplit=1)
        if more and more[0] and _plain(name) in _SUBJECTS:
            yield _Block(name, block.level, [])
            yield _Block(more[0], block.level + 1, block.lines)
        else:
            yield block


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.removeprefix("\ufeff").split("\n")
    begin = _after_front(lines)
    block = _Block("", 0, lines[:begin])
    fence = ""
    for number, raw in enumerate(lines[begin:], begin):
        line = raw.rstrip()
        mark = FENCE.match(line)
        opened = None if fence or mark else _opened(line, block, lines[number - 1 : number])
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


def _after_front(lines: list[str]) -> int:
    """How many lines the frontmatter has."""
    if lines[0].rstrip() != "---":
        return 0
    return next((n + 1 for n, line in enumerate(lines) if n and line.rstrip() == "---"), 0)


def _opened(line: str, block: _Block, before: list[str]) -> _Block | None:
    """The block that a line begins, if it does. An underlined heading is taken from `block`."""
    if heading := _ATX.match(line):
        return _Block(_closed(line[heading.end() :].strip()), len(heading[1]), [])
    if (underline := _UNDERLINE.fullmatch(line)) and _is_underlined(block):
        return _Block(block.lines.pop().strip(), 1 if underline[1][0] == "=" else 2, [])
    if bold := _BOLD.fullmatch(line):
        name, rest = bold[2], bold[3]
    elif (plain := _PLAIN.fullmatch(line)) and not "".join(before).strip():
        name, rest = plain[1], plain[2]
        if _plain(name) in _TOO_COMMON:
            return None
    else:
        return None
    return (
        _Block(name, _BELOW_HEADINGS, [rest] if rest else []) if _plain(name) in _SUBJECTS else None
    )


def _closed(heading: str) -> str:
    """Without the hashes that may follow a heading, which need a space before them: not `C#`."""
    bare = heading.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else heading


def _is_underlined(block: _Block) -> bool:
    """Whether the last line is a paragraph by itself, which a line below makes a heading."""
    if not block.lines or not block.lines[-1].strip() or "|" in block.lines[-1]:
        return False
    is_alone = len(block.lines) == 1 or not block.lines[-2].strip()
    return is_alone and not BULLET.fullmatch(block.lines[-1].rstrip())


def _subject(heading: str) -> Subject | None:
    named = _SUBJECTS.get(_plain(heading))
    return named or _SUBJECTS.get(_plain(_QUALIFIED.split(unmarked(heading))[0]))


def _plain(text: str) -> str:
    """The words of a heading, by which it is known."""
    text = _NUMBERING.sub("", unmarked(text))
    return " ".join(re.sub(r"[^\w\s]", "", text.replace("-", " ")).casefold().split())


def unmarked(text: str) -> str:
    """On one line, without emphasis around words."""
    line = " ".join(text.split())
    if len(line) > _LINE_CHARS_MAX:
        return line
    return _EMPHASIS.sub(r"\2", line).strip().removesuffix(":")


def _trimmed(lines: Sequence[str]) -> list[str]:
    return "\n".join(line.rstrip() for line in lines).strip("\n").split("\n") if lines else []


def _under(prefix: str, text: str) -> str:
    return f"{prefix}: {text}" if prefix else text


def is_nothing(text: str) -> bool:
    """Whether it only says that there is nothing: `None`, `N/A`."""
    return _plain(text) in _NOTHING
