"""The blocks of a Markdown text: headings, list items and prose with their lines. Code is left out.

`_BlockScanner` reads a line at a time and keeps what is open: CommonMark's way, as far as it
matters here. Open are the containers around the line (quotes and list items, outermost first), the
paragraph that the line may continue, and perhaps a code fence or comment. For each line:

1. `_scan_simple_line` takes the usual lines, for speed only; all others go the long way.
2. `_strip_containers` removes the quote marks and indents of the open containers that the line is
   in. A fence or comment goes on until its end, or until its container is over.
3. `_scan_block` opens the containers that begin on the line, and closes those that it is not in.
4. `_scan_leaf` takes what is left: a heading, fence, comment or rule, else text. Text continues the
   open paragraph even where the marks of its containers are missing.

One difference from CommonMark: inside a list an item may be indented however deeply, so there is no
indented code in lists.
"""

import re
from typing import Literal

import msgspec

_NEWLINE = re.compile(r"\r\n|\n|\r")
_MARKER = re.compile(r"(?:[-*+]|(\d{1,9})[.)])(?=[ \t]|$)")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]|$)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")
_QUOTE = -1
_CODE_INDENT = 4
_RULE_MARKS_MIN = 3
_CONTAINERS_MAX = 64  # nobody nests deeper, and each costs time on each line
_MARKUP_STARTS = frozenset(" \t>-+*_=`~#<0123456789")
"""The characters that may begin a line that is more than text."""


class MarkdownBlock(msgspec.Struct, gc=False):
    kind: Literal["heading", "item", "prose"]
    """An item is the first paragraph of a list item that is in no quote."""
    first: int
    """The number of its first line in the text, from 0."""
    last: int
    texts: list[str]
    """Its lines, without the markup that makes them part of a list, a quote or a heading."""
    level: int = 0


def split(text: str) -> list[str]:
    """Return the lines without newlines. `str.splitlines` knows ends that Markdown does not."""
    return _NEWLINE.split(text) if "\r" in text else text.split("\n")


def end_offsets(text: str) -> list[int]:
    """Return where each line ends, after its newline; the last one at the end of the text."""
    return [*(newline.end() for newline in _NEWLINE.finditer(text)), len(text)]


def newline_of(text: str) -> str:
    """Return the newline that most lines of `text` end with; empty where it has only one line."""
    crlf_count = text.count("\r\n")
    lf_count = text.count("\n") - crlf_count
    cr_count = text.count("\r") - crlf_count
    max_count = max(crlf_count, lf_count, cr_count)
    if not max_count:
        return ""
    return "\n" if lf_count == max_count else "\r\n" if crlf_count == max_count else "\r"


def blocks(lines: list[str]) -> list[MarkdownBlock]:
    scanner = _BlockScanner()
    for number, line in enumerate(lines):
        scanner.scan_line(number, line)
    return scanner.blocks


class _BlockScanner:
    def __init__(self) -> None:
        self.blocks: list[MarkdownBlock] = []
        self._containers: list[int] = []
        """Outermost first: `_QUOTE`, or the indent of a list item in the container around it."""
        self._paragraph: MarkdownBlock | None = None
        """The paragraph that the next line may continue; it is in the innermost container."""
        self._fence = ""
        self._in_comment = False
        self._is_item_empty = False
        """Whether a list item has just begun with nothing in it: a blank line ends it."""

    def scan_line(self, number: int, line: str) -> None:
        if not self._fence and not self._in_comment and self._scan_simple_line(number, line):
            return
        if self._fence and not self._containers and line[:1] not in {" ", "\t", self._fence[0]}:
            return
        if "\t" in line:
            text = line.lstrip(" \t")
            line = line[: len(line) - len(text)].expandtabs(4) + text
        rest, depth = self._strip_containers(line)
        if (self._fence or self._in_comment) and self._continue_fence_or_comment(
            number, rest, depth
        ):
            return
        was_item_empty, self._is_item_empty = self._is_item_empty, False
        if not rest.strip(" \t"):
            self._paragraph = None
            if was_item_empty and depth == len(self._containers):
                depth -= 1
            del self._containers[depth:]
            return
        self._scan_block(number, rest, depth)

    def _scan_simple_line(self, number: int, line: str) -> bool:
        """True if it is one of the usual lines, which is then done with.

        The long way takes several times longer.
        """
        if not line:
            if self._is_item_empty or _QUOTE in self._containers:
                return False
            self._paragraph = None
            return True
        mark = line[0]
        if mark not in _MARKUP_STARTS:
            # It is in no container: a line in an open one has an indent or a mark.
            if not self._paragraph:
                self._containers.clear()
            self._add_to_paragraph(number, line)
        elif mark in "#`~":
            self._scan_leaf(number, line, depth=0, kind="prose")
        elif mark in "-*+" and line[1:2] == " " and line[2:3] and line[2] not in _MARKUP_STARTS:
            self._containers[:] = [2]
            self._paragraph = MarkdownBlock("item", number, number, [line[2:]])
            self.blocks.append(self._paragraph)
        else:
            return False
        self._is_item_empty = False
        return True

    def _strip_containers(self, line: str) -> tuple[str, int]:
        """Return the rest of the line after the open containers that it is in, and their number."""
        position = 0
        for depth, container in enumerate(self._containers):
            text = line[position:].lstrip(" ")
            indent = len(line) - position - len(text)
            if container == _QUOTE:
                if indent >= _CODE_INDENT or text[:1] != ">":
                    return line[position:], depth
                position += indent + (2 if text[1:2] in (" ", "\t") else 1)
            elif indent >= container:
                position += container
            elif text.strip(" \t"):
                return line[position:], depth
        return line[position:], len(self._containers)

    def _continue_fence_or_comment(self, number: int, rest: str, depth: int) -> bool:
        """True if the line is part of the open fence or comment."""
        if depth < len(self._containers):
            # The list item or quote that the fence or comment was in is over, and so is it.
            self._fence = ""
            self._in_comment = False
            return False
        if self._fence:
            text = rest.lstrip(" ")
            is_shallow = len(rest) - len(text) < _CODE_INDENT
            is_bare = not text.rstrip(" \t").strip(self._fence[0])
            if is_shallow and is_bare and text.startswith(self._fence):
                self._fence = ""
        elif "-->" in rest:
            self._in_comment = False
            self._add_prose(number, rest.partition("-->")[2])
        return True

    def _scan_block(self, number: int, rest: str, depth: int) -> None:
        paragraph = self._paragraph
        is_inside = depth == len(self._containers)
        if paragraph and is_inside and self._try_underlined_heading(number, rest):
            return
        kind: Literal["item", "prose"] = "prose"
        has_opened = False
        while True:
            text = rest.lstrip(" ")
            indent = len(rest) - len(text)
            is_deep = indent >= _CODE_INDENT
            open_containers = self._containers if has_opened else self._containers[:depth]
            in_list = any(container != _QUOTE for container in open_containers)
            if (is_deep and not in_list) or len(open_containers) >= _CONTAINERS_MAX:
                break
            if text[:1] == ">" and not is_deep:
                inner, container, kind = (
                    text[2 if text[1:2] in (" ", "\t") else 1 :],
                    _QUOTE,
                    "prose",
                )
            else:
                marker = _MARKER.match(text)
                interrupts = bool(paragraph and is_inside and not has_opened)
                if (
                    not marker
                    or _is_rule(text)
                    or (interrupts and not _may_interrupt(marker, text))
                ):
                    break
                inner = text[marker.end() :]
                container, inner = _item_indent(indent + marker.end(), inner)
                kind = "prose" if _QUOTE in open_containers else "item"
                self._is_item_empty = not inner
            if not has_opened:
                has_opened = True
                self._paragraph = None
                del self._containers[depth:]
            self._containers.append(container)
            rest = inner
            if not rest.strip(" \t"):
                return
        self._scan_leaf(number, rest, depth=None if has_opened else depth, kind=kind)

    def _scan_leaf(
        self, number: int, rest: str, *, depth: int | None, kind: Literal["item", "prose"]
    ) -> None:
        """`depth` counts the open containers that `rest` is in; None: one begins on this line."""
        text = rest.lstrip(" ")
        is_deep = len(rest) - len(text) >= _CODE_INDENT
        if not is_deep and self._try_begin_leaf(number, text, depth):
            return
        if self._paragraph:
            # A line that can be nothing else continues the paragraph, wherever that is.
            self._add_to_paragraph(number, text)
            return
        if depth is not None:
            del self._containers[depth:]
        if is_deep and all(container == _QUOTE for container in self._containers):
            return
        self._add_to_paragraph(number, text, kind)

    def _try_begin_leaf(self, number: int, text: str, depth: int | None) -> bool:
        if text[0] not in _MARKUP_STARTS:
            return False
        fence = _FENCE.match(text)
        heading = _HEADING.match(text)
        is_comment = text.startswith("<!--")
        if not (fence or heading or is_comment or _is_rule(text)):
            return False
        self._paragraph = None
        if depth is not None:
            del self._containers[depth:]
        if fence:
            self._fence = fence[1] or fence[2]
        elif heading:
            level = len(heading[1])
            inner = text[level:].strip(" \t")
            inner = _CLOSING_HASHES.sub("", inner).rstrip(" \t")
            self.blocks.append(MarkdownBlock(self._heading_kind(), number, number, [inner], level))
        elif is_comment:
            _, closing, rest = text[2:].partition("-->")
            self._in_comment = not closing
            self._add_prose(number, rest)
        return True

    def _try_underlined_heading(self, number: int, rest: str) -> bool:
        text = rest.strip(" \t")
        mark = text[:1]
        if mark not in {"=", "-"} or text.strip(mark) or rest.startswith(" " * _CODE_INDENT):
            return False
        paragraph = self._paragraph
        assert paragraph is not None, "a heading that is underlined has a text"
        paragraph.kind = self._heading_kind()
        paragraph.level = 1 if mark == "=" else 2
        paragraph.last = number
        self._paragraph = None
        return True

    def _heading_kind(self) -> Literal["heading", "prose"]:
        """Return the kind of a heading here: inside a list or a quote it divides nothing."""
        return "prose" if self._containers else "heading"

    def _add_to_paragraph(
        self, number: int, text: str, kind: Literal["item", "prose"] = "prose"
    ) -> None:
        if self._paragraph:
            self._paragraph.texts.append(text)
            self._paragraph.last = number
        else:
            self._paragraph = MarkdownBlock(kind, number, number, [text])
            self.blocks.append(self._paragraph)

    def _add_prose(self, number: int, text: str) -> None:
        if text.strip():
            self.blocks.append(MarkdownBlock("prose", number, number, [text]))


def _item_indent(offset: int, inner: str) -> tuple[int, str]:
    """Return the indent of an item whose marker ends at `offset`, and its text on this line."""
    text = inner.lstrip(" \t")
    spaces = len(inner[: len(inner) - len(text)].expandtabs(4))
    if not text or spaces > _CODE_INDENT:
        return offset + 1, text
    return offset + spaces, text


def _may_interrupt(marker: re.Match[str], text: str) -> bool:
    """True if the marker may interrupt a paragraph.

    "1986. A great year" at the start of a line is no list.
    """
    return marker[1] in {None, "1"} and bool(text[marker.end() :].strip(" \t"))


def _is_rule(text: str) -> bool:
    mark = text[:1]
    if mark not in {"-", "*", "_"}:
        return False
    marks = text.replace(" ", "").replace("\t", "")
    return len(marks) >= _RULE_MARKS_MIN and not marks.strip(mark)
