"""The items of a section: bullets, numbers, checkboxes, table rows; without these, paragraphs."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from interlock.core.notes import status

FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
BULLET: Final = re.compile(r"([ \t]*)(?:[-*+\u2022]|\d{1,4}[.)])[ \t]+(.*)")
_CHECKBOX: Final = re.compile(r"\[([ xX\-~/>!?.]?)\](?:[ \t]+(.*))?")
_CHECK_SIGN: Final = re.compile(r"([\u2705\u2611\u2714\u2b1c\u2610\U0001f532])\ufe0f?[ \t]*(.*)")
_STRUCK_OUT: Final = re.compile(r"~~(.+)~~[ \t]*[.!]?")
_DONE_WORDING: Final = re.compile(
    r"(?:DONE|COMPLETED?)\b[:\s].+|.+[(\[](?i:done|completed?|finished)[)\]]"
)
_THEMATIC_BREAK: Final = re.compile(r"[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}")
_TABLE_ROW: Final = re.compile(r"[ \t]*\|.*\|[ \t]*")
_TABLE_RULE: Final = re.compile(r"[ \t]*\|[ \t:|\-]+\|[ \t]*")
_CELL_BORDER: Final = re.compile(r"(?<!\\)\|")
_STATE_HEADER: Final = re.compile(r"status|state|done|progress", re.IGNORECASE)
_DONE_SIGNS: Final = frozenset("xX\u2705\u2611\u2714")
_NESTED_INDENT: Final = 2  # columns


class ListItem(msgspec.Struct):
    text: str
    is_done: bool | None = None
    """Whether it is marked as done; None where nothing says so."""
    is_paragraph: bool = False
    indent: int = 0


def parse_list(lines: Sequence[str]) -> tuple[list[ListItem], list[str]]:
    """Return the items, and the paragraphs beside them; paragraphs alone are the items."""
    items = list(_read_items([line.rstrip() for line in lines]))
    if all(item.is_paragraph for item in items):
        return items, []
    return (
        [item for item in items if not item.is_paragraph],
        [item.text for item in items if item.is_paragraph],
    )


def _read_items(lines: list[str]) -> Iterator[ListItem]:
    current: ListItem | None = None
    fence = ""
    header: list[str] | None = None
    is_after_blank = True
    for number, line in enumerate(lines):
        fence_match = FENCE.match(line)
        if fence or fence_match:
            fence = _open_fence(fence, fence_match)
            current = _append_line(current, line, "\n")
        elif not line or _THEMATIC_BREAK.fullmatch(line):
            header = None
        elif _TABLE_ROW.fullmatch(line):
            if current:
                yield current
                current = None
            following = lines[number + 1] if number + 1 < len(lines) else ""
            if header is None and _TABLE_RULE.fullmatch(following):
                header = _cells(line)
            elif not _TABLE_RULE.fullmatch(line):
                yield _table_row_item(_cells(line), header or [])
        elif (bullet := BULLET.fullmatch(line)) and not _is_nested_remark(bullet, current):
            if current:
                yield current
            current = _parse_item(bullet[2])
            current.indent = len(bullet[1].expandtabs(4))
        elif bullet or (current and (not is_after_blank or line[0] in " \t")):
            current = _append_line(
                current, line if bullet else line.strip(), "\n" if bullet else " "
            )
        else:
            if current:
                yield current
            current = ListItem(line.strip(), is_paragraph=True)
        is_after_blank = not line and not fence
    if current:
        yield current


def _open_fence(fence: str, match: re.Match[str] | None) -> str:
    """Return the fence that is open after a line."""
    if not fence:
        return match[1] if match else ""
    return "" if match and match[1].startswith(fence) else fence


def _append_line(item: ListItem | None, line: str, between: str) -> ListItem:
    if item is None:
        return ListItem(line, is_paragraph=True)
    item.text = f"{item.text}{between}{line}"
    return item


def _is_nested_remark(bullet: re.Match[str], item: ListItem | None) -> bool:
    """Whether a bullet is a remark below an item. One with a mark is an item of its own."""
    if item is None or item.is_paragraph:
        return False
    is_below = len(bullet[1].expandtabs(4)) >= item.indent + _NESTED_INDENT
    return is_below and _parse_item(bullet[2]).is_done is None


def _parse_item(text: str) -> ListItem:
    box = _CHECKBOX.fullmatch(text) or _CHECK_SIGN.fullmatch(text)
    if box:
        return ListItem(box[2] or "", box[1] in _DONE_SIGNS)
    struck = _STRUCK_OUT.fullmatch(text)
    if struck:
        return ListItem(struck[1], is_done=True)
    return ListItem(text, True if _DONE_WORDING.fullmatch(text) else None)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL_BORDER.split(line.strip())[1:-1]]


def _table_row_item(cells: list[str], header: list[str]) -> ListItem:
    names = header + [""] * len(cells)
    texts = [
        f"{name}: {cell}" if name and column else cell
        for column, (cell, name) in enumerate(zip(cells, names, strict=False))
        if cell
    ]
    is_done = None
    for cell, name in zip(cells, names, strict=False):
        if _STATE_HEADER.search(name):
            mark = _parse_item(cell)
            is_done = bool(mark.is_done) or status.parse_status(mark.text.strip("*` ")) == "done"
    return ListItem("; ".join(texts), is_done)
