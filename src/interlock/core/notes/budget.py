"""The budget: how much of what is known is told to an agent, and what is left out.

What is told is chosen as if nothing had been told before; then what was told before is dropped.
So the same twice is nothing the second time, however much is left out, and when something new
comes in, only that is told.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

ASCII_CHARS_PER_TOKEN: Final = 4
ITEM_SHARE: Final = 6  # one item takes a sixth of the budget at most: others are to be seen too
ITEM_TOKENS_MIN: Final = 12  # less of an item says nothing
HEADING_TOKENS_MAX: Final = 20

_DIGEST_CHARS: Final = 16


class BriefingPart(msgspec.Struct, frozen=True):
    heading: str
    items: tuple[str, ...]
    unfetched_count: int = 0
    """How many there are besides, which nobody has fetched."""


class Briefing(msgspec.Struct, frozen=True):
    text: str
    """Empty where there is nothing new."""
    shown_digests: tuple[str, ...]
    """Digests of what the text tells, to be handed in as `told` the next time."""
    left_out: tuple[tuple[str, int], ...]
    """Headings, and how many of their items have not been told at all."""


def estimate_tokens(text: str) -> int:
    """An estimate that is rather too high: a token is four ASCII characters or one other.

    English prose has somewhat fewer, Chinese and Cyrillic at most as many, source code and rare
    scripts may have some more.
    """
    ascii_chars = _ascii_chars(text)
    return _token_count(ascii_chars, len(text) - ascii_chars)


def item_digest(heading: str, text: str) -> str:
    """What an item is recognised by when it is to be told again."""
    told = f"{heading}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(told).hexdigest()[:_DIGEST_CHARS]


def assemble_briefing(
    parts: Sequence[BriefingPart], *, budget: int, told_digests: frozenset[str] = frozenset()
) -> Briefing:
    """The parts, the most important first, in at most `budget` tokens.

    Each part gets its first item if that fits, then they take turns. What is left out is counted
    in the last line, which says how to get it.
    """
    chosen = _select_items(
        [_PartSelection(part.heading, _unique_items(part), part.unfetched_count) for part in parts],
        budget,
    )
    left_out = _left_out_counts(chosen)
    fresh = [
        (c.heading, [(mark, line) for mark, line in c.lines if mark not in told_digests])
        for c in chosen
    ]
    shown = tuple(mark for _, lines in fresh for mark, _ in lines)
    if not shown:
        return Briefing("", (), left_out)
    blocks = [
        _section_text(heading, [line for _, line in lines]) for heading, lines in fresh if lines
    ]
    return Briefing("\n\n".join([*blocks, *_left_out_line(left_out)]), shown, left_out)


class _PartSelection:
    """What is chosen of a part, while it is being chosen."""

    def __init__(self, whole_heading: str, texts: Sequence[str], more: int) -> None:
        self.whole_heading = whole_heading
        self.heading = cut_to_tokens(whole_heading, HEADING_TOKENS_MAX)
        self.texts = texts
        self.more = more
        self.lines: list[tuple[str, str]] = []
        self.is_closed = not texts

    @property
    def left_out_count(self) -> int:
        return len(self.texts) - len(self.lines) + self.more


class _TextSize:
    """Of the text so far, in characters. Separators are counted where there may be none."""

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


def _select_items(selections: Sequence[_PartSelection], budget: int) -> Sequence[_PartSelection]:
    size = _TextSize()
    waiting = [c for c in selections if not c.is_closed]
    while waiting:
        for c in waiting:
            _select_next(c, selections, size, budget)
        waiting = [c for c in waiting if not c.is_closed]
    return selections


def _select_next(
    selection: _PartSelection, selections: Sequence[_PartSelection], size: _TextSize, budget: int
) -> None:
    text = selection.texts[len(selection.lines)]
    mark = item_digest(selection.whole_heading, text)
    is_first = not selection.lines
    around = f"{_section_text(selection.heading, [])}\n\n\n- " if is_first else "\n- "
    item_max = max(budget // ITEM_SHARE, ITEM_TOKENS_MIN)
    selection.lines.append((mark, ""))
    frame = around + "".join(_left_out_line(_left_out_counts(selections))) + "\n\n"
    room = min(budget - size.tokens_with(frame), item_max)
    # The first may be cut to what fits; a later one is told as fully as the others or not at all.
    needed = min(estimate_tokens(text), ITEM_TOKENS_MIN if is_first else item_max)
    line = cut_to_tokens(text, room) if room >= needed else ""
    if not line:
        selection.lines.pop()
        selection.is_closed = True
        return
    selection.lines[-1] = (mark, line)
    size.add(around + line)
    selection.is_closed = len(selection.lines) == len(selection.texts)


def _left_out_counts(selections: Iterable[_PartSelection]) -> tuple[tuple[str, int], ...]:
    return tuple((c.heading, c.left_out_count) for c in selections if c.left_out_count)


def _unique_items(part: BriefingPart) -> list[str]:
    """The items, each once. There may be thousands, of which few will be told."""
    return [text for text in dict.fromkeys(part.items) if text.strip()]


def _section_text(heading: str, lines: Sequence[str]) -> str:
    return f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines)


def _left_out_line(left_out: Sequence[tuple[str, int]]) -> list[str]:
    if not left_out:
        return []
    counts = ", ".join(f"{count} under \u201c{heading}\u201d" for heading, count in left_out)
    return [f"Left out: {counts}. `search_notes` finds them, `read_note` shows one."]


def cut_to_tokens(text: str, tokens_max: int) -> str:
    """One line of at most so many tokens; cut at a word, with … at its end.

    One line: a note must not be able to write headings of its own into what an agent is told.
    """
    line = " ".join(text.split())
    if estimate_tokens(line) <= tokens_max:
        return line
    ascii_chars = others = end = 0
    for end, char in enumerate(line):  # noqa: B007 (used after the loop)
        ascii_chars += char.isascii()
        others += not char.isascii()
        if _token_count(ascii_chars, others + 1) > tokens_max:
            break
    kept = line[:end]
    at_word = kept.rpartition(" ")[0] if line[end] != " " else kept
    # A long word, or a script without spaces, is cut where it must be.
    kept = at_word if len(at_word) > len(kept) // 2 else kept
    return f"{kept.rstrip()}…" if kept.strip() else ""


def _ascii_chars(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("ascii", "ignore"))


def _token_count(ascii_chars: int, other_chars: int) -> int:
    return -(-ascii_chars // ASCII_CHARS_PER_TOKEN) + other_chars
