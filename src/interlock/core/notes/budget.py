"""Briefings for agents within a budget of tokens, and counts of what they leave out.

Items are selected as if the agent had been told nothing before; then those it was told before are
dropped. So the same briefing twice is empty the second time, however much is left out, and when
something new comes in, only that is told.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

ASCII_CHARS_PER_TOKEN: Final = 4
ITEM_SHARE: Final = 6  # one item takes at most a sixth of the budget, so that others are shown too
ITEM_TOKENS_MIN: Final = 12  # a shorter excerpt of an item says nothing
HEADING_TOKENS_MAX: Final = 20

NOTES_SHOWN_BY: Final = "`search_notes` finds them, `read_note` shows one."

_DIGEST_CHARS: Final = 16


class BriefingPart(msgspec.Struct, frozen=True):
    heading: str
    items: tuple[str, ...]
    unfetched_count: int = 0
    """The number of further items, which nobody has fetched."""


class Briefing(msgspec.Struct, frozen=True):
    text: str
    """Empty where there is nothing new."""
    shown_digests: tuple[str, ...]
    """Digests of the items in the text, to be passed as `told_digests` the next time."""
    left_out: tuple[tuple[str, int], ...]
    """Headings, each with the number of its items that have not been told at all."""
    unfetched: tuple[tuple[str, int], ...] = ()
    """The same for those that nobody has fetched; for the others there was no room."""
    budget: int = 0
    """The number of tokens that the text may have."""


def estimate_tokens(text: str) -> int:
    """Return an estimate that is rather too high: a token is four ASCII characters or one other.

    English prose has somewhat fewer, Chinese and Cyrillic at most as many, source code and rare
    scripts may have some more.
    """
    ascii_chars = _ascii_chars(text)
    return _token_count(ascii_chars, len(text) - ascii_chars)


def item_digest(heading: str, text: str) -> str:
    """Return the digest by which an item is recognised when it comes up again."""
    content = f"{heading}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:_DIGEST_CHARS]


def assemble_briefing(
    parts: Sequence[BriefingPart],
    *,
    budget: int,
    told_digests: frozenset[str] = frozenset(),
    shown_by: str = NOTES_SHOWN_BY,
) -> Briefing:
    """Write the parts, the most important first, in at most `budget` tokens.

    Each part gets its first item if that fits, then they take turns. The last line counts what is
    left out, and says how to get it: `shown_by`.
    """
    selections = _select_items(
        [_PartSelection(part.heading, _unique_items(part), part.unfetched_count) for part in parts],
        *(budget, shown_by),
    )
    left_out = _left_out_counts(selections)
    unfetched = tuple(
        (selection.heading, selection.unfetched_count)
        for selection in selections
        if selection.unfetched_count
    )
    fresh_sections = [
        (
            selection.heading,
            [(digest, line) for digest, line in selection.lines if digest not in told_digests],
        )
        for selection in selections
    ]
    shown_digests = tuple(digest for _, lines in fresh_sections for digest, _ in lines)
    if not shown_digests:
        return Briefing("", (), left_out, unfetched, budget)
    blocks = [
        _section_text(heading, [line for _, line in lines])
        for heading, lines in fresh_sections
        if lines
    ]
    text = "\n\n".join([*blocks, *_left_out_line(left_out, shown_by)])
    return Briefing(text, shown_digests, left_out, unfetched, budget)


class _PartSelection:
    """A part and the items selected from it so far, each as digest and line."""

    def __init__(self, whole_heading: str, texts: Sequence[str], unfetched_count: int) -> None:
        self.whole_heading = whole_heading
        self.heading = cut_to_tokens(whole_heading, HEADING_TOKENS_MAX)
        self.texts = texts
        self.unfetched_count = unfetched_count
        self.lines: list[tuple[str, str]] = []
        self.is_closed = not texts

    @property
    def left_out_count(self) -> int:
        return len(self.texts) - len(self.lines) + self.unfetched_count


class _TextSize:
    """The size of the text so far, in characters, with some separators that may not be written."""

    def __init__(self) -> None:
        self.ascii_chars = 0
        self.other_chars = 0

    def add(self, text: str) -> None:
        ascii_chars = _ascii_chars(text)
        self.ascii_chars += ascii_chars
        self.other_chars += len(text) - ascii_chars

    def tokens_with(self, text: str) -> int:
        ascii_chars = _ascii_chars(text)
        return _token_count(
            self.ascii_chars + ascii_chars, self.other_chars + len(text) - ascii_chars
        )


def _select_items(
    selections: Sequence[_PartSelection], budget: int, shown_by: str
) -> Sequence[_PartSelection]:
    size = _TextSize()
    waiting = [selection for selection in selections if not selection.is_closed]
    while waiting:
        for selection in waiting:
            _select_next(selection, selections, size, budget, shown_by)
        waiting = [selection for selection in waiting if not selection.is_closed]
    return selections


def _select_next(
    selection: _PartSelection,
    selections: Sequence[_PartSelection],
    size: _TextSize,
    budget: int,
    shown_by: str,
) -> None:
    text = selection.texts[len(selection.lines)]
    digest = item_digest(selection.whole_heading, text)
    is_first = not selection.lines
    prefix = f"{_section_text(selection.heading, [])}\n\n\n- " if is_first else "\n- "
    item_max = max(budget // ITEM_SHARE, ITEM_TOKENS_MIN)
    selection.lines.append((digest, ""))
    left_out = _left_out_line(_left_out_counts(selections), shown_by)
    frame = prefix + "".join(left_out) + "\n\n"
    room = min(budget - size.tokens_with(frame), item_max)
    # The first may be cut to what fits; a later one gets as much room as the others or none.
    needed = min(estimate_tokens(text), ITEM_TOKENS_MIN if is_first else item_max)
    line = cut_to_tokens(text, room) if room >= needed else ""
    if not line:
        selection.lines.pop()
        selection.is_closed = True
        return
    selection.lines[-1] = (digest, line)
    size.add(prefix + line)
    selection.is_closed = len(selection.lines) == len(selection.texts)


def _left_out_counts(selections: Iterable[_PartSelection]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (selection.heading, selection.left_out_count)
        for selection in selections
        if selection.left_out_count
    )


def _unique_items(part: BriefingPart) -> list[str]:
    """Return the items, each once. There may be thousands, of which few will be told."""
    return [text for text in dict.fromkeys(part.items) if text.strip()]


def _section_text(heading: str, lines: Sequence[str]) -> str:
    return f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines)


def _left_out_line(left_out: Sequence[tuple[str, int]], shown_by: str) -> list[str]:
    if not left_out:
        return []
    counts = ", ".join(f"{count} under \u201c{heading}\u201d" for heading, count in left_out)
    return [f"Left out: {counts}. {shown_by}"]


def cut_to_tokens(text: str, tokens_max: int) -> str:
    """Return the text as one line of at most `tokens_max` tokens; cut at a word, with … at its end.

    One line: a note must not be able to write headings of its own into what an agent is told.
    """
    line = " ".join(text.split())
    if estimate_tokens(line) <= tokens_max:
        return line
    ascii_chars = other_chars = end = 0
    for end, char in enumerate(line):  # noqa: B007 (used after the loop)
        ascii_chars += char.isascii()
        other_chars += not char.isascii()
        if _token_count(ascii_chars, other_chars + 1) > tokens_max:
            break
    head = line[:end]
    whole_words = head.rpartition(" ")[0] if line[end] != " " else head
    # A long word, or a script without spaces, is cut where it must be.
    head = whole_words if len(whole_words) > len(head) // 2 else head
    return f"{head.rstrip()}…" if head.strip() else ""


def _ascii_chars(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("ascii", "ignore"))


def _token_count(ascii_chars: int, other_chars: int) -> int:
    return -(-ascii_chars // ASCII_CHARS_PER_TOKEN) + other_chars
