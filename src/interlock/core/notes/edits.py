"""Edits of a note: each changes one place, and everything around it stays as it is.

The frontmatter is never touched. What is put in gets the newlines that the file has.
"""

import difflib
import re
from bisect import bisect_right
from typing import TypeAlias

import msgspec

from interlock.core.notes import frontmatter, markdown_blocks
from interlock.core.notes.markdown_blocks import MarkdownBlock

LINES_COMPARED_MAX = 500  # comparing is slow, and a hint is only a hint
LINE_CHARS_COMPARED_MAX = 200
REPORTED_LINES_MAX = 20  # a letter may be there two million times
_HASHES = re.compile(r"(#{1,6})[ \t]+")


class Append(msgspec.Struct, frozen=True, tag="append"):
    """After the last line."""

    content: str


class Prepend(msgspec.Struct, frozen=True, tag="prepend"):
    """Before the first line, after the frontmatter."""

    content: str


class FindReplace(msgspec.Struct, frozen=True, tag="find_replace"):
    find: str
    replacement: str
    expected: int = 1
    """How many places there must be. All of them are changed, or none."""


class ReplaceSection(msgspec.Struct, frozen=True, tag="replace_section"):
    """What is under a heading. The heading stays; `content` may begin with it again."""

    section: str
    content: str
    with_subsections: bool = False


class InsertBefore(msgspec.Struct, frozen=True, tag="insert_before_section"):
    section: str
    content: str


class InsertAfter(msgspec.Struct, frozen=True, tag="insert_after_section"):
    """After the section and its subsections: what is put there does not take their text over."""

    section: str
    content: str


NoteEdit: TypeAlias = Append | Prepend | FindReplace | ReplaceSection | InsertBefore | InsertAfter


class EmptySearchText(msgspec.Struct, frozen=True):
    """Nothing is everywhere."""


class TextNotFound(msgspec.Struct, frozen=True):
    find: str
    closest: str
    """The line that is most like it; empty where none is."""
    line: int
    """Where that is, from 1; 0 where there is none."""


class MatchCountMismatch(msgspec.Struct, frozen=True):
    expected: int
    found: int
    lines: tuple[int, ...]
    """Where the first of them are."""


class NoSuchSection(msgspec.Struct, frozen=True):
    section: str
    existing_sections: tuple[str, ...]
    closest: str


class AmbiguousSection(msgspec.Struct, frozen=True):
    section: str
    found: int
    lines: tuple[int, ...]
    """Where the first of them are."""
    is_distinct_by_level: bool
    """Whether no two have the same number of hashes."""


class FrontmatterConflict(msgspec.Struct, frozen=True):
    """What is put in would become frontmatter, or make some of what is there."""


EditRefusal: TypeAlias = (
    EmptySearchText
    | TextNotFound
    | MatchCountMismatch
    | NoSuchSection
    | AmbiguousSection
    | FrontmatterConflict
)


def apply_edit(text: str, change: NoteEdit) -> str | EditRefusal:
    front, body = frontmatter.read(text)
    newline = markdown_blocks.newline_of(text)
    before = len(markdown_blocks.end_offsets(front.text)) if front.text else 1
    match change:
        case FindReplace():
            edited = _find_and_replace(body, change, newline, before)
        case Append(content):
            edited = (
                body
                + _missing_newline(front.text + body, newline)
                + _with_final_newline(content, newline)
            )
        case Prepend(content):
            gap = newline if _begins_with_underlined_heading(body) else ""
            edited = (
                _missing_newline(front.text, newline)
                + _with_final_newline(content, newline)
                + gap
                + body
            )
        case _:
            edited = _edit_section(body, change, newline or "\n", before)
    if not isinstance(edited, str):
        return edited
    whole = front.text + edited
    # What is put in may begin with a fence of frontmatter, or close one that was open.
    if _stripped_front(frontmatter.read(whole)[0].text) != _stripped_front(front.text):
        return FrontmatterConflict()
    return whole


def _stripped_front(front: str) -> str:
    return front.strip(f"{frontmatter.BYTE_ORDER_MARK}\r\n")


def _begins_with_underlined_heading(body: str) -> bool:
    """A text right above such a heading would become part of it."""
    blocks = markdown_blocks.blocks(markdown_blocks.split(body))[:1]
    return any(block.kind == "heading" and block.first == 0 < block.last for block in blocks)


def _edit_section(
    body: str, change: ReplaceSection | InsertBefore | InsertAfter, newline: str, first_line: int
) -> str | EditRefusal:
    headings = [
        block
        for block in markdown_blocks.blocks(markdown_blocks.split(body))
        if block.kind == "heading"
    ]
    heading = _find_heading(headings, change.section, first_line)
    if not isinstance(heading, MarkdownBlock):
        return heading
    starts = [0, *markdown_blocks.end_offsets(body)]
    following = headings[headings.index(heading) + 1 :]
    after = next((other for other in following if other.level <= heading.level), None)
    content = _convert_newlines(change.content, newline)
    match change:
        case InsertBefore():
            return _insert_paragraph(body, starts[heading.first], content, newline)
        case InsertAfter():
            end = starts[after.first] if after else len(body)
            return _insert_paragraph(body, end, content, newline)
        case ReplaceSection(_, _, with_subsections):
            until = after if with_subsections else next(iter(following), None)
            start = starts[heading.last + 1]
            end = starts[until.first] if until else len(body)
            is_risky = until is not None and until.last > until.first
            content = _without_heading(content, heading)
            return _replace_section(
                body, start, end, content, newline, is_before_underlined_heading=is_risky
            )


def _find_heading(
    headings: list[MarkdownBlock], section: str, first_line: int
) -> MarkdownBlock | NoSuchSection | AmbiguousSection:
    wanted = section.strip()
    hashes = _HASHES.match(wanted)
    name = wanted[hashes.end() :].strip() if hashes else wanted
    level = len(hashes[1]) if hashes else 0
    candidates = [heading for heading in headings if level in (0, heading.level)]
    found = [heading for heading in candidates if _title(heading) == name]
    if not found:
        folded = name.casefold()
        found = [heading for heading in candidates if _title(heading).casefold() == folded]
    if len(found) == 1:
        return found[0]
    if found:
        places = tuple(heading.first + first_line for heading in found[:REPORTED_LINES_MAX])
        levels = {heading.level for heading in found}
        return AmbiguousSection(section, len(found), places, len(levels) == len(found))
    known = [f"{'#' * heading.level} {_title(heading)}" for heading in headings]
    by_name = {
        _title(heading).casefold(): shown for heading, shown in zip(headings, known, strict=True)
    }
    closest = difflib.get_close_matches(name.casefold(), list(by_name)[:LINES_COMPARED_MAX], n=1)
    return NoSuchSection(section, tuple(known), by_name[closest[0]] if closest else "")


def _title(heading: MarkdownBlock) -> str:
    return " ".join(heading.texts).strip()


def _without_heading(content: str, heading: MarkdownBlock) -> str:
    for block in markdown_blocks.blocks(markdown_blocks.split(content))[:1]:
        is_first = not content[: [0, *markdown_blocks.end_offsets(content)][block.first]].strip()
        same = (block.kind, block.level, _title(block)) == (
            "heading",
            heading.level,
            _title(heading),
        )
        if is_first and same:
            return content[markdown_blocks.end_offsets(content)[block.last] :]
    return content


def _replace_section(
    body: str,
    start: int,
    end: int,
    content: str,
    newline: str,
    *,
    is_before_underlined_heading: bool,
) -> str:
    """`is_risky` if what follows is underlined: a text right above it would become part of it."""
    section = body[start:end]
    old = section.strip("\r\n")
    content = content.strip("\r\n")
    if not section.strip():
        if not content:
            return body
        gap = newline if is_before_underlined_heading and not section else ""
        return (
            body[:start]
            + _missing_newline(body[:start], newline)
            + content
            + newline
            + gap
            + body[start:]
        )
    begin = start + section.index(old)
    stop = begin + len(old)
    if not content:
        # One of the two gaps around it is enough.
        return body[:start] + body[stop:].removeprefix(newline)
    is_close = not markdown_blocks.split(body[stop:end])[2:]
    gap = newline if is_before_underlined_heading and is_close else ""
    return body[:begin] + content + gap + body[stop:]


def _insert_paragraph(body: str, position: int, content: str, newline: str) -> str:
    """A paragraph of its own: a blank line on either side, where there is none."""
    content = content.strip("\r\n")
    if not content.strip():
        return body
    above, below = body[:position], body[position:]
    lead = _missing_newline(above, newline)
    if above and (lead or markdown_blocks.split(above)[-2].strip()):
        lead += newline
    tail = newline if not markdown_blocks.split(below)[0].strip() else newline * 2
    return above + lead + content + tail + below


def _find_and_replace(
    body: str, change: FindReplace, newline: str, first_line: int
) -> str | EmptySearchText | TextNotFound | MatchCountMismatch:
    find = change.find
    if not find:
        return EmptySearchText()
    if find not in body:
        find = _convert_newlines(find, newline)
    found = body.count(find)
    if not found:
        return _text_not_found(body, change.find, first_line)
    if found != change.expected:
        return MatchCountMismatch(change.expected, found, _match_lines(body, find, first_line))
    return body.replace(find, _convert_newlines(change.replacement, newline))


def _match_lines(body: str, find: str, first_line: int) -> tuple[int, ...]:
    """The lines of the first places."""
    starts = markdown_blocks.end_offsets(body)[:-1]
    places: list[int] = []
    position = body.find(find)
    while position >= 0 and len(places) < REPORTED_LINES_MAX:
        places.append(bisect_right(starts, position) + first_line)
        position = body.find(find, position + len(find))
    return tuple(places)


def _text_not_found(body: str, find: str, first_line: int) -> TextNotFound:
    first = next((line.strip() for line in markdown_blocks.split(find) if line.strip()), "")
    compared = markdown_blocks.split(body)[:LINES_COMPARED_MAX]
    shortened = [line.strip()[:LINE_CHARS_COMPARED_MAX] for line in compared]
    close = (
        difflib.get_close_matches(first[:LINE_CHARS_COMPARED_MAX], shortened, n=1) if first else []
    )
    if not close:
        return TextNotFound(find, "", 0)
    index = shortened.index(close[0])
    return TextNotFound(find, compared[index], index + first_line)


def _missing_newline(above: str, newline: str) -> str:
    """What `above` lacks for something to follow on a line of its own."""
    is_whole = not above.strip(frontmatter.BYTE_ORDER_MARK) or above.endswith(("\n", "\r"))
    return "" if is_whole else newline or "\n"


def _with_final_newline(content: str, newline: str) -> str:
    content = _convert_newlines(content, newline)
    return content + _missing_newline(content, newline or markdown_blocks.newline_of(content))


def _convert_newlines(content: str, newline: str) -> str:
    if not newline or ("\r" not in content and newline == "\n"):
        return content
    return content.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)
