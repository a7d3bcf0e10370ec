"""The scan of a JSON text by Python's decoder, for the positions of the values in it."""

import json
import re
from typing import Any, NamedTuple, cast

BOM = "\ufeff"
_SPACE = re.compile(r"[ \t\n\r]*")
_DIGITS_MAX = 400  # longer integers are read as text: nobody computes with them here


class Item(NamedTuple):
    """A member of an object or an element of an array, by its positions in the text."""

    name: str | int
    """The key, or the index."""
    start: int
    """The start of the key, or of the element."""
    value_start: int
    end: int


class Container(NamedTuple):
    """An object or an array in the text."""

    opening: int
    """The position of its opening bracket."""
    items: tuple[Item, ...]
    closing: int
    """The position of its closing bracket."""


def root_position(text: str) -> int:
    return skip_space(text, len(BOM) if text.startswith(BOM) else 0)


def parse_container(text: str, opening: int) -> Container:
    """Return the object or array at `opening`, in a text that is known to be JSON."""
    is_object = text[opening] == "{"
    items: list[Item] = []
    at = skip_space(text, opening + 1)
    while text[at] not in "}]":
        if text[at] == ",":
            at = skip_space(text, at + 1)
        start, name = at, len(items)
        if is_object:
            name, at = DECODER.raw_decode(text, at)
            at = skip_space(text, skip_space(text, at) + 1)
        value_start = at
        _, end = DECODER.raw_decode(text, value_start)
        items.append(Item(name, start, value_start, end))
        at = skip_space(text, end)
    return Container(opening, tuple(items), at)


def skip_space(text: str, at: int) -> int:
    return cast("re.Match[str]", _SPACE.match(text, at)).end()


def _parse_int(digits: str) -> int | str:
    return int(digits) if len(digits) <= _DIGITS_MAX else digits


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


DECODER = json.JSONDecoder(parse_int=_parse_int, parse_constant=_refuse_constant)
