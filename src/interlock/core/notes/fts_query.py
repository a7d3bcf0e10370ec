"""Full-text search of notes: the text to index, the query expressions, and excerpts of matches.

The index is an SQLite FTS5 table with the tokenizer `unicode61 remove_diacritics 2`. By itself it
takes a whole sentence for one word in a script that is written without spaces; so each character
of such a script is made a word of its own here, and searched for as a phrase. It also tells apart
what people write either way; `text_for_index` and `fts_expression` fold that alike: the Russian yo
and ye, Greek accents and the final sigma, Hebrew and Arabic points. Other Cyrillic letters with a
mark stay letters of their own, as their readers see them.

An identifier is found whole and by its parts as far as the tokenizer splits it: `snake_case`,
`kebab-case`, `src/a/b.py`, `v1.2.3` at their punctuation. `CamelCase` is one word: it is found
whole and by its beginning, not by `case`. Emoji and punctuation alone are not searched for.

The index only says which notes match. Where the words are in a text (`excerpt`,
`split_at_matches`, `count_query_words`) is found again here: `_match_spans` searches the folded
text for each word of the query. `_fold` goes character for character, so a position in the folded
text is the same position in the text.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from interlock.core.notes.invisible import INVISIBLE_CHARACTER

QUERY_CHARS_MAX: Final = 1_000  # a question, not a document; the rest is ignored
WORDS_MAX: Final = 32
LABEL_CHARS_MAX: Final = 200

# Inclusive ranges. Korean has spaces, but joins its particles to the noun that is searched for.
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

# Marks above and below letters, where they are characters of their own.
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

# All bytes of UTF-8 except those that begin a character which is folded or spaced out below.
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

CANDIDATES_MAX: Final = 20_000  # positions tried for one word in one text, matching or not
_BORDER_SEARCH_CHARS: Final = 24  # a longer word, like an address or a hash, is cut
UNDECODED_BYTE: Final = re.compile("[\ud800-\udfff]")
"""A lone surrogate, which stands for a byte that is not UTF-8."""
_UNDISPLAYABLE: Final = re.compile(rf"[\x00-\x1f\x7f-\x9f\ud800-\udfff]|{INVISIBLE_CHARACTER}")


def text_for_index(text: str) -> str:
    """Return the text as it is put into the index: not to be shown to a reader."""
    if text.isascii():
        return text.replace("\0", " ")
    # A file that is not UTF-8 has lone surrogates, which SQLite would refuse.
    utf8 = text.replace("\0", " ").encode("utf-8", "replace")
    text = unicodedata.normalize("NFC", utf8.decode("utf-8"))
    if not utf8.translate(None, _PLAIN_BYTES):
        return text
    return _SPACELESS_RUN.sub(_space_out, _FOLDABLE.sub(_folded_spelling, text))


def fts_expression(query: str, *, all_of: bool = True) -> str | None:
    """Return an FTS5 expression that matches all words of what somebody typed, or any of them.

    None where there is nothing to search for. Nothing typed is FTS syntax but quotes around a
    phrase. A word also matches longer ones that begin with it; a number, a single letter, a quoted
    phrase and scripts without spaces do not.
    """
    words = query_words(query)
    if not words:
        return None
    # Without AND, SQLite drops a word in which it sees no letters; it knows others than Python.
    # As an operand of AND such a word would make the whole match nothing. No word has a quote in
    # it; quotes are doubled all the same, so that nothing depends on how words were split.
    return (" " if all_of else " OR ").join(
        f'"{text_for_index(word.text).replace(_QUOTE, _QUOTE * 2)}"{"*" if word.is_prefix else ""}'
        for word in words
    )


class QueryWord(msgspec.Struct, frozen=True):
    """A word of a query, or several that must be side by side."""

    text: str
    """As typed; has no quotes in it."""
    is_prefix: bool


def query_words(query: str) -> tuple[QueryWord, ...]:
    """Return the words of a query, each once."""
    query = query[:QUERY_CHARS_MAX].replace("\0", " ").translate(_QUOTES)
    words: dict[QueryWord, None] = {}
    position = 0
    for phrase in _PHRASE.finditer(query):
        _add_words(words, query[position : phrase.start()])
        if _TOKEN.search(phrase[1]):
            words[QueryWord(_normalise_unicode(phrase[1]).strip(), is_prefix=False)] = None
        position = phrase.end()
    _add_words(words, query[position:])
    return tuple(words)[:WORDS_MAX]


def _add_words(words: dict[QueryWord, None], text: str) -> None:
    for word in _WORD.findall(_normalise_unicode(text)):
        tokens = _tokens(word)
        if tokens:
            # `C++` ends in punctuation: whoever typed that meant the whole word.
            is_prefix = word[-1].isalnum() and _may_be_prefix(tokens[-1])
            words[QueryWord(word, is_prefix=is_prefix)] = None


def _may_be_prefix(token: str) -> bool:
    return len(token) > 1 and not token.isdecimal() and not _SPACELESS_RUN.match(token)


def _normalise_unicode(text: str) -> str:
    return unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))


def _tokens(text: str) -> list[str]:
    """Return the words that the tokenizer sees, before it folds case."""
    return _TOKEN.findall(text_for_index(text))


def _folded_spelling(char: re.Match[str]) -> str:
    return _SPELLING_FOLDS.get(char[0], "")


def _space_out(run: re.Match[str]) -> str:
    return f" {' '.join(run[0])} "


def count_query_words(text: str, query: str) -> int:
    """Return how many of the words of `query` are in the text."""
    folded = _fold(text_for_index(text))
    return sum(1 for word in query_words(query) if next(_match_spans(folded, word), None))


def excerpt(text: str, query: str, *, chars: int = 160) -> str:
    """Return one line of at most `chars`, from where most words of the query are near each other.

    The beginning of the text where there are none. Cut at words, with … where it was cut.
    """
    line = one_line(text)
    if len(line) <= chars:
        return line
    room = max(chars - 2, 1)
    folded = _fold(line)
    match_start, match_end = _densest_span(
        sorted(
            (*span, index)
            for index, word in enumerate(query_words(query))
            for span in _match_spans(folded, word)
        ),
        room,
    )
    start = max(0, min(match_start - (room - (match_end - match_start)) // 3, len(line) - room))
    start = min(start, match_start)
    return _cut_at_words(line, start, start + room, match_start)


def is_utf8(text: str) -> bool:
    """True if the file that `text` was read from is UTF-8: other bytes became lone surrogates."""
    return text.isascii() or UNDECODED_BYTE.search(text) is None


def split_at_matches(line: str, query: str) -> tuple[tuple[str, bool], ...]:
    """Return the line in pieces, each with whether it matches the query."""
    folded = _fold(line)
    pieces: list[tuple[str, bool]] = []
    position = 0
    spans = [span for word in query_words(query) for span in _match_spans(folded, word)]
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= position:  # of two matches at one position the longer counts
            pieces += [(line[position:start], False), (line[start:end], True)]
            position = end
    return tuple(piece for piece in (*pieces, (line[position:], False)) if piece[0])


def one_line(text: str) -> str:
    """Return the text without line breaks and invisible characters that could garble a display."""
    line = " ".join(_normalise_unicode(text.replace("\0", " ")).split())
    if not line.isprintable():
        line = " ".join(_UNDISPLAYABLE.sub("", line).split())
    return line


def label(text: str, chars: int = LABEL_CHARS_MAX) -> str:
    """Return what a note says or calls itself, cut to fit into a line of ours."""
    line = one_line(text)
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


TextSpan = tuple[int, int]
"""The positions where it begins and ends."""


def _match_spans(folded: str, word: QueryWord) -> Iterator[TextSpan]:
    start, pattern = _pattern(word)
    position = folded.find(start)
    for _ in range(CANDIDATES_MAX):
        if position < 0:
            return
        match = pattern.match(folded, position)
        is_hit = match and _stands_alone(folded, position, match.end(), word)
        if match and is_hit:
            yield match.span()
        position = folded.find(start, match.end() if match and is_hit else position + 1)


def _stands_alone(folded: str, start: int, end: int, word: QueryWord) -> bool:
    if _is_inside_word(folded, start):
        return False
    return word.is_prefix or not _is_inside_word(folded, end)


def _is_inside_word(folded: str, position: int) -> bool:
    if not 0 < position < len(folded):
        return False
    before, after = folded[position - 1], folded[position]
    if not (before.isalnum() and after.isalnum()):
        return False
    return not (_SPACELESS_RUN.match(before) or _SPACELESS_RUN.match(after))


@lru_cache(maxsize=256)
def _pattern(word: QueryWord) -> tuple[str, re.Pattern[str]]:
    """Return the text to search for first, and the pattern that must then match there."""
    tokens = [_fold(token) for token in _tokens(word.text)]
    parts: list[str] = []
    for previous, token in zip(["", *tokens], tokens, strict=False):
        if previous:
            is_touching = _SPACELESS_RUN.match(previous) or _SPACELESS_RUN.match(token)
            parts.append(r"[\W_]*+" if is_touching else r"[\W_]++")
        # Few ASCII letters have diacritics; looking for them would make every search slow.
        diacritics = "" if token.isascii() else f"[{_DIACRITICS}]*"
        parts.append(diacritics.join(map(re.escape, token)) + diacritics)
    start = tokens[0] if tokens[0].isascii() else tokens[0][0]
    return start, re.compile("".join(parts))


def _densest_span(matches: list[tuple[int, int, int]], room: int) -> TextSpan:
    """Return the smallest span of at most `room` characters with the most different words."""
    best, best_rank = (0, 0), (0, 0)
    word_counts: dict[int, int] = {}
    first = 0
    for start, end, word in matches:
        word_counts[word] = word_counts.get(word, 0) + 1
        while matches[first][0] < start and (
            end - matches[first][0] > room or word_counts[matches[first][2]] > 1
        ):
            dropped_word = matches[first][2]
            word_counts[dropped_word] -= 1
            if not word_counts[dropped_word]:
                del word_counts[dropped_word]
            first += 1
        rank = (len(word_counts), matches[first][0] - end)
        if rank > best_rank or best_rank == (0, 0):
            best, best_rank = (matches[first][0], end), rank
    return best


def _cut_at_words(line: str, start: int, end: int, match_start: int) -> str:
    end = min(end, len(line))
    if start > 0:
        start = _border_after(line, start, min(match_start, start + _BORDER_SEARCH_CHARS))
    if end < len(line):
        end = _border_before(line, end, max(start + 1, end - _BORDER_SEARCH_CHARS))
    part = line[start:end].strip()
    return f"{'…' if start > 0 else ''}{part}{'…' if end < len(line) else ''}"


def _border_after(line: str, start: int, limit: int) -> int:
    for position in range(start, limit + 1):
        if _is_word_border(line, position):
            return position
    return start


def _border_before(line: str, end: int, limit: int) -> int:
    for position in range(end, limit - 1, -1):
        if _is_word_border(line, position):
            return position
    while end > limit and unicodedata.category(line[end])[0] in "MC":
        end -= 1  # not between a letter and its accent
    return end


def _is_word_border(line: str, position: int) -> bool:
    if line[position] == " " or line[position - 1] == " ":
        return True
    return (
        bool(_SPACELESS_RUN.match(line[position]) or _SPACELESS_RUN.match(line[position - 1]))
        and unicodedata.category(line[position])[0] not in "MC"
    )


def _fold(text: str) -> str:
    """Fold as the tokenizer does, but character for character, so that positions stay the same."""
    return text.lower() if text.isascii() else text.translate(_FOLD_TABLE)


class _FoldTable(dict[int, str]):
    """A translation table that is filled as characters are met; there are not many."""

    def __missing__(self, key: int) -> str:
        char = chr(key)
        base = unicodedata.normalize("NFD", char)[0]
        if not unicodedata.name(base, "").startswith("LATIN"):
            base = _SPELLING_FOLDS.get(char, char)
        self[key] = folded = base.lower()[0]
        return folded


_FOLD_TABLE: Final = _FoldTable()
