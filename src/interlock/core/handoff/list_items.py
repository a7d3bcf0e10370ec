"""What a section lists: bullets, numbers, checkboxes, rows of tables; else its paragraphs."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from interlock.core.notes import status

FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
BULLET: Final = re.compile(r"([ \t]*)(?:[-*+\u2022]|\d{1,4}[.)])[ \t]+(.*)")
_BOX: Final = re.compile(r"\[([ xX\-~/>!?.]?)\](?:[ \t]+(.*))?")
_SIGN: Final = re.compile(r"([\u2705\u2611\u2714\u2b1c\u2610\U0001f532])\ufe0f?[ \t]*(.*)")
_STRUCK: Final = re.compile(r"~~(.+)~~[ \t]*[.!]?")
_SAID: Final = re.compile(r"(?:DONE|COMPLETED?)\b[:\s].+|.+[(\[](?i:done|completed?|finished)[)\]]")
_BREAK: Final = re.compile(r"[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}")
_ROW: Final = re.compile(r"[ \t]*\|.*\|[ \t]*")
_RULE: Final = re.compile(r"[ \t]*\|[ \t:|\-]+\|[ \t]*")
_CELL_BORDER: Final = re.compile(r"(?<!\\)\|")
_STATE_HEADER: Final = re.compile(r"status|state|done|progress", re.IGNORECASE)
_DONE_SIGNS: Final = frozenset("xX\u2705\u2611\u2714")
_NESTED: Final = 2  # columns


class Listed(msgspec.Struct):
    text: str
    is_done: bool | None = None
    """None where it does not say."""
    is_paragraph: bool = False
    indent: int = 0


def listed(lines: Sequence[str]) -> tuple[list[Listed], list[str]]:
    """What is listed, and the paragraphs beside the lists; paragraphs alone are what is listed."""
    found = list(_read([line.rstrip() for line in lines]))
    if all(item.is_paragraph for item in found):
        return found, []
    return (
        [item for item in found if not item.is_paragraph],
        [item.text for item in found if item.is_paragraph],
    )


def _read(lines: list[str]) -> Iterator[Listed]:
    current: Listed | None = None
    fence = ""
    header: list[str] | None = None
    is_after_blank = True
    for number, line in enumerate(lines):
        opened = FENCE.match(line)
        if fence or opened:
            fence = _fence(fence, opened)
            current = _joined(current, line, "\n")
        elif not line or _BREAK.fullmatch(line):
            header = None
        elif _ROW.fullmatch(line):
            if current:
                yield current
                current = None
            following = lines[number + 1] if number + 1 < len(lines) else ""
            if header is None and _RULE.fullmatch(following):
                header = _cells(line)
            elif not _RULE.fullmatch(line):
                yield _row(_cells(line), header or [])
        elif (bullet := BULLET.fullmatch(line)) and not _belongs(bullet, current):
            if current:
                yield current
            current = _marked(bullet[2])
            current.indent = len(bullet[1].expandtabs(4))
        elif bullet or (current and (not is_after_blank or line[0] in " \t")):
            current = _joined(current, line if bullet else line.strip(), "\n" if bullet else " ")
        else:
            if current:
                yield current
            current = Listed(line.strip(), is_paragraph=True)
        is_after_blank = not line and not fence
    if current:
        yield current


def _fence(fence: str, match: re.Match[str] | None) -> str:
    """The fence that is open after a line."""
    if not fence:
        return match[1] if match else ""
    return "" if match and match[1].startswith(fence) else fence


def _joined(item: Listed | None, line: str, between: str) -> Listed:
    if item is None:
        return Listed(line, is_paragraph=True)
    item.text = f"{item.text}{between}{line}"
    return item


def _belongs(bullet: re.Match[str], item: Listed | None) -> bool:
    """Whether it is a remark below an item. What has a mark of its own is an item of its own."""
    if item is None or item.is_paragraph:
        return False
    is_below = len(bullet[1].expandtabs(4)) >= item.indent + _NESTED
    return is_below and _marked(bullet[2]).is_done is None


def _marked(text: str) -> Listed:
    box = _BOX.fullmatch(text) or _SIGN.fullmatch(text)
    if box:
        return Listed(box[2] or "", box[1] in _DONE_SIGNS)
    struck = _STRUCK.fullmatch(text)
    if struck:
        return Listed(struck[1], is_done=True)
    return Listed(text, True if _SAID.fullmatch(text) else None)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL_BORDER.split(line.strip())[1:-1]]


def _row(cells: list[str], header: list[str]) -> Listed:
    names = header + [""] * len(cells)
    said = [
        f"{name}: {cell}" if name and place else cell
        for place, (cell, name) in enumerate(zip(cells, names, strict=False))
        if cell
    ]
    is_done = None
    for cell, name in zip(cells, names, strict=False):
        if _STATE_HEADER.search(name):
            mark = _marked(cell)
            is_done = bool(mark.is_done) or status.meaning(mark.text.strip("*` ")) == "done"
    return Listed("; ".join(said), is_done)
