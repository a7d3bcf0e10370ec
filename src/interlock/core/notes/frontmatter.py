"""The frontmatter of a note: read by YAML's rules, changed by the line, else left as it is."""

import re
from typing import TYPE_CHECKING

import msgspec

from interlock.core.canonical import Json
from interlock.core.notes import yaml_text
from interlock.core.notes.note import Frontmatter, Metadata

if TYPE_CHECKING:
    from interlock.core.notes.frontmatter_entries import FrontmatterEntry

BYTE_ORDER_MARK = "\ufeff"

_NEWLINE = re.compile(r"\r\n|\n|\r")
_OPENING = re.compile(r"---[ \t]*(?:\r\n|\n|\r)")
_CLOSING = re.compile(r"[\r\n](?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)")
_UNCLOSED_PROBLEM = "there is no `---` at its end; put one below the last of its lines"
# A line of dashes is no frontmatter by itself: a key must follow it.
_UNCLOSED_FRONT = re.compile(r"---[ \t]*(?:\r\n|\n|\r)[A-Za-z_][\w-]*:(?=\s|\Z)")


class UnwritableFrontmatter(msgspec.Struct, frozen=True):
    """The frontmatter cannot be changed, or written, so that everything else in it stays."""

    problem: str


def read(text: str) -> tuple[Frontmatter, str]:
    """The frontmatter and the rest. Together they are `text`, whatever it is.

    A byte order mark without frontmatter counts as the front, so that whatever is put before the
    rest still comes after it. Where frontmatter begins and does not end, all of it is the rest.
    """
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    parts = _split_fences(text, start)
    if parts is None:
        problem = _UNCLOSED_PROBLEM if _UNCLOSED_FRONT.match(text, start) else ""
        return Frontmatter(text[:start], {}, problem), text[start:]
    head, inner, tail = parts
    end = len(head) + len(inner) + len(tail)
    values, problem = _parse_values(inner)
    return Frontmatter(text[:end], values, problem), text[end:]


def body_of(text: str) -> str:
    """The same rest, without reading what the frontmatter says."""
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    parts = _split_fences(text, start)
    return text[start:] if parts is None else text[sum(map(len, parts)) :]


def with_values(
    front: Frontmatter, changes: Metadata, *, newline: str = "\n"
) -> Frontmatter | UnwritableFrontmatter:
    """`front` with other values; None removes a key. Only the lines of these keys change.

    `newline` is for a block that is made here; one that is there keeps its own. The result is read
    back before it is given out: what cannot be changed safely is not changed.
    """
    if front.problem:
        return UnwritableFrontmatter(front.problem)
    if yaml_text.is_too_deep(changes):
        return UnwritableFrontmatter(
            f"the values are nested deeper than {yaml_text.DEPTH_MAX} levels"
        )
    changes = {key: value for key, value in changes.items() if _differs(front, key, value)}
    if not changes:
        return front
    changed = _changed_text(front, changes, newline)
    result, rest = read(changed)
    if result.problem:
        return UnwritableFrontmatter(result.problem)
    if rest or result.values != _expected_values(front, changes):
        return UnwritableFrontmatter(
            "it is written in a way in which these keys cannot be changed alone"
        )
    return result


def render_values(values: Metadata) -> str:
    """The lines of `values`, without fences."""
    return yaml_text.block(values, newline="\n", indent="")


def _split_fences(text: str, start: int) -> tuple[str, str, str] | None:
    """The opening fence with what is before it, the lines in between, the closing fence."""
    opening = _OPENING.match(text, start)
    closing = opening and _CLOSING.search(text, opening.end() - 1)
    if not opening or not closing:
        return None
    begin, end = opening.end(), closing.start() + 1
    return text[:begin], text[begin:end], text[end : closing.end()]


def _parse_values(inner: str) -> tuple[Metadata, str]:
    if not inner.strip():
        return {}, ""
    from interlock.core.notes import frontmatter_entries  # noqa: PLC0415 (see there)

    try:
        return {entry.key: entry.value for entry in frontmatter_entries.parse_entries(inner)}, ""
    except frontmatter_entries.InvalidFrontmatter as error:
        return {}, str(error)


def _differs(front: Frontmatter, key: str, value: Json) -> bool:
    if value is None:
        return key in front.values
    return key not in front.values or front.values[key] != yaml_text.value_as_parsed(value)


def _expected_values(front: Frontmatter, changes: Metadata) -> Metadata:
    values = {**front.values, **{key: yaml_text.value_as_parsed(changes[key]) for key in changes}}
    return {key: values[key] for key in values if changes.get(key, "") is not None}


def _changed_text(front: Frontmatter, changes: Metadata, newline: str) -> str:
    mark = BYTE_ORDER_MARK if front.text.startswith(BYTE_ORDER_MARK) else ""
    parts = _split_fences(front.text, len(mark))
    if parts is None:
        parts = (f"{mark}---{newline}", "", f"---{newline}")
    head, inner, tail = parts
    newline = "\r\n" if head.endswith("\r\n") else head[-1]
    entries = _parse_entries(inner)
    indent = ""
    if entries:
        first = entries[0].start
        indent = inner[_line_start(inner, first) : first]
        indent = indent if indent.isspace() else ""
    new = {key: changes[key] for key in changes if key not in front.values}
    lines = yaml_text.block(new, newline=newline, indent=indent)
    for entry in reversed(entries):
        if entry.key in changes:
            inner = _replace_entry(inner, entry, changes[entry.key], indent=indent, newline=newline)
    return head + inner + lines + tail


def _replace_entry(
    inner: str, entry: "FrontmatterEntry", value: Json, *, indent: str, newline: str
) -> str:
    shown = inner[entry.start : entry.value_end].rstrip(" \t\r\n")
    if value is not None and "\n" not in shown and "\r" not in shown:
        # In its place: a comment behind it, and the way the key is written, stay.
        text = yaml_text.inline(value)
        if not inner[entry.value_start - 1].isspace():
            text = f" {text}"
        return inner[: entry.value_start] + text + inner[entry.value_end :]
    start = _line_start(inner, entry.start)
    end = _line_end(inner, entry.start + len(shown))
    lines = "" if value is None else yaml_text.block({entry.key: value}, newline, indent)
    return inner[:start] + lines + inner[end:]


def _line_start(text: str, position: int) -> int:
    return max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1


def _line_end(text: str, position: int) -> int:
    """Behind the newline of the line in which `position` is."""
    found = _NEWLINE.search(text, position)
    return found.end() if found else len(text)


def _parse_entries(inner: str) -> "list[FrontmatterEntry]":
    if not inner.strip():
        return []
    from interlock.core.notes.frontmatter_entries import parse_entries  # noqa: PLC0415 (see there)

    return parse_entries(inner)
