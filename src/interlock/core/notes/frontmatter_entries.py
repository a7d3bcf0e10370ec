"""The keys at the top level of frontmatter, with their values and positions.

Imported only where there is frontmatter: importing YAML takes 14 ms.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

import msgspec
import yaml
from yaml import events

from interlock.core.canonical import Json
from interlock.core.notes.yaml_text import DEPTH_MAX

FRONT_CHARS_MAX = 64 * 1024  # more is not the frontmatter of a note but data that was put there
EXPANDED_MAX = 4 * FRONT_CHARS_MAX  # an alias counts as all it stands for: no billion laughs

_Parse: TypeAlias = Callable[..., Iterator[events.Event]]
_parse = cast("_Parse", yaml.parse)  # pyright: ignore[reportUnknownMemberType]


class InvalidFrontmatter(Exception):
    """Frontmatter that cannot be relied on; the message is the reason in words."""


class FrontmatterEntry(msgspec.Struct, frozen=True):
    key: str
    value: Json
    start: int
    """Positions are those in the text that was parsed."""
    value_start: int
    value_end: int


def parse_entries(text: str) -> list[FrontmatterEntry]:
    """Return the entries in their order. Every scalar is a string, as it is written.

    Raises:
        InvalidFrontmatter: it is no mapping, or none that can be relied on.
    """
    if len(text) > FRONT_CHARS_MAX:
        raise InvalidFrontmatter(f"it is longer than {FRONT_CHARS_MAX} characters")
    reader = _EntryReader()
    try:
        for event in _parse(text, Loader=yaml.CBaseLoader):
            reader.handle_event(event)
    except yaml.MarkedYAMLError as error:
        # The fence is line 1, and a mark counts from 0.
        location = "" if error.problem_mark is None else f"line {error.problem_mark.line + 2}: "
        raise InvalidFrontmatter(f"{location}{error.problem or 'no YAML'}") from None
    except yaml.YAMLError:
        raise InvalidFrontmatter("it has characters that YAML does not allow") from None
    except UnicodeEncodeError:
        raise InvalidFrontmatter("it is not UTF-8") from None
    return reader.entries


class _OpenCollection(msgspec.Struct):
    """A collection whose end has not been read yet."""

    value: "list[Json] | dict[str, Json]"
    anchor: str | None
    size_before: int
    key: str | None = None


class _EntryReader:
    """Builds values from the events of a parser rather than from its tree.

    So nesting needs no recursion, a duplicate key is noticed, and an alias is counted.
    """

    def __init__(self) -> None:
        self.entries: list[FrontmatterEntry] = []
        self._open_collections: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._size = 0
        self._documents = 0
        self._key_start = self._value_start = self._end = 0

    def handle_event(self, event: events.Event) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if end > start:
            self._end = end
        match event:
            case events.ScalarEvent():
                self._add_size(1 + len(event.value))
                self._add_key_or_value(event.value, start)
                self._remember_anchor(event.anchor, event.value, 1 + len(event.value))
            case events.AliasEvent():
                if event.anchor not in self._anchors:
                    raise InvalidFrontmatter(f"nothing before it is called {event.anchor!r}")
                value, size = self._anchors[event.anchor]
                self._add_size(size)
                self._add_key_or_value(value, start)
            case events.MappingStartEvent() | events.SequenceStartEvent():
                self._begin_collection(event, start)
            case events.MappingEndEvent() | events.SequenceEndEvent():
                collection = self._open_collections.pop()
                self._remember_anchor(
                    collection.anchor, collection.value, self._size - collection.size_before
                )
                self._add_value(collection.value)
            case events.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise InvalidFrontmatter("it holds more than one document")
            case _:
                pass

    def _begin_collection(self, event: events.CollectionStartEvent, start: int) -> None:
        self._add_size(1)
        self._mark_value_start(start)
        parent = self._open_collections[-1] if self._open_collections else None
        if parent and isinstance(parent.value, dict) and parent.key is None:
            raise InvalidFrontmatter("a key is a list or a mapping")
        if len(self._open_collections) >= DEPTH_MAX:
            raise InvalidFrontmatter(f"it is nested deeper than {DEPTH_MAX} levels")
        value: list[Json] | dict[str, Json]
        value = {} if isinstance(event, events.MappingStartEvent) else []
        if parent is None and isinstance(value, list):
            raise InvalidFrontmatter("it is a list and not keys with values")
        self._open_collections.append(_OpenCollection(value, event.anchor, self._size - 1))

    def _mark_value_start(self, start: int) -> None:
        if len(self._open_collections) == 1 and self._open_collections[0].key is not None:
            self._value_start = start

    def _add_key_or_value(self, value: Json, start: int) -> None:
        if not self._open_collections:
            raise InvalidFrontmatter("it is a text and not keys with values")
        top = self._open_collections[-1]
        if isinstance(top.value, dict) and top.key is None:
            if not isinstance(value, str):
                raise InvalidFrontmatter("a key is a list or a mapping")
            if value in top.value:
                raise InvalidFrontmatter(f"the key {value!r} is there twice")
            top.key = value
            if len(self._open_collections) == 1:
                self._key_start = start
            return
        self._mark_value_start(start)
        self._add_value(value)

    def _add_value(self, value: Json) -> None:
        if not self._open_collections:
            return
        top = self._open_collections[-1]
        if isinstance(top.value, list):
            top.value.append(value)
            return
        assert top.key is not None, "a value comes after its key"
        top.value[top.key] = value
        if len(self._open_collections) == 1:
            end = max(self._end, self._value_start)
            entry = FrontmatterEntry(top.key, value, self._key_start, self._value_start, end)
            self.entries.append(entry)
        top.key = None

    def _add_size(self, size: int) -> None:
        self._size += size
        if self._size > EXPANDED_MAX:
            raise InvalidFrontmatter("its aliases stand for too much")

    def _remember_anchor(self, anchor: str | None, value: Json, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
