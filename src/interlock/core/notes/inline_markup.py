"""The markup inside a block of a note: links, tags, observations and relations.

Each line exists twice: as it is, and masked. The mask has the same length, with `_MASK` in place of
everything that has no meaning here (code, comments, escaped characters). Markup is found in the
mask, and then cut out of the text at the same positions.

`_mask_lines` masks the lines of a block together, as code may begin on one and end on another. Then
every `[[target]]` is a link of the kind `links_to`, except on the first line of a list item, where
`_parse_first_line` tries in this order:

1. a relation: a kind (or none), one target, and at most a context in parentheses after it;
2. a checkbox, whose line has links but is no observation;
3. an observation: it has a category, a tag, or both. Links in its text are links all the same.
"""

import re
from bisect import bisect_right
from typing import Final

from interlock.core.notes.note import NoteLink, Observation

LINKS_TO = "links_to"
DEFAULT_CATEGORY = "Note"
TARGET_CHARS_MAX = 300

_MASK = "\0"
_SPECIAL = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<!--")
_TICKS = re.compile(r"`+")
# Not `\w`: that leaves out the vowel signs of many scripts.
_NON_WORD_CHARS = (
    r"\s\0-,./:-@\[-^`{-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u060c\u061b\u061f\u0964\u0965"
    r"\u2010-\u205e\u3001-\u3003\u3008-\u3020\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3d\uff5b-\uff65"
)
_TAG = re.compile(rf"#(?<!\S#)([^{_NON_WORD_CHARS}\d_-][^{_NON_WORD_CHARS.replace('./', '.')}]*)")
_WORD = re.compile(rf"[^{_NON_WORD_CHARS}]+")
_TIME = r"\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,9})?(?: ?[AaPp]\.?[Mm]\.?)?"
_DATE = r"\d{4}-\d{2}-\d{2}"
_SPAN = rf"{_TIME}(?: ?(?:-{{1,2}}>?|\u2013|\u2192) ?{_TIME})?"
_TIMESTAMP = re.compile(rf"(?:{_DATE}(?:[T ]{_TIME}(?: ?(?:Z|[+-]\d\d:?\d\d))?)?|{_SPAN})")
_TARGET_END = re.compile(r"[|#^\[\]]")
_PARENTHESIS = re.compile(r"[()]")
_CATEGORY_END = re.compile(r"[\[\]()]")


def parse_links(texts: list[str], line: int) -> list[NoteLink]:
    """Return every `[[link]]` in a paragraph that begins at `line`."""
    whole = texts[0] if len(texts) == 1 else "\n".join(texts)
    if "[[" not in whole:
        return []
    return [
        link
        for offset, (text, mask) in enumerate(zip(texts, _mask_lines(texts, whole), strict=True))
        for link in _links_at(text, _link_spans(mask), line + offset)
    ]


def parse_list_item(texts: list[str], line: int) -> tuple[Observation | None, list[NoteLink]]:
    """Return the observation and the links of a list item that begins at `line`.

    An observation or relation is on its first line.
    """
    whole = texts[0] if len(texts) == 1 else "\n".join(texts)
    if "[" not in whole and "#" not in whole:
        return None, []
    masks = _mask_lines(texts, whole)
    observation, links = _parse_first_line(texts[0], masks[0], line)
    for offset in range(1, len(texts)):
        links += _links_at(texts[offset], _link_spans(masks[offset]), line + offset)
    return observation, links


def _parse_first_line(text: str, mask: str, line: int) -> tuple[Observation | None, list[NoteLink]]:
    mask = mask.rstrip()
    text = text[: len(mask)]
    spans = _link_spans(mask)
    relation = _relation(text, mask, line, spans) if spans else None
    if relation:
        return None, [relation]
    links = _links_at(text, spans, line)
    start = 0
    category = ""
    if mask[:1] == "[":
        if _is_checkbox(mask):
            return None, links
        category, start = _category(text, mask)
    tags = _tags(mask, spans) if "#" in mask else ()
    if not category and not tags:
        return None, links
    end, context = _trailing_context(text, mask, start)
    if end == start:
        end, context = len(text), ""
    return Observation(category or DEFAULT_CATEGORY, text[start:end], tags, context, line), links


def _links_at(text: str, spans: list[tuple[int, int]], line: int) -> list[NoteLink]:
    return [
        NoteLink(LINKS_TO, target, "", line)
        for start, end in spans
        if (target := target_of(text[start + 2 : end - 2]))
    ]


def _mask_lines(texts: list[str], whole: str) -> list[str]:
    """Mask the lines of one paragraph: code may begin on one and end on another."""
    if "`" not in whole and "\\" not in whole and "<!--" not in whole:
        return texts
    ticks: dict[int, list[int]] = {}
    for run in _TICKS.finditer(whole):
        ticks.setdefault(run.end() - run.start(), []).append(run.start())
    parts: list[str] = []
    copied_until = position = 0
    while special := _SPECIAL.search(whole, position):
        start, position = special.span()
        mark = whole[start]
        if mark == "\\":
            start, end = start + 1, position
        elif mark == "`":
            length = position - start
            starts = ticks.get(length, [])
            index = bisect_right(starts, start)
            if index == len(starts):
                continue
            end = starts[index] + length
        else:
            comment_end = whole.find("-->", start + 2)
            if comment_end < 0:
                # None of the comments that begin after it has an end either.
                whole = whole[:position] + whole[position:].replace("<!--", _MASK * 4)
                continue
            end = comment_end + 3
        parts += whole[copied_until:start], _mask_text(whole[start:end])
        copied_until = position = end
    parts.append(whole[copied_until:])
    return "".join(parts).split("\n")


def _mask_text(text: str) -> str:
    return "\n".join(_MASK * len(part) for part in text.split("\n"))


def _link_spans(mask: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    position = 0
    while (position := mask.find("[[", position)) >= 0:
        end = mask.find("]]", position + 2)
        if end < 0:
            break
        # Of several `[[` before one `]]`, the last begins the link.
        spans.append((mask.rfind("[[", position, end), end + 2))
        position = end + 2
    return spans


def target_of(inside: str) -> str:
    """Return the target of `[[inside]]` without alias and heading; empty where it is no link."""
    if end := _TARGET_END.search(inside):
        if end[0] in "[]":
            return ""  # a matrix is no link: `[[1, 2], [3, 4]]`
        # In a table the bar of an alias is written `\|`.
        inside = inside[: end.start()].removesuffix("\\")
    inside = inside.strip()
    return inside if len(inside) <= TARGET_CHARS_MAX else ""


def _relation(text: str, mask: str, line: int, spans: list[tuple[int, int]]) -> NoteLink | None:
    start = spans[0][0]
    kind = _relation_kind(text[:start], mask[:start])
    if not kind:
        return None
    end = spans[0][1]
    target = target_of(text[start + 2 : end - 2])
    if not target:
        return None
    closing, context = _trailing_context(text, mask, end)
    return NoteLink(kind, target, context, line) if closing == end else None


def _relation_kind(text: str, mask: str) -> str:
    """Return the kind that is before the target: nothing, a word, or a phrase in quotes."""
    if not text:
        return LINKS_TO
    word = text.rstrip()
    if word == text or _MASK in mask:
        return ""
    if word[0] == '"':
        phrase, closing, rest = word[1:].partition('"')
        return phrase.strip() if closing and not rest else ""
    return word if _WORD.fullmatch(word) else ""


def _is_checkbox(mask: str) -> bool:
    """True for any single ASCII character: people and plug-ins gave meanings to most of them."""
    return mask[2:3] == "]" and mask[1].isascii() and mask[3:4] in {"", " ", "\t"}


def _category(text: str, mask: str) -> tuple[str, int]:
    """Return the category, and where the text after it begins."""
    end = _CATEGORY_END.search(mask, 1)
    if not end or end[0] != "]" or mask[end.end() : end.end() + 1] not in {" ", "\t"}:
        return "", 0
    category = text[1 : end.start()].strip()
    if category[:1] in {"", "!", "^"} or (len(category) == 1 and category.isascii()):
        return "", 0
    if category[0].isdigit() and _TIMESTAMP.fullmatch(category):
        return "", 0
    return category, len(mask) - len(mask[end.end() :].lstrip())


def _tags(mask: str, link_spans: list[tuple[int, int]]) -> tuple[str, ...]:
    parts: list[str] = []
    copied_until = 0
    for start, end in link_spans:
        parts += mask[copied_until:start], _MASK * (end - start)
        copied_until = end
    candidates = (
        tag[1].rstrip("-/") for tag in _TAG.finditer("".join(parts) + mask[copied_until:])
    )
    return tuple(dict.fromkeys(tag for tag in candidates if tag[:1].isalpha()))


def _trailing_context(text: str, mask: str, start: int) -> tuple[int, str]:
    """Return where the text from `start` on ends, and the content of the parentheses after it."""
    length = len(text)
    if mask[-1:] != ")":
        return length, ""
    depth = position = 0
    for parenthesis in reversed([*_PARENTHESIS.finditer(mask, start + 1)]):
        depth += 1 if parenthesis[0] == ")" else -1
        if depth == 0:
            position = parenthesis.start()
            break
    if not position:
        return length, ""
    context = text[position + 1 : length - 1].strip()
    if not context or not mask[position - 1].isspace():
        return length, ""
    return start + len(text[start:position].rstrip()), context


# The markup at the start of a line. Matching is one step per character: a note may have megabytes
# of anything. It begins with the newline before the line, which is found faster than a line start.
_LINE_START: Final = re.compile(
    r"""
    \n(?:
        [ \t|:=-]++(?=\r?\n|\Z)  # a rule; what parts the head of a table
      | [ \t>]*+(?:\#{1,6}[ \t]++|[-*+][ \t]++(?:\[[ xX]\][ \t]++)?+)?+  # heading, quotation, item
    )
    """,
    re.VERBOSE,
)
_INLINE_MARKS: Final = ("`", "**", "~~", "[[", "]]", "<!--", "-->")


def strip_markdown(text: str) -> str:
    text = _LINE_START.sub("\n", f"\n{text}")[1:]
    for mark in _INLINE_MARKS:
        text = text.replace(mark, "")
    return text
