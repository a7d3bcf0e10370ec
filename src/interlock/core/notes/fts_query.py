"""Words: how the text of notes is put into the full-text index, asked for, and quoted.

The index is an SQLite FTS5 table with the tokenizer `unicode61 remove_diacritics 2`. By itself it
makes one word of a whole sentence in a script that is written without spaces; so each character
of such a script is made a word of its own here, and looked for as a phrase. It also keeps apart
what people write either way; `indexed` and `expression` fold that alike: the Russian yo and ye,
Greek accents and the final sigma, Hebrew and Arabic points. Other Cyrillic letters with a mark
stay letters of their own, as their readers see them.

An identifier is found whole and by its parts as far as the tokenizer splits it: `snake_case`,
`kebab-case`, `src/a/b.py`, `v1.2.3` at their punctuation. `CamelCase` is one word: it is found
whole and by its beginning, not by `case`. Emoji and punctuation alone are not looked for.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from interlock.core.notes.invisible import INVISIBLE_CHARACTER

QUERY_CHARS_MAX: Final = 1_000  # a question, not a document; the rest is not looked for
WORDS_MAX: Final = 32
LABEL_CHARS_MAX: Final = 200

# Inclusive ranges. Korean has spaces, but glues its particles to the noun that is looked for.
_SPACELESS_SCRIPTS: Final = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u0f00", "\u0fff"),  # Tibetan
    ("\u1000", "\u109f"),  # Myanmar
    ("\u1780", "\u17ff"),  # Khmer
    ("\u1950", "\u19ff"),  # Tai Le, New Tai Lue, Khmer symbols
    ("\u1a20", "\u1aaf"),  # Tai Tham
    ("\u2e80", "\u2fdf"),  # radicals
    ("\u3005", "\u3007"),
    ("\u3021", "\u3029"),
    ("\u3031", "\u303c"),
    ("\u3040", "\u31ff"),  # Hiragana, Katakana, Bopomofo, Hangul letters
    ("\u3400", "\u4dbf"),  # Han
    ("\u4e00", "\u9fff"),
    ("\ua000", "\ua4cf"),  # Yi
    ("\ua980", "\ua9ff"),  # Javanese, Myanmar
    ("\uaa60", "\uaadf"),  # Myanmar, Tai Viet
    ("\uac00", "\ud7a3"),  # Hangul syllables
    ("\ue000", "\uf8ff"),  # private use: icons of fonts, which must not stick to words
    ("\uf900", "\ufaff"),  # Han
    ("\uff66", "\uffdc"),  # half-width Katakana and Hangul
    ("\U0001aff0", "\U0001b16f"),  # Kana
    ("\U00020000", "\U0003ffff"),  # Han
    ("\U000f0000", "\U0010ffff"),  # private use
)
_SPACELESS_CHARS: Final = "".join(f"{first}-{last}" for first, last in _SPACELESS_SCRIPTS)
_SPACELESS_RUN: Final = re.compile(f"[{_SPACELESS_CHARS}]+")

# What is written above and below letters, where it has not become one character with them.
_DIACRITICS: Final = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670"
)
_SPELLING_FOLDS: Final = {
    **{char: unicodedata.normalize("NFD", char)[0] for char in map(chr, range(0x386, 0x3CF))},
    "\u03c2": "\u03c3",
    "\u0451": "\u0435",
    "\u0401": "\u0415",
}
_FOLDABLE: Final = re.compile(
    f"[{''.join(k for k, v in _SPELLING_FOLDS.items() if k != v)}{_DIACRITICS}]"
)

# Of the UTF-8 form: all bytes but those with which a character begins that is handled below.
# Deleting them is the fastest way to see that a Latin text, dashes and quotes included, has none.
_PLAIN_BYTES: Final = bytes((*range(0xCC), *range(0xDA, 0xE0), 0xE2))

_QUOTE: Final = '"'
_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟", '"'))
_PHRASE: Final = re.compile(r'"([^"]*)"')
_WORD_SEPARATORS: Final = (
    "\u2013\u2014\u2026\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1b\uff1f"
)
_WORD: Final = re.compile(rf'[^\s"()\[\]{{}}<>,;!?|=*^`{_WORD_SEPARATORS}]+')
_TOKEN: Final = re.compile(r"[^\W_]+")

CANDIDATES_MAX: Final = 20_000  # looked at for one word in one text, whether it stands there or not
_BORDER_SEARCH_CHARS: Final = 24  # a longer word than this is cut, like an address or a hash
UNDECODED_BYTE: Final = re.compile("[\ud800-\udfff]")
"""What stands for bytes that are no characters."""
_UNDISPLAYABLE: Final = re.compile(rf"[\x00-\x1f\x7f-\x9f\ud800-\udfff]|{INVISIBLE_CHARACTER}")


def text_for_index(text: str) -> str:
    """The text as it is put into the index: nothing that a reader should see."""
    if text.isascii():
        return text.replace("\0", " ")
    # A file that is not UTF-8 has lone surrogates, which SQLite would refuse.
    utf8 = text.replace("\0", " ").encode("utf-8", "replace")
    text = unicodedata.normalize("NFC", utf8.decode("utf-8"))
    if not utf8.translate(None, _PLAIN_BYTES):
        return text
    return _SPACELESS_RUN.sub(_space_out, _FOLDABLE.sub(_folded_spelling, text))


def fts_expression(query: str, *, all_of: bool = True) -> str | None:
    """What anybody typed, as an FTS5 expression that finds all of its words, or any of them.

    None where nothing can be looked for. Nothing typed is FTS syntax but quotes around a phrase.
    A word also finds longer ones that begin with it; a number, a single letter, a quoted phrase
    and scripts without spaces do not.
    """
    words = query_words(query)
    if not words:
        return None
    # Not AND: SQLite then drops a word in which it, knowing other letters than Python, sees none.
    # As an operand of AND it would make the whole find nothing. No word has a quote in it; it is
    # doubled all the same, so that nothing depends on how words were cut.
    return (" " if all_of else " OR ").join(
        f'"{text_for_index(word.text).replace(_QUOTE, _QUOTE * 2)}"{"*" if word.is_prefix else ""}'
        for word in words
    )


class QueryWord(msgspec.Struct, frozen=True):
    """A word of a query, or several that are looked for side by side."""

    text: str
    """As typed; has no quotes in it."""
    is_prefix: bool


def query_words(query: str) -> tuple[QueryWord, ...]:
    """The words of a query, each once."""
    query = query[:QUERY_CHARS_MAX].replace("\0", " ").translate(_QUOTES)
    found: dict[QueryWord, None] = {}
    place = 0
    for phrase in _PHRASE.finditer(query):
        _add_words(found, query[place : phrase.start()])
        if _TOKEN.search(phrase[1]):
            found[QueryWord(_normalise_unicode(phrase[1]).strip(), is_prefix=False)] = None
        place = phrase.end()
    _add_words(found, query[place:])
    return tuple(found)[:WORDS_MAX]


def _add_words(found: dict[QueryWord, None], text: str) -> None:
    for word in _WORD.findall(_normalise_unicode(text)):
        tokens = _tokens(word)
        if tokens:
            # `C++` ends in punctuation: whoever typed that meant the whole word.
            is_prefix = word[-1].isalnum() and _may_be_prefix(tokens[-1])
            found[QueryWord(word, is_prefix=is_prefix)] = None


def _may_be_prefix(token: str) -> bool:
    return len(token) > 1 and not token.isdecimal() and not _SPACELESS_RUN.match(token)


def _normalise_unicode(text: str) -> str:
    return unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))


def _tokens(text: str) -> list[str]:
    """The words that the tokenizer sees, before it folds case."""
    return _TOKEN.findall(text_for_index(text))


def _folded_spelling(char: re.Match[str]) -> str:
    return _SPELLING_FOLDS.get(char[0], "")


def _space_out(run: re.Match[str]) -> str:
    return f" {' '.join(run[0])} "


def count_query_words(text: str, query: str) -> int:
    """How many of the words of `query` stand in the text."""
    folded = _fold(text_for_index(text))
    return sum(1 for word in query_words(query) if next(_match_spans(folded, word), None))


def excerpt(text: str, query: str, *, chars: int = 160) -> str:
    """One line of at most `chars`: where most words of the query stand near each other.

    The beginning of the text where none of them does. Cut at words, with … where it was cut.
    """
    line = one_line(text)
    if len(line) <= chars:
        return line
    room = max(chars - 2, 1)
    folded = _fold(line)
    first, end = _densest_span(
        sorted(
            (*spot, index)
            for index, word in enumerate(query_words(query))
            for spot in _match_spans(folded, word)
        ),
        room,
    )
    start = max(0, min(first - (room - (end - first)) // 3, len(line) - room))
    start = min(start, first)
    return _cut_at_words(line, start, start + room, first)


def is_utf8(text: str) -> bool:
    """Whether a file in which this was read is: other bytes were made lone surrogates."""
    return text.isascii() or UNDECODED_BYTE.search(text) is None


def split_at_matches(line: str, query: str) -> tuple[tuple[str, bool], ...]:
    """The line in pieces, each with whether it is what was looked for."""
    folded = _fold(line)
    found: list[tuple[str, bool]] = []
    place = 0
    spots = [spot for word in query_words(query) for spot in _match_spans(folded, word)]
    for start, end in sorted(spots, key=lambda spot: (spot[0], -spot[1])):
        if start >= place:  # two words may stand in one place; then the longer counts
            found += [(line[place:start], False), (line[start:end], True)]
            place = end
    return tuple(part for part in (*found, (line[place:], False)) if part[0])


def one_line(text: str) -> str:
    """Without line breaks and anything that is not seen but may turn a display upside down."""
    line = " ".join(_normalise_unicode(text.replace("\0", " ")).split())
    if not line.isprintable():
        line = " ".join(_UNDISPLAYABLE.sub("", line).split())
    return line


def label(text: str, chars: int = LABEL_CHARS_MAX) -> str:
    """What a note says or calls itself, as it stands in a line of ours."""
    line = one_line(text)
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


TextSpan = tuple[int, int]
"""Where it begins and ends."""


def _match_spans(folded: str, word: QueryWord) -> Iterator[TextSpan]:
    start, pattern = _pattern(word)
    place = folded.find(start)
    for _ in range(CANDIDATES_MAX):
        if place < 0:
            return
        match = pattern.match(folded, place)
        is_spot = match and _stands_alone(folded, place, match.end(), word)
        if match and is_spot:
            yield match.span()
        place = folded.find(start, match.end() if match and is_spot else place + 1)


def _stands_alone(folded: str, start: int, end: int, word: QueryWord) -> bool:
    if _is_inside_word(folded, start):
        return False
    return word.is_prefix or not _is_inside_word(folded, end)


def _is_inside_word(folded: str, place: int) -> bool:
    if not 0 < place < len(folded):
        return False
    before, after = folded[place - 1], folded[place]
    if not (before.isalnum() and after.isalnum()):
        return False
    return not (_SPACELESS_RUN.match(before) or _SPACELESS_RUN.match(after))


@lru_cache(maxsize=256)
def _pattern(word: QueryWord) -> tuple[str, re.Pattern[str]]:
    """What to look for first, and what must then match there."""
    tokens = [_fold(token) for token in _tokens(word.text)]
    parts: list[str] = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        if before:
            is_touching = _SPACELESS_RUN.match(before) or _SPACELESS_RUN.match(token)
            parts.append(r"[\W_]*+" if is_touching else r"[\W_]++")
        # Of ASCII letters few have points; looking for them would make every search slow.
        points = "" if token.isascii() else f"[{_DIACRITICS}]*"
        parts.append(points.join(map(re.escape, token)) + points)
    start = tokens[0] if tokens[0].isascii() else tokens[0][0]
    return start, re.compile("".join(parts))


def _densest_span(spots: list[tuple[int, int, int]], room: int) -> TextSpan:
    """The smallest place of at most `room` that has the most different words."""
    best, best_rank = (0, 0), (0, 0)
    inside: dict[int, int] = {}
    left = 0
    for start, end, word in spots:
        inside[word] = inside.get(word, 0) + 1
        while spots[left][0] < start and (
            end - spots[left][0] > room or inside[spots[left][2]] > 1
        ):
            gone = spots[left][2]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            left += 1
        rank = (len(inside), spots[left][0] - end)
        if rank > best_rank or best_rank == (0, 0):
            best, best_rank = (spots[left][0], end), rank
    return best


def _cut_at_words(line: str, start: int, end: int, first: int) -> str:
    end = min(end, len(line))
    if start > 0:
        start = _border_after(line, start, min(first, start + _BORDER_SEARCH_CHARS))
    if end < len(line):
        end = _border_before(line, end, max(start + 1, end - _BORDER_SEARCH_CHARS))
    shown = line[start:end].strip()
    return f"{'…' if start > 0 else ''}{shown}{'…' if end < len(line) else ''}"


def _border_after(line: str, place: int, limit: int) -> int:
    for at in range(place, limit + 1):
        if _is_word_border(line, at):
            return at
    return place


def _border_before(line: str, place: int, limit: int) -> int:
    for at in range(place, limit - 1, -1):
        if _is_word_border(line, at):
            return at
    while place > limit and unicodedata.category(line[place])[0] in "MC":
        place -= 1  # not between a letter and its accent
    return place


def _is_word_border(line: str, at: int) -> bool:
    if line[at] == " " or line[at - 1] == " ":
        return True
    return (
        bool(_SPACELESS_RUN.match(line[at]) or _SPACELESS_RUN.match(line[at - 1]))
        and unicodedata.category(line[at])[0] not in "MC"
    )


def _fold(text: str) -> str:
    """As the tokenizer folds, but character for character: places stay what they are."""
    return text.lower() if text.isascii() else text.translate(_FOLD_TABLE)


class _FoldTable(dict[int, str]):
    """Filled as characters are met; there are not many."""

    def __missing__(self, key: int) -> str:
        char = chr(key)
        base = unicodedata.normalize("NFD", char)[0]
        if not unicodedata.name(base, "").startswith("LATIN"):
            base = _SPELLING_FOLDS.get(char, char)
        self[key] = folded = base.lower()[0]
        return folded


_FOLD_TABLE: Final = _FoldTable()
