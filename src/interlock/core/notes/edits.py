"""The edits of a note: each changes one part of the text, and everything around it stays as it is.

The frontmatter is never touched: `apply_edit` splits it off, edits the body, and refuses a result
that would be read with other frontmatter. Inserted text gets the newlines that the file has.

A section is found by its heading among the blocks of `markdown_blocks`, so a `#` in code is no
heading. It ends at the next heading that is not below its own; what `ReplaceSection` replaces ends
at the next heading of any level, unless it is told to include the subsections.

Text right above an underlined heading would become part of that heading, so `Prepend` and the edits
of sections leave a blank line there. Refusals count lines from 1, in the whole file.
"""

import difflib
import re
from bisect import bisect_right
from typing import TypeAlias

import msgspec

from interlock.core.notes import frontmatter, markdown_blocks
from interlock.core.notes.edit_refusals import (
    AmbiguousSection,
    EditRefusal,
    EmptySearchText,
    FrontmatterConflict,
    MatchCountMismatch,
    NoSuchSection,
    TextNotFound,
)
from interlock.core.notes.markdown_blocks import MarkdownBlock

LINES_COMPARED_MAX = 500  # comparing is slow, and a hint is only a hint
LINE_CHARS_COMPARED_MAX = 200
REPORTED_LINES_MAX = 20  # a letter may be there two million times
_HASHES = re.compile(r"(#{1,6})[ \t]+")


class Append(msgspec.Struct, frozen=True, tag="append"):
    """Add text after the last line."""

    content: str


class Prepend(msgspec.Struct, frozen=True, tag="prepend"):
    """Add text before the first line, after the frontmatter."""

    content: str


class FindReplace(msgspec.Struct, frozen=True, tag="find_replace"):
    find: str
    replacement: str
    expected: int = 1
    """The number of matches there must be. All of them are replaced, or none."""


class ReplaceSection(msgspec.Struct, frozen=True, tag="replace_section"):
    """Replace the text under a heading. The heading stays; `content` may begin with it again."""

    section: str
    content: str
    with_subsections: bool = False


class InsertBefore(msgspec.Struct, frozen=True, tag="insert_before_section"):
    section: str
    content: str


class InsertAfter(msgspec.Struct, frozen=True, tag="insert_after_section"):
    """Insert text after the section and its subsections, which keep their text."""

    section: str
    content: str


NoteEdit: TypeAlias = Append | Prepend | FindReplace | ReplaceSection | InsertBefore | InsertAfter


def apply_edit(text: str, change: NoteEdit) -> str | EditRefusal:
    """Return the text of the file after the edit, or the reason it is refused."""
    front, body = frontmatter.read(text)
    newline = markdown_blocks.newline_of(text)
    first_line = len(markdown_blocks.end_offsets(front.text)) if front.text else 1
    match change:
        case FindReplace():
            result = _find_and_replace(body, change, newline, first_line)
        case Append(content):
            result = (
                body
                + _missing_newline(front.text + body, newline)
                + _with_final_newline(content, newline)
            )
        case Prepend(content):
            gap = newline if _begins_with_underlined_heading(body) else ""
            result = (
                _missing_newline(front.text, newline)
                + _with_final_newline(content, newline)
                + gap
                + body
            )
        case _:
            result = _edit_section(body, change, newline or "\n", first_line)
    if not isinstance(result, str):
        return result
    edited_text = front.text + result
    # The inserted text may begin with a fence of frontmatter, or close one that was open.
    if _stripped_front(frontmatter.read(edited_text)[0].text) != _stripped_front(front.text):
        return FrontmatterConflict()
    return edited_text


def _stripped_front(front: str) -> str:
    return front.strip(f"{frontmatter.BYTE_ORDER_MARK}\r\n")


def _begins_with_underlined_heading(body: str) -> bool:
    """True if text right above the body would become part of its first heading."""
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
    next_section = next(
        (candidate for candidate in following if candidate.level <= heading.level), None
    )
    content = _convert_newlines(change.content, newline)
    match change:
        case InsertBefore():
            return _insert_paragraph(body, starts[heading.first], content, newline)
        case InsertAfter():
            end = starts[next_section.first] if next_section else len(body)
            return _insert_paragraph(body, end, content, newline)
        case ReplaceSection(_, _, with_subsections):
            next_heading = next_section if with_subsections else next(iter(following), None)
            start = starts[heading.last + 1]
            end = starts[next_heading.first] if next_heading else len(body)
            is_underlined = next_heading is not None and next_heading.last > next_heading.first
            content = _without_heading(content, heading)
            return _replace_section(
                body, start, end, content, newline, is_before_underlined_heading=is_underlined
            )


def _find_heading(
    headings: list[MarkdownBlock], section: str, first_line: int
) -> MarkdownBlock | NoSuchSection | AmbiguousSection:
    query = section.strip()
    hashes = _HASHES.match(query)
    name = query[hashes.end() :].strip() if hashes else query
    level = len(hashes[1]) if hashes else 0
    candidates = [heading for heading in headings if level in (0, heading.level)]
    matches = [heading for heading in candidates if _title(heading) == name]
    if not matches:
        folded = name.casefold()
        matches = [heading for heading in candidates if _title(heading).casefold() == folded]
    if len(matches) == 1:
        return matches[0]
    if matches:
        lines = tuple(heading.first + first_line for heading in matches[:REPORTED_LINES_MAX])
        levels = {heading.level for heading in matches}
        return AmbiguousSection(section, len(matches), lines, len(levels) == len(matches))
    labels = [f"{'#' * heading.level} {_title(heading)}" for heading in headings]
    label_by_name = {
        _title(heading).casefold(): label for heading, label in zip(headings, labels, strict=True)
    }
    closest = difflib.get_close_matches(
        name.casefold(), list(label_by_name)[:LINES_COMPARED_MAX], n=1
    )
    return NoSuchSection(section, tuple(labels), label_by_name[closest[0]] if closest else "")


def _title(heading: MarkdownBlock) -> str:
    return " ".join(heading.texts).strip()


def _without_heading(content: str, heading: MarkdownBlock) -> str:
    for block in markdown_blocks.blocks(markdown_blocks.split(content))[:1]:
        is_first = not content[: [0, *markdown_blocks.end_offsets(content)][block.first]].strip()
        is_same_heading = (block.kind, block.level, _title(block)) == (
            "heading",
            heading.level,
            _title(heading),
        )
        if is_first and is_same_heading:
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
    """Replace the text between `start` and `end`, keeping the blank lines around it."""
    section = body[start:end]
    old_text = section.strip("\r\n")
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
    begin = start + section.index(old_text)
    stop = begin + len(old_text)
    if not content:
        # One of the two blank gaps around it is enough.
        return body[:start] + body[stop:].removeprefix(newline)
    is_adjacent = not markdown_blocks.split(body[stop:end])[2:]
    gap = newline if is_before_underlined_heading and is_adjacent else ""
    return body[:begin] + content + gap + body[stop:]


def _insert_paragraph(body: str, position: int, content: str, newline: str) -> str:
    """Insert a paragraph of its own: with a blank line on either side, where there is none."""
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
    match_count = body.count(find)
    if not match_count:
        return _text_not_found(body, change.find, first_line)
    if match_count != change.expected:
        lines = _match_lines(body, find, first_line)
        return MatchCountMismatch(change.expected, match_count, lines)
    return body.replace(find, _convert_newlines(change.replacement, newline))


def _match_lines(body: str, find: str, first_line: int) -> tuple[int, ...]:
    """Return the line numbers of the first matches."""
    starts = markdown_blocks.end_offsets(body)[:-1]
    lines: list[int] = []
    position = body.find(find)
    while position >= 0 and len(lines) < REPORTED_LINES_MAX:
        lines.append(bisect_right(starts, position) + first_line)
        position = body.find(find, position + len(find))
    return tuple(lines)


def _text_not_found(body: str, find: str, first_line: int) -> TextNotFound:
    sought_line = next((line.strip() for line in markdown_blocks.split(find) if line.strip()), "")
    compared_lines = markdown_blocks.split(body)[:LINES_COMPARED_MAX]
    shortened_lines = [line.strip()[:LINE_CHARS_COMPARED_MAX] for line in compared_lines]
    close = (
        difflib.get_close_matches(sought_line[:LINE_CHARS_COMPARED_MAX], shortened_lines, n=1)
        if sought_line
        else []
    )
    if not close:
        return TextNotFound(find, "", 0)
    index = shortened_lines.index(close[0])
    return TextNotFound(find, compared_lines[index], index + first_line)


def _missing_newline(above: str, newline: str) -> str:
    """Return the newline that `above` lacks for text to follow on a line of its own, or nothing."""
    is_complete = not above.strip(frontmatter.BYTE_ORDER_MARK) or above.endswith(("\n", "\r"))
    return "" if is_complete else newline or "\n"


def _with_final_newline(content: str, newline: str) -> str:
    content = _convert_newlines(content, newline)
    return content + _missing_newline(content, newline or markdown_blocks.newline_of(content))


def _convert_newlines(content: str, newline: str) -> str:
    if not newline or ("\r" not in content and newline == "\n"):
        return content
    return content.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)
