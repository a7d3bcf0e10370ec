"""The frontmatter of a note: parsed as YAML, changed line by line, otherwise left as it is."""

import re
from typing import TYPE_CHECKING

import msgspec

from interlock.core.canonical import Json
from interlock.core.notes import yaml_text
from interlock.core.notes.note import Frontmatter, Metadata

if TYPE_CHECKING:
    from interlock.core.notes.frontmatter_entries import FrontmatterEntry

BYTE_ORDER_MARK = "\ufeff"
PLAIN_CHARS_MAX = 4_096  # YAML has limits of its own for what is very long

_NEWLINE = re.compile(r"\r\n|\n|\r")
_OPENING = re.compile(r"---[ \t]*(?:\r\n|\n|\r)")
_PLAIN_LINE = re.compile(
    r"""([A-Za-z][\w-]{0,60}): (?:([A-Za-z0-9](?:[\w ./-]*[\w./-])?)|"([\w ./:-]*)")""", re.ASCII
)
_CLOSING = re.compile(r"[\r\n](?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)")
_UNCLOSED_PROBLEM = "there is no `---` at its end; put one below the last of its lines"
# A line of dashes alone is no frontmatter: a key must follow it.
_UNCLOSED_FRONT = re.compile(r"---[ \t]*(?:\r\n|\n|\r)[A-Za-z_][\w-]*:(?=\s|\Z)")


class UnwritableFrontmatter(msgspec.Struct, frozen=True):
    """The frontmatter cannot be written, or not be changed with the rest of it intact."""

    problem: str


def read(text: str) -> tuple[Frontmatter, str]:
    """Split `text` into the frontmatter and the rest. Together they are `text`, whatever it is.

    A byte order mark without frontmatter counts as the front, so that whatever is put before the
    rest still comes after the mark. Frontmatter that begins and does not end belongs to the rest.
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
    """Return the same rest as `read`, without parsing the frontmatter."""
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    parts = _split_fences(text, start)
    return text[start:] if parts is None else text[sum(map(len, parts)) :]


def with_values(
    front: Frontmatter, changes: Metadata, *, newline: str = "\n"
) -> Frontmatter | UnwritableFrontmatter:
    """Return `front` with other values; None removes a key. Only the lines of these keys change.

    `newline` is for a block that is created here; an existing one keeps its own. The result is read
    back before it is returned: what cannot be changed safely is not changed.
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
    changed_text = _changed_text(front, changes, newline)
    result, rest = read(changed_text)
    if result.problem:
        return UnwritableFrontmatter(result.problem)
    if rest or result.values != _expected_values(front, changes):
        return UnwritableFrontmatter(
            "it is written in a way in which these keys cannot be changed alone"
        )
    return result


def _split_fences(text: str, start: int) -> tuple[str, str, str] | None:
    """Return the opening fence with what is before it, the lines in between, the closing fence."""
    opening = _OPENING.match(text, start)
    closing = opening and _CLOSING.search(text, opening.end() - 1)
    if not opening or not closing:
        return None
    begin, end = opening.end(), closing.start() + 1
    return text[:begin], text[begin:end], text[end : closing.end()]


def _parse_values(inner: str) -> tuple[Metadata, str]:
    if not inner.strip():
        return {}, ""
    if plain := parse_plain_values(inner):
        return plain, ""
    from interlock.core.notes import frontmatter_entries  # noqa: PLC0415 (see there)

    try:
        return {entry.key: entry.value for entry in frontmatter_entries.parse_entries(inner)}, ""
    except frontmatter_entries.InvalidFrontmatter as error:
        return {}, str(error)


def parse_plain_values(inner: str) -> Metadata:
    """Return the values of lines that surely mean what they look like; none if one may not.

    Most frontmatter is like this, that of our own notes too, and then YAML need not be imported.
    """
    *lines, end = inner.split("\n")
    matches = [_PLAIN_LINE.fullmatch(line) for line in lines]
    values: Metadata = {match[1]: match[2] or match[3] or "" for match in matches if match}
    is_plain = not end and len(values) == len(lines) and len(inner) <= PLAIN_CHARS_MAX
    return values if is_plain else {}


def _differs(front: Frontmatter, key: str, value: Json) -> bool:
    if value is None:
        return key in front.values
    return key not in front.values or front.values[key] != yaml_text.value_as_parsed(value)


def _expected_values(front: Frontmatter, changes: Metadata) -> Metadata:
    values = {**front.values, **{key: yaml_text.value_as_parsed(changes[key]) for key in changes}}
    return {key: values[key] for key in values if changes.get(key, "") is not None}


def _changed_text(front: Frontmatter, changes: Metadata, newline: str) -> str:
    byte_order_mark = BYTE_ORDER_MARK if front.text.startswith(BYTE_ORDER_MARK) else ""
    parts = _split_fences(front.text, len(byte_order_mark))
    if parts is None:
        parts = (f"{byte_order_mark}---{newline}", "", f"---{newline}")
    head, inner, tail = parts
    newline = "\r\n" if head.endswith("\r\n") else head[-1]
    entries = _parse_entries(inner)
    indent = ""
    if entries:
        first_start = entries[0].start
        indent = inner[_line_start(inner, first_start) : first_start]
        indent = indent if indent.isspace() else ""
    added_values = {key: changes[key] for key in changes if key not in front.values}
    added_lines = yaml_text.block(added_values, newline=newline, indent=indent)
    for entry in reversed(entries):
        if entry.key in changes:
            inner = _replace_entry(inner, entry, changes[entry.key], indent=indent, newline=newline)
    return head + inner + added_lines + tail


def _replace_entry(
    inner: str, entry: "FrontmatterEntry", value: Json, *, indent: str, newline: str
) -> str:
    source = inner[entry.start : entry.value_end].rstrip(" \t\r\n")
    if value is not None and "\n" not in source and "\r" not in source:
        # Replace the value alone: a comment after it, and the way the key is written, stay.
        text = yaml_text.inline(value)
        if not inner[entry.value_start - 1].isspace():
            text = f" {text}"
        return inner[: entry.value_start] + text + inner[entry.value_end :]
    start = _line_start(inner, entry.start)
    end = _line_end(inner, entry.start + len(source))
    lines = "" if value is None else yaml_text.block({entry.key: value}, newline, indent)
    return inner[:start] + lines + inner[end:]


def _line_start(text: str, position: int) -> int:
    return max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1


def _line_end(text: str, position: int) -> int:
    """Return the position after the newline of the line in which `position` is."""
    newline = _NEWLINE.search(text, position)
    return newline.end() if newline else len(text)


def _parse_entries(inner: str) -> "list[FrontmatterEntry]":
    if not inner.strip():
        return []
    from interlock.core.notes.frontmatter_entries import parse_entries  # noqa: PLC0415 (see there)

    return parse_entries(inner)
