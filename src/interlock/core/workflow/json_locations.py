"""Locations: the line and column at which the value of a JSON pointer begins in a JSON text."""

import re
from collections.abc import Iterable
from typing import TypeAlias, cast

import msgspec

from interlock.core.canonical import escape_pointer_part

REPEATED_MAX = 20
REPEATED_LENGTH_MAX = 100_000  # of all pointers but the last: one can be as long as the text
_TWICE = 2

_SPACE = r"[ \t\n\r]*+"
_STRING = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
# One match is one step of the loop in `_scan`, so that it takes few: an item (with its key, and the
# comma after it) as far as its opening bracket, or a closing bracket with the comma after it.
# Anything else is the last group. Nothing is matched again in another length (`++`), so a text is
# read twice at most: as a key, and if no colon follows, as an item.
_PIECE = re.compile(
    rf"{_SPACE}(?:"
    rf"(?:({_STRING}){_SPACE}:{_SPACE})?+()"
    rf"(?:([\[{{])|(?:{_STRING}|{_NUMBER}|true|false|null){_SPACE}(,)?)"
    rf"|([\]}}]){_SPACE}(,)?"
    rf"|(.?))",
    re.DOTALL,
)
_KEY, _START, _OPENING, _COMMA, _CLOSING, _CLOSING_COMMA, _OTHER = range(1, 8)
_CLOSINGS, _COMMAS = (_CLOSING, _CLOSING_COMMA), (_COMMA, _CLOSING_COMMA)


class TextPosition(msgspec.Struct, frozen=True):
    """A place in a text. Both count from 1; `column` counts characters."""

    line: int
    column: int


class _SoughtValue(msgspec.Struct):
    """A value that is to be located, or an ancestor of one."""

    parts: "dict[str, _SoughtValue]" = {}
    start: int = -1
    container_start: int = -1
    """The start of the value around it: if a key is repeated, parts of the first do not count."""


_OpenContainer: TypeAlias = tuple[_SoughtValue | None, dict[str, int] | None, str | int]
"""A list or object: the values sought in it, the count of each key, the current key or index."""


def locate(text: str, pointers: Iterable[str]) -> dict[str, TextPosition]:
    """Return the start of each pointer's value, or else of its nearest ancestor that exists.

    Of a repeated key the last counts, as in every decoder. In text that is not JSON, values before
    the first mistake are found; without a value at all, it is the first character.
    """
    paths = {pointer: _pointer_steps(pointer) for pointer in pointers}
    root = _SoughtValue()
    for path in paths.values():
        sought = root
        for step in path:
            sought = sought.parts.setdefault(step, _SoughtValue())
    _scan(text, root)
    starts = {pointer: _nearest_start(root, path) for pointer, path in paths.items()}
    positions = _text_positions(text, sorted({*starts.values()}))
    return {pointer: positions[start] for pointer, start in starts.items()}


def repeated_keys(text: str) -> tuple[str, ...]:
    """Return the pointers of keys that an object has more than once, as far as the text is JSON."""
    return tuple(dict.fromkeys(_scan(text, _SoughtValue())))


def _pointer_steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _scan(text: str, root: _SoughtValue) -> list[str]:
    """Record the starts of `root` and its parts; return the first repeated keys."""
    repeated: list[str] = []
    outer: list[_OpenContainer] = []
    # The scan begins in an imaginary list, with the whole text as its one item.
    here: _SoughtValue | None = _SoughtValue({"0": root})
    keys: dict[str, int] | None = None
    step: str | int = 0
    may_go_on, may_close = True, False
    for piece in _PIECE.finditer(text):
        kind = piece.lastindex
        if kind == _OTHER:
            break
        if kind in _CLOSINGS:
            if not may_close or not outer or (piece[_CLOSING] == "]") != (keys is None):
                break
            here, keys, step = outer.pop()
        else:
            if not may_go_on or ((key := piece[_KEY]) is None) != (keys is None):
                break
            if keys is not None:
                if (name := _decode_key(key)) is None:
                    break
                step, keys[name] = name, keys.get(name, 0) + 1
                if keys[name] == _TWICE and _has_room(repeated):
                    repeated.append(_pointer(outer, step))
            part = None
            if here and (part := here.parts.get(str(step))):
                part.start, part.container_start = piece.start(_START), here.start
            if kind == _OPENING:
                outer.append((here, keys, step))
                here = part if part and part.parts else None
                keys, step = ({}, "") if piece[_OPENING] == "{" else (None, 0)
                may_go_on = may_close = True
                continue
        if keys is None:
            step = cast("int", step) + 1
        may_close = kind not in _COMMAS
        may_go_on = not may_close and bool(outer)
    return repeated


def _has_room(repeated: list[str]) -> bool:
    return len(repeated) < REPEATED_MAX and sum(map(len, repeated)) < REPEATED_LENGTH_MAX


def _decode_key(key: str) -> str | None:
    if "\\" not in key:
        return key[1:-1]
    try:
        return msgspec.json.decode(key)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None  # half of a surrogate pair: nobody decodes such a text


def _pointer(outer: list[_OpenContainer], step: str | int) -> str:
    # The outermost is the imaginary list.
    steps = [*(container[2] for container in outer[1:]), step]
    return "".join(f"/{escape_pointer_part(str(step))}" for step in steps)


def _nearest_start(root: _SoughtValue, path: list[str]) -> int:
    nearest = root
    for step in path:
        part = nearest.parts[step]
        if part.container_start != nearest.start:
            break
        nearest = part
    return max(nearest.start, 0)


def _text_positions(text: str, offsets: list[int]) -> dict[int, TextPosition]:
    """Return the line and column of each offset.

    The offsets ascend, and none is between the two characters of a line break.
    """
    positions: dict[int, TextPosition] = {}
    line, line_start, at = 1, 0, 0
    for offset in offsets:
        breaks = text.count("\n", at, offset) + text.count("\r", at, offset)
        line += breaks - text.count("\r\n", at, offset)
        if breaks:
            line_start = max(text.rfind("\n", at, offset), text.rfind("\r", at, offset)) + 1
        positions[offset] = TextPosition(line, offset - line_start + 1)
        at = offset
    return positions
