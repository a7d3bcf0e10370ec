"""Edit a TOML file that others write to as well: append a table, and take it out again.

Everything else stays as it is, to the byte. What cannot be edited so is left alone.
"""

import re
import tomllib
from typing import Any

import msgspec

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


class UnusableToml(msgspec.Struct, frozen=True):
    """The text cannot be edited. It was left alone."""

    what: str
    """The problem, in words that follow the name of the file."""


def read(content: bytes) -> tuple[str, dict[str, Any]] | UnusableToml:
    """Return the text of a file, and what it says."""
    try:
        text = content.decode("utf-8")
        return text, tomllib.loads(text)
    except UnicodeDecodeError:
        return UnusableToml("is not UTF-8")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return UnusableToml(f"is not TOML: {error}")


def find_table(values: dict[str, Any], name: str) -> Any:
    """Return the table with this dotted name; None if there is none."""
    found: Any = values
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
    return found  # pyright: ignore[reportUnknownVariableType]


def append_table(text: str, table: str) -> str | None:
    """Return the text with the table at its end; None if it cannot have it there."""
    name = table.partition("]")[0].removeprefix("[")
    newline = "\r\n" if "\r\n" in text else "\n"
    longer = text + (newline if text else "") + table.replace("\n", newline)
    try:
        found = find_table(tomllib.loads(longer), name)
    except tomllib.TOMLDecodeError:
        return None
    return longer if found == find_table(tomllib.loads(table), name) else None


def remove_table(text: str, name: str) -> str | None:
    """Return the text without the table of this name and those in it; None if that goes wrong.

    One line break before it goes too: it came with the table.
    """
    wanted = tomllib.loads(text)
    *parents, last = name.split(".")
    owner = wanted
    for part in parents:
        owner = owner[part]
    del owner[last]
    ours = re.compile(rf"^[ \t]*\[\s*{re.escape(name)}\s*[.\]]", re.MULTILINE)
    rest = text
    for found in reversed(list(ours.finditer(text))):  # the last first: the others stay in place
        shorter = _without_block(rest, found.start(), found.end())
        try:
            values = tomllib.loads(shorter)
        except tomllib.TOMLDecodeError:
            continue  # it is part of a longer value
        rest = shorter
        if _without_empty(values) == _without_empty(wanted):
            return rest
    return None


def _without_block(text: str, start: int, header_end: int) -> str:
    """The text without a table; comments before the next one belong to that."""
    following = _HEADER.search(text, header_end)
    end = following.start() if following else len(text)
    lines = text[start:end].splitlines(keepends=True)
    while lines[1:] and lines[-1].strip()[:1] in ("", "#"):
        end -= len(lines.pop())
    head = text[:start]
    shorter = head.removesuffix("\n").removesuffix("\r")
    is_whole = end == len(text) or shorter.endswith("\n")
    return (shorter if is_whole else head) + text[end:]


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != {}}
