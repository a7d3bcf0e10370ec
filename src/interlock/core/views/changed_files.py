"""The files in a diff as git writes it, each with its lines and how many were added and removed."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

FILE_LINES_MAX, LINES_MAX = 600, 4_000
_FILE = "diff --git "
_KINDS: dict[str, Literal["add", "del", "hunk"]] = {"+": "add", "-": "del", "@": "hunk"}
ChangeWord = Literal["changed", "new", "deleted", "renamed", "binary"]
_MARKS: dict[str, ChangeWord] = {
    "Binary files": "binary",
    "new file": "new",
    "deleted file": "deleted",
    "rename to": "renamed",
}


class DiffLine(msgspec.Struct, frozen=True):
    kind: Literal["add", "del", "hunk", "same"]
    text: str


class ChangedFile(msgspec.Struct, frozen=True):
    name: str
    how: ChangeWord
    added: int
    removed: int
    lines: tuple[DiffLine, ...]
    """The first ones."""
    left_out: int


def changed_files(diff: str) -> tuple[ChangedFile, ...]:
    """The files of a diff; of long ones, and of many, not all lines."""
    room, files = LINES_MAX, list[ChangedFile]()
    for block in _blocks(diff.split("\n")):
        file = _changed_file(block, lines_max=min(room, FILE_LINES_MAX))
        room -= len(file.lines)
        files.append(file)
    return tuple(files)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in lines:
        if line.startswith(_FILE):
            if block:
                yield block
            block = [line]
        elif block:
            block.append(line)
    if block:
        yield block


def _changed_file(block: list[str], *, lines_max: int) -> ChangedFile:
    # The header ends where the first hunk begins: in a hunk, a line may look like a header.
    end = next((at for at, line in enumerate(block) if line.startswith("@@")), len(block))
    header, body = block[1:end], block[end:]
    while body and not body[-1]:
        body.pop()
    lines = [DiffLine(_KINDS.get(line[:1], "same"), line) for line in body]
    return ChangedFile(
        _name(block[0], header),
        _change_word(header),
        sum(line.kind == "add" for line in lines),
        sum(line.kind == "del" for line in lines),
        tuple(lines[:lines_max]),
        max(0, len(lines) - lines_max),
    )


def _name(first: str, header: list[str]) -> str:
    """As git writes it: the new name, or the old one of what is gone."""
    for mark in ("+++ ", "--- ", "rename to "):
        for line in header:
            name = line.removeprefix(mark).removeprefix("b/").removeprefix("a/").rstrip("\t")
            if line.startswith(mark) and name != "/dev/null":
                return name
    return first.removeprefix(_FILE).rpartition(" b/")[2]


def _change_word(header: list[str]) -> ChangeWord:
    for mark, word in _MARKS.items():
        if any(line.startswith(mark) for line in header):
            return word
    return "changed"
