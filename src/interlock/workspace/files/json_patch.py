"""Edits of JSON texts: insert or remove values, and leave every other character as it was.

A text is never decoded and encoded again, which would change its layout. `json_scan` finds where
values begin and end; an edit is then a list of insertions at positions of the text, or of deletions
of spans, and everything else is copied.

- `read` checks that the text is one JSON object; the other passes rely on that. A blank text counts
  as an empty object. A byte order mark and the space around the object stay.
- `insert` walks the addition and the text side by side from the root. New members go after the last
  member of their object, new elements after the last of their array, laid out like that one (line
  breaks, indent), with colons like the first member of the root. All insertions are made in one
  pass, and returned as `Splice`s with their positions in the new text.
- `cut_splices` is the exact inverse, as long as every splice can be found: all at their positions,
  otherwise each where its text occurs exactly once. The rest must be JSON again.
- `remove` needs no splices. It deletes values by their paths, each with one of the commas around
  it, and the containers that this empties.

Of two equal keys in an object the last one counts; removing takes both.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, cast

import msgspec

from interlock.core.canonical import Json
from interlock.workspace.files.json_scan import (
    BOM,
    DECODER,
    Container,
    parse_container,
    root_position,
    skip_space,
)

JsonPath: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead from the root to a value."""

_SPACES = " \t\n\r"
_INDENT = re.compile(r"[ \t]*")
_UNIT = "  "


class Splice(msgspec.Struct, frozen=True):
    """Text that was inserted."""

    at: int
    """Its position in the text that came of it."""
    text: str


class Edit(msgspec.Struct, frozen=True):
    text: str
    splices: tuple[Splice, ...]
    """In the order of the text, never overlapping."""
    created_paths: tuple[JsonPath, ...]
    """The values that were not there before; `()` is the whole document."""


class UnusableJson(msgspec.Struct, frozen=True):
    """The text cannot be edited. It was left alone."""

    what: str
    """The problem, in words that follow the name of the file."""


class _Style(NamedTuple):
    """The layout of a text."""

    newline: str
    unit: str
    """One level of indent."""
    comma: str
    """Between items on one line, with the space after it."""
    colon: str
    """Between key and value, with the space after it."""


def decode(content: bytes) -> str | UnusableJson:
    """Return the text of a file, with its byte order mark if it has one."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        return UnusableJson(f"is not UTF-8 (byte {error.start})")


def is_blank(text: str) -> bool:
    return not text.removeprefix(BOM).strip(_SPACES)


def read(text: str) -> dict[str, Json] | UnusableJson:
    """Return the object that the text holds; a blank text counts as an empty one."""
    if is_blank(text):
        return {}
    try:
        value, end = DECODER.raw_decode(text, root_position(text))
    except json.JSONDecodeError as error:
        return UnusableJson(f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except ValueError as error:
        return UnusableJson(f"is not JSON: {error}")
    except RecursionError:
        return UnusableJson("is nested more deeply than can be read")
    if skip_space(text, end) < len(text):
        line = text.count("\n", 0, end) + 1
        return UnusableJson(f"is not JSON: something follows the end of the value (line {line})")
    if not isinstance(value, dict):
        return UnusableJson(f"holds {_kind(value)}, where an object was expected")
    return cast("dict[str, Json]", value)


def insert(text: str, addition: Mapping[str, Json]) -> Edit | UnusableJson:
    """Insert members into the text, and elements at the end of arrays that it has already.

    Where `addition` has an object and the text has one too, the two are joined; where both have
    an array, the elements are appended. Any other value that is there already makes the text
    unusable for this addition.
    """
    document = read(text)
    if isinstance(document, UnusableJson):
        return document
    if not addition:
        return Edit(text, (), ())
    if is_blank(text):
        return _new_document(text, addition)
    style, root = _style(text), parse_container(text, root_position(text))
    insertions: list[tuple[int, str]] = []
    created_paths: list[JsonPath] = []
    pending: list[tuple[JsonPath, Container, bool, Mapping[str, Json]]] = [
        ((), root, False, addition)
    ]
    while pending:
        path, container, is_inline, members = pending.pop()
        existing = {item.name: item for item in container.items}  # the last of two equal keys
        new = {name: value for name, value in members.items() if name not in existing}
        if new:
            items = [(f"{json.dumps(name)}{style.colon}", value) for name, value in new.items()]
            insertions.append(_insertion(text, container, items, style, is_inline=is_inline))
            created_paths += [(*path, name) for name in new]
        inner_is_inline = not _is_multiline(text, container)
        for name in (name for name in members if name in existing):
            value, at = members[name], existing[name].value_start
            if isinstance(value, dict) and text[at] == "{":
                inner = parse_container(text, at)
                pending.append(((*path, name), inner, inner_is_inline, value))
            elif isinstance(value, list) and text[at] == "[":
                items = [("", element) for element in value]
                inner = parse_container(text, at)
                insertions.append(_insertion(text, inner, items, style, is_inline=inner_is_inline))
            else:
                dotted_path = "`" + ".".join(map(str, (*path, name))) + "`"
                kind = _kind(DECODER.raw_decode(text, at)[0])
                return UnusableJson(
                    f"has {kind} at {dotted_path}, where {_kind(value)} was expected"
                )
    return _apply_insertions(text, sorted(insertions), tuple(created_paths))


def cut_splices(text: str, splices: Sequence[Splice]) -> str | None:
    """Return the text without the splices; None if one is not there exactly as it was inserted."""
    if all(text.startswith(splice.text, splice.at) for splice in splices):
        starts = [splice.at for splice in splices]
    else:
        starts = [_only_position(text, splice.text) for splice in splices]
    spans = sorted((at, at + len(s.text)) for at, s in zip(starts, splices, strict=True))
    is_missing = any(start < 0 for start, _ in spans)
    if is_missing or any(start < end for (_, end), (start, _) in pairwise(spans)):
        return None
    rest = _delete_spans(text, spans)
    return None if isinstance(read(rest), UnusableJson) else rest


def remove(text: str, targets: Sequence[JsonPath], created_paths: Sequence[JsonPath] | None) -> str:
    """Remove the targets from a text that can be read, with the containers that this empties.

    An emptied container goes if it is one of `created_paths` or inside one of them; None means
    that nobody knows what was created, and then it always goes, except for the root. If the root
    itself was created and is empty, the text becomes empty. No target may lead into another.
    """
    containers: dict[JsonPath, Container] = {}
    for path in targets:
        for depth in range(len(path)):
            if path[:depth] not in containers:
                containers[path[:depth]] = parse_container(
                    text, _value_position(text, containers, path[:depth])
                )
    removed = set(targets)
    while True:
        names_by_container: defaultdict[JsonPath, set[str | int]] = defaultdict(set)
        for path in removed:
            names_by_container[path[:-1]].add(path[-1])
        emptied = {
            path
            for path, names in names_by_container.items()
            if path
            and names >= {item.name for item in containers[path].items}
            and _is_created(path, created_paths)
        }
        if not emptied:
            break
        removed = {path for path in removed if path[:-1] not in emptied} | emptied
    spans = [
        span
        for path, names in names_by_container.items()
        for span in _removal_spans(containers[path], names)
    ]
    rest = _delete_spans(text, sorted(spans))
    is_empty = not parse_container(rest, root_position(rest)).items
    return "" if is_empty and created_paths is not None and () in created_paths else rest


def _value_position(text: str, containers: Mapping[JsonPath, Container], path: JsonPath) -> int:
    """Return where the value at `path` begins; its container has been parsed already."""
    if not path:
        return root_position(text)
    siblings = reversed(containers[path[:-1]].items)
    return next(item.value_start for item in siblings if item.name == path[-1])


def _is_created(path: JsonPath, created_paths: Sequence[JsonPath] | None) -> bool:
    return created_paths is None or any(
        path[: len(created)] == created for created in created_paths
    )


def _removal_spans(container: Container, names: set[str | int]) -> list[tuple[int, int]]:
    """Return the spans to delete for these items, each with one of the commas around it."""
    staying = [item for item in container.items if item.name not in names]
    if not staying:
        return [(container.opening + 1, container.closing)]
    spans: list[tuple[int, int]] = []
    end = -1  # of the previous item, as soon as one stays
    for item in container.items:
        if item.name not in names:
            end = item.end
        elif end < 0:
            spans = [(container.items[0].start, staying[0].start)]
        else:
            spans.append((end, item.end))
            end = item.end
    return spans


def _new_document(text: str, addition: Mapping[str, Json]) -> Edit:
    """Turn a blank text into a document, in front of whatever space it has."""
    style = _Style(_newline(text), _UNIT, ", ", ": ")
    at = len(BOM) if text.startswith(BOM) else 0
    document = _lines(dict(addition), "", style)
    return _apply_insertions(
        text, [(at, document if text[at:] else document + style.newline)], ((),)
    )


def _insertion(
    text: str, container: Container, new: list[tuple[str, Json]], style: _Style, *, is_inline: bool
) -> tuple[int, str]:
    """Return a position and the text to insert there. An item is its key with colon, and value."""
    if container.items:
        last, gap_start = container.items[-1], container.opening + 1
        if len(container.items) > 1:
            gap_start = text.index(",", container.items[-2].end) + 1
        gap = text[gap_start : last.start]
        if "\n" not in gap:
            return last.end, "".join(f"{style.comma}{_line(*item, style)}" for item in new)
        indent = gap.rpartition("\n")[2]
        lead = style.newline + indent
        return last.end, "".join(
            f",{lead}{key}{_lines(value, indent, style)}" for key, value in new
        )
    at = container.opening + 1
    if is_inline:
        return at, style.comma.join(_line(*item, style) for item in new)
    line_start = text.rfind("\n", 0, at) + 1
    base = cast("re.Match[str]", _INDENT.match(text, line_start))[0]
    lead = style.newline + base + style.unit
    items = [f"{lead}{key}{_lines(value, base + style.unit, style)}" for key, value in new]
    end = "" if "\n" in text[at : container.closing] else style.newline + base
    return at, ",".join(items) + end


def _line(key: str, value: Json, style: _Style) -> str:
    return key + json.dumps(value, ensure_ascii=False, separators=(style.comma, style.colon))


def _lines(value: Json, indent: str, style: _Style) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=style.unit, separators=(",", style.colon))
    return text.replace("\n", style.newline + indent)  # line breaks in strings are escaped


def _apply_insertions(
    text: str, insertions: list[tuple[int, str]], created_paths: tuple[JsonPath, ...]
) -> Edit:
    parts: list[str] = []
    splices: list[Splice] = []
    copied = size = 0  # of the old text so far, and of the new one
    for at, inserted in insertions:
        parts += [text[copied:at], inserted]
        size += at - copied
        splices.append(Splice(size, inserted))
        size, copied = size + len(inserted), at
    return Edit("".join(parts) + text[copied:], tuple(splices), created_paths)


def _delete_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    copied = 0
    for start, end in spans:
        parts.append(text[copied:start])
        copied = end
    return "".join(parts) + text[copied:]


def _only_position(text: str, part: str) -> int:
    """Return where the part is if it occurs exactly once, otherwise -1."""
    at = text.find(part)
    return at if text.find(part, at + 1) < 0 else -1


def _style(text: str) -> _Style:
    """Return the layout of a text that can be read, judged by its first member."""
    container = parse_container(text, root_position(text))
    unit, colon = _UNIT, ": "
    if container.items:
        first = container.items[0]
        gap = text[container.opening + 1 : first.start]
        if "\n" in gap:
            unit = gap.rpartition("\n")[2]
        colon = ":" if text[first.value_start - 1] == ":" else ": "
    return _Style(_newline(text), unit, "," if colon == ":" else ", ", colon)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _is_multiline(text: str, container: Container) -> bool:
    """Whether the container spreads over lines; an empty one counts as such."""
    first_start = container.items[0].start if container.items else container.closing
    return not container.items or "\n" in text[container.opening : first_start]


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
