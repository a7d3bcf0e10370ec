"""Adapters for values sent to PostgreSQL: each kind always as the same type.

Left to itself, psycopg chooses the type of a number or a list by what is in it. A statement would
be planned again for each mixture, and lists are slow: half of an append was spent on them.
"""

from struct import Struct
from typing import Any

from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

from interlock.store.sql import Contents, Numbers, Texts

_HEADER = Struct("!iiIii")  # dimensions, whether there are nulls, type of the elements, count, 1
_LENGTH = Struct("!i")
_NULL = _LENGTH.pack(-1)
_BYTEA, _BIGINT, _TEXT = 17, 20, 25


def _text(value: str) -> bytes:
    """Encode a text. PostgreSQL's cannot hold NUL, which becomes the replacement character."""
    return value.replace("\0", "\ufffd").encode()


class _TextDumper(StrBinaryDumper):
    oid = _TEXT

    def dump(self, obj: str) -> bytes:
        return _text(obj)


class _ListDumper(Dumper):
    format = Format.BINARY
    element = 0

    def dump(self, obj: Any) -> bytes:
        items = [None if item is None else self.encode_item(item) for item in obj]
        parts = [_HEADER.pack(int(bool(items)), int(None in items), self.element, len(items), 1)]
        for item in items:
            parts += (_NULL,) if item is None else (_LENGTH.pack(len(item)), item)
        return b"".join(parts) if items else parts[0][:12]

    def encode_item(self, item: Any) -> bytes:
        return item


class _TextsDumper(_ListDumper):
    oid, element = 1009, _TEXT

    def encode_item(self, item: str) -> bytes:
        return _text(item)


class _NumbersDumper(_ListDumper):
    oid, element = 1016, _BIGINT

    def encode_item(self, item: int) -> bytes:
        return item.to_bytes(8, "big", signed=True)


class _ContentsDumper(_ListDumper):
    oid, element = 1001, _BYTEA


DUMPERS: dict[type, type[Dumper]] = {
    str: _TextDumper,
    int: Int8BinaryDumper,
    Texts: _TextsDumper,
    Numbers: _NumbersDumper,
    Contents: _ContentsDumper,
}
