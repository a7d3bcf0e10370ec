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


class Part(msgspec.Struct, frozen=True):
    heading: str
    items: tuple[str, ...]
    more: int = 0
    """How many there are besides, which nobody has fetched."""


class Assembled(msgspec.Struct, frozen=True):
    text: str
    """Empty where there is nothing new."""
    shown: tuple[str, ...]
    """Digests of what the text tells, to be handed in as `told` the next time."""
    left_out: tuple[tuple[str, int], ...]
    """Headings, and how many of their items have not been told at all."""


def tokens(text: str) -> int:
    """An estimate that is rather too high: a token is four ASCII characters or one other.

    English prose has somewhat fewer, Chinese and Cyrillic at most as many, source code and rare
    scripts may have some more.
    """
    ascii_chars = _ascii_chars(text)
    return _tokens(ascii_chars, len(text) - ascii_chars)


def digest(heading: str, text: str) -> str:
    """What an item is recognised by when it is to be told again."""
    told = f"{heading}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(told).hexdigest()[:_DIGEST_CHARS]


def assemble(
    parts: Sequence[Part], *, budget: int, told: frozenset[str] = frozenset()
) -> Assembled:
    """The parts, the most important first, in at most `budget` tokens.

    Each part gets its first item if that fits, then they take turns. What is left out is counted
    in the last line, which says how to get it.
    """
    chosen = _choose([_Chosen(part.heading, _unique(part), part.more) for part in parts], budget)
    left_out = _left(chosen)
    fresh = [
        (c.heading, [(mark, line) for mark, line in c.lines if mark not in told]) for c in chosen
    ]
    shown = tuple(mark for _, lines in fresh for mark, _ in lines)
    if not shown:
        return Assembled("", (), left_out)
    blocks = [_block(heading, [line for _, line in lines]) for heading, lines in fresh if lines]
    return Assembled("\n\n".join([*blocks, *_tail(left_out)]), shown, left_out)


class _Chosen:
    """What is chosen of a part, while it is being chosen."""

    def __init__(self, whole_heading: str, texts: Sequence[str], more: int) -> None:
        self.whole_heading = whole_heading
        self.heading = cut(whole_heading, HEADING_TOKENS_MAX)
        self.texts = texts
        self.more = more
        self.lines: list[tuple[str, str]] = []
        self.is_closed = not texts

    @property
    def left(self) -> int:
        return len(self.texts) - len(self.lines) + self.more


class _Size:
    """Of the text so far, in characters. Separators are counted where there may be none."""

    def __init__(self) -> None:
        self.ascii_chars = 0
        self.others = 0

    def add(self, text: str) -> None:
        ascii_chars = _ascii_chars(text)
        self.ascii_chars += ascii_chars
        self.others += len(text) - ascii_chars

    def with_(self, text: str) -> int:
        ascii_chars = _ascii_chars(text)
        return _tokens(self.ascii_chars + ascii_chars, self.others + len(text) - ascii_chars)


def _choose(chosen: Sequence[_Chosen], budget: int) -> Sequence[_Chosen]:
    size = _Size()
    waiting = [c for c in chosen if not c.is_closed]
    while waiting:
        for c in waiting:
            _take_next(c, chosen, size, budget)
        waiting = [c for c in waiting if not c.is_closed]
    return chosen


def _take_next(c: _Chosen, chosen: Sequence[_Chosen], size: _Size, budget: int) -> None:
    text = c.texts[len(c.lines)]
    mark = digest(c.whole_heading, text)
    is_first = not c.lines
    around = f"{_block(c.heading, [])}\n\n\n- " if is_first else "\n- "
    item_max = max(budget // ITEM_SHARE, ITEM_TOKENS_MIN)
    c.lines.append((mark, ""))
    room = min(budget - size.with_(around + "".join(_tail(_left(chosen))) + "\n\n"), item_max)
    # The first may be cut to what fits; a later one is told as fully as the others or not at all.
    needed = min(tokens(text), ITEM_TOKENS_MIN if is_first else item_max)
    line = cut(text, room) if room >= needed else ""
    if not line:
        c.lines.pop()
        c.is_closed = True
        return
    c.lines[-1] = (mark, line)
    size.add(around + line)
    c.is_closed = len(c.lines) == len(c.texts)


def _left(chosen: Iterable[_Chosen]) -> tuple[tuple[str, int], ...]:
    return tuple((c.heading, c.left) for c in chosen if c.left)


def _unique(part: Part) -> list[str]:
    """The items, each once. There may be thousands, of which few will be told."""
    return [text for text in dict.fromkeys(part.items) if text.strip()]


def _block(heading: str, lines: Sequence[str]) -> str:
    return f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines)


def _tail(left_out: Sequence[tuple[str, int]]) -> list[str]:
    if not left_out:
        return []
    counts = ", ".join(f"{count} under \u201c{heading}\u201d" for heading, count in left_out)
    return [f"Left out: {counts}. `search_notes` finds them, `read_note` shows one."]


def cut(text: str, tokens_max: int) -> str:
    """One line of at most so many tokens; cut at a word, with … at its end.

    One line: a note must not be able to write headings of its own into what an agent is told.
    """
    line = " ".join(text.split())
    if tokens(line) <= tokens_max:
        return line
    ascii_chars = others = end = 0
    for end, char in enumerate(line):  # noqa: B007 (used after the loop)
        ascii_chars += char.isascii()
        others += not char.isascii()
        if _tokens(ascii_chars, others + 1) > tokens_max:
            break
    kept = line[:end]
    at_word = kept.rpartition(" ")[0] if line[end] != " " else kept
    # A long word, or a script without spaces, is cut where it must be.
    kept = at_word if len(at_word) > len(kept) // 2 else kept
    return f"{kept.rstrip()}…" if kept.strip() else ""


def _ascii_chars(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("ascii", "ignore"))


def _tokens(ascii_chars: int, others: int) -> int:
    return -(-ascii_chars // ASCII_CHARS_PER_TOKEN) + others
