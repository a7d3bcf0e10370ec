"""Surgery on JSON texts: put something in or take it out, and leave every other byte as it was."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from interlock.core.canonical import Json

JsonPath: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead from the root to a value."""

BOM = "\ufeff"
_SPACES = " \t\n\r"
_SPACE = re.compile(r"[ \t\n\r]*")
_INDENT = re.compile(r"[ \t]*")
_UNIT = "  "
_DIGITS_MAX = 400  # longer integers are kept as text: nobody computes with them here


class Splice(msgspec.Struct, frozen=True):
    """Text that was put in, and where it begins in the text that came of it."""

    at: int
    text: str


class Edit(msgspec.Struct, frozen=True):
    text: str
    splices: tuple[Splice, ...]
    """In the order of the text, apart from each other."""
    created_paths: tuple[JsonPath, ...]
    """What was not there before; `()` is the whole document."""


class UnusableJson(msgspec.Struct, frozen=True):
    """The text cannot be operated on. It was left alone."""

    what: str
    """What is true of it, to stand behind the file's name."""


class _Style(NamedTuple):
    newline: str
    unit: str
    comma: str
    """Between things on one line."""
    colon: str


class _Item(NamedTuple):
    name: str | int
    start: int
    """Where the key begins, or the element."""
    value: int
    end: int


class _Container(NamedTuple):
    """An object or an array in the text."""

    opening: int
    items: tuple[_Item, ...]
    closing: int


def decode(content: bytes) -> str | UnusableJson:
    """The text of a file, with its byte order mark if it has one."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        return UnusableJson(f"is not UTF-8 (byte {error.start})")


def is_blank(text: str) -> bool:
    return not text.removeprefix(BOM).strip(_SPACES)


def read(text: str) -> dict[str, Json] | UnusableJson:
    """The object that the text holds; a blank text counts as an empty one."""
    if is_blank(text):
        return {}
    start = _after_space(text, len(BOM) if text.startswith(BOM) else 0)
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return UnusableJson(f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except ValueError as error:
        return UnusableJson(f"is not JSON: {error}")
    except RecursionError:
        return UnusableJson("is nested more deeply than can be read")
    if _after_space(text, end) < len(text):
        line = text.count("\n", 0, end) + 1
        return UnusableJson(f"is not JSON: something follows the end of the value (line {line})")
    if not isinstance(value, dict):
        return UnusableJson(f"holds {_kind(value)}, where an object was expected")
    return cast("dict[str, Json]", value)


def insert(text: str, addition: Mapping[str, Json]) -> Edit | UnusableJson:
    """Put members into the text, and elements at the end of arrays that it has already.

    Where `addition` has an object and the text has one too, the two are joined; where both have
    an array, the elements are appended. A value that is there already and is neither cannot be
    joined with anything.
    """
    found = read(text)
    if isinstance(found, UnusableJson):
        return found
    if not addition:
        return Edit(text, (), ())
    if is_blank(text):
        return _new_document(text, addition)
    style, root = _style(text), _parse_container(text, _root_position(text))
    insertions: list[tuple[int, str]] = []
    made: list[JsonPath] = []
    waiting: list[tuple[JsonPath, _Container, bool, Mapping[str, Json]]] = [
        ((), root, False, addition)
    ]
    while waiting:
        path, box, is_inline, wanted = waiting.pop()
        there = {item.name: item for item in box.items}  # of two equal keys the last one counts
        new = {name: value for name, value in wanted.items() if name not in there}
        if new:
            members = [(f"{json.dumps(name)}{style.colon}", value) for name, value in new.items()]
            insertions.append(_insertion(text, box, members, style, is_inline=is_inline))
            made += [(*path, name) for name in new]
        inner_is_inline = not _is_multiline(text, box)
        for name in (name for name in wanted if name in there):
            value, at = wanted[name], there[name].value
            if isinstance(value, dict) and text[at] == "{":
                waiting.append(((*path, name), _parse_container(text, at), inner_is_inline, value))
            elif isinstance(value, list) and text[at] == "[":
                elements = [("", element) for element in value]
                inner = _parse_container(text, at)
                put = _insertion(text, inner, elements, style, is_inline=inner_is_inline)
                insertions.append(put)
            else:
                where = "`" + ".".join(map(str, (*path, name))) + "`"
                is_there = _kind(_DECODER.raw_decode(text, at)[0])
                return UnusableJson(f"has {is_there} at {where}, where {_kind(value)} was expected")
    return _apply_insertions(text, sorted(insertions), tuple(made))


def cut_splices(text: str, splices: Sequence[Splice]) -> str | None:
    """The text without the splices; None if one is not there any more exactly as it was put in."""
    if all(text.startswith(splice.text, splice.at) for splice in splices):
        starts = [splice.at for splice in splices]
    else:
        starts = [_only_position(text, splice.text) for splice in splices]
    spans = sorted((at, at + len(s.text)) for at, s in zip(starts, splices, strict=True))
    if any(at < 0 for at, _ in spans) or any(
        after[0] < before[1] for before, after in pairwise(spans)
    ):
        return None
    rest = _delete_spans(text, spans)
    return None if isinstance(read(rest), UnusableJson) else rest


def remove(text: str, targets: Sequence[JsonPath], created_paths: Sequence[JsonPath] | None) -> str:
    """Take values out of a text that can be read, with what they leave empty.

    What becomes empty goes too if it was `made`, or lies in what was made; None means that nobody
    knows what was made, and then all of it goes but the root. No path may lead into another.
    """
    boxes: dict[JsonPath, _Container] = {}
    for path in targets:
        for depth in range(len(path)):
            if path[:depth] not in boxes:
                boxes[path[:depth]] = _parse_container(
                    text, _value_position(text, boxes, path[:depth])
                )
    going = set(targets)
    while True:
        leaving: defaultdict[JsonPath, set[str | int]] = defaultdict(set)
        for path in going:
            leaving[path[:-1]].add(path[-1])
        emptied = {
            path
            for path, names in leaving.items()
            if path
            and names >= {item.name for item in boxes[path].items}
            and _is_created(path, created_paths)
        }
        if not emptied:
            break
        going = {path for path in going if path[:-1] not in emptied} | emptied
    spans = [span for path, names in leaving.items() for span in _removal_spans(boxes[path], names)]
    rest = _delete_spans(text, sorted(spans))
    is_empty = not _parse_container(rest, _root_position(rest)).items
    return "" if is_empty and created_paths is not None and () in created_paths else rest


def _value_position(text: str, boxes: Mapping[JsonPath, _Container], path: JsonPath) -> int:
    if not path:
        return _root_position(text)
    return next(item.value for item in reversed(boxes[path[:-1]].items) if item.name == path[-1])


def _is_created(path: JsonPath, created_paths: Sequence[JsonPath] | None) -> bool:
    return created_paths is None or any(path[: len(start)] == start for start in created_paths)


def _removal_spans(box: _Container, names: set[str | int]) -> list[tuple[int, int]]:
    """What to cut so that those items go, each with one of the commas around it."""
    staying = [item for item in box.items if item.name not in names]
    if not staying:
        return [(box.opening + 1, box.closing)]
    holes: list[tuple[int, int]] = []
    end = -1
    for item in box.items:
        if item.name not in names:
            end = item.end
        elif end < 0:
            holes = [(box.items[0].start, staying[0].start)]
        else:
            holes.append((end, item.end))
            end = item.end
    return holes


def _new_document(text: str, addition: Mapping[str, Json]) -> Edit:
    """A blank text becomes a document, in front of whatever space it has."""
    style = _Style(_newline(text), _UNIT, ", ", ": ")
    at = len(BOM) if text.startswith(BOM) else 0
    document = _lines(dict(addition), "", style)
    return _apply_insertions(
        text, [(at, document if text[at:] else document + style.newline)], ((),)
    )


def _insertion(
    text: str, box: _Container, new: list[tuple[str, Json]], style: _Style, *, is_inline: bool
) -> tuple[int, str]:
    """Where to put new items, and the text that does it. Each has what stands before its value."""
    if box.items:
        last, before = box.items[-1], box.opening + 1
        if len(box.items) > 1:
            before = text.index(",", box.items[-2].end) + 1
        gap = text[before : last.start]
        if "\n" not in gap:
            return last.end, "".join(f"{style.comma}{_line(*item, style)}" for item in new)
        indent = gap.rpartition("\n")[2]
        lead = style.newline + indent
        return last.end, "".join(
            f",{lead}{key}{_lines(value, indent, style)}" for key, value in new
        )
    at = box.opening + 1
    if is_inline:
        return at, style.comma.join(_line(*item, style) for item in new)
    line_start = text.rfind("\n", 0, at) + 1
    base = cast("re.Match[str]", _INDENT.match(text, line_start))[0]
    lead = style.newline + base + style.unit
    items = [f"{lead}{key}{_lines(value, base + style.unit, style)}" for key, value in new]
    end = "" if "\n" in text[at : box.closing] else style.newline + base
    return at, ",".join(items) + end


def _line(key: str, value: Json, style: _Style) -> str:
    return key + json.dumps(value, ensure_ascii=False, separators=(style.comma, style.colon))


def _lines(value: Json, indent: str, style: _Style) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=style.unit, separators=(",", style.colon))
    return text.replace("\n", style.newline + indent)  # in strings they are escaped


def _apply_insertions(
    text: str, insertions: list[tuple[int, str]], created_paths: tuple[JsonPath, ...]
) -> Edit:
    parts: list[str] = []
    splices: list[Splice] = []
    done = size = 0
    for at, put in insertions:
        parts += [text[done:at], put]
        size += at - done
        splices.append(Splice(size, put))
        size, done = size + len(put), at
    return Edit("".join(parts) + text[done:], tuple(splices), created_paths)


def _delete_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts.append(text[done:start])
        done = end
    return "".join(parts) + text[done:]


def _only_position(text: str, part: str) -> int:
    """Where the part is, if it is there exactly once; else -1."""
    at = text.find(part)
    return at if text.find(part, at + 1) < 0 else -1


def _style(text: str) -> _Style:
    box = _parse_container(text, _root_position(text))
    unit, colon = _UNIT, ": "
    if box.items:
        first = box.items[0]
        gap = text[box.opening + 1 : first.start]
        if "\n" in gap:
            unit = gap.rpartition("\n")[2]
        colon = ":" if text[first.value - 1] == ":" else ": "
    return _Style(_newline(text), unit, "," if colon == ":" else ", ", colon)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _is_multiline(text: str, box: _Container) -> bool:
    """Whether the box spreads over lines; an empty one may."""
    first = box.items[0].start if box.items else box.closing
    return not box.items or "\n" in text[box.opening : first]


def _root_position(text: str) -> int:
    return _after_space(text, len(BOM) if text.startswith(BOM) else 0)


def _parse_container(text: str, opening: int) -> _Container:
    """The items of the object or array at `opening`, in a text that is known to be JSON."""
    is_object = text[opening] == "{"
    items: list[_Item] = []
    at = _after_space(text, opening + 1)
    while text[at] not in "}]":
        if text[at] == ",":
            at = _after_space(text, at + 1)
        start, name = at, len(items)
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        value = at
        _, end = _DECODER.raw_decode(text, at)
        items.append(_Item(name, start, value, end))
        at = _after_space(text, end)
    return _Container(opening, tuple(items), at)


def _after_space(text: str, at: int) -> int:
    return cast("re.Match[str]", _SPACE.match(text, at)).end()


def _kind(value: Json) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case str():
            return "a text"
        case bool():
            return "true or false"
        case None:
            return "null"
        case _:
            return "a number"


def _parse_int(digits: str) -> int | str:
    return int(digits) if len(digits) <= _DIGITS_MAX else digits


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_int=_parse_int, parse_constant=_refuse_constant)
