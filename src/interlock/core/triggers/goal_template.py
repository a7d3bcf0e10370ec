"""Texts with places for values of a payload: `Review !{{ event.number }}: {{ event.title }}`.

The payload is written by strangers. So there is nothing but a dotted path and two filters: no
expression, no loop, no attribute of an object. A path that leads nowhere, or to something that is
no plain value, is an answer of its own: a text with holes would be an order that nobody meant.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import msgspec

from interlock.core.canonical import Json

TEXT_CHARS_MAX = 20_000
_PLACE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_TRUNCATE = re.compile(r"trunc\((\d{1,5})\)")
_ONE_LINE = "oneline"
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), " ")


class MissingValue(msgspec.Struct, frozen=True):
    """The payload has no plain value there."""

    path: str


def template_faults(template: str) -> list[str]:
    """The faults of a template, in sentences."""
    faults = [fault for place in _places(template) if (fault := _place_fault(place))]
    if _PLACE.sub("", template).count("{{"):
        faults.append("a `{{` has no `}}`")
    return faults


def template_paths(template: str) -> tuple[str, ...]:
    """The paths of which it needs the values."""
    return tuple(_parts(place)[0] for place in _places(template))


def render_template(template: str, payload: Mapping[str, Json]) -> str | MissingValue:
    """Put the values in their places. Characters that control something become blanks."""
    values: list[str] = []
    for place in _places(template):
        path, *filters = _parts(place)
        value = _look_up(payload, path.split("."))
        if value is None:
            return MissingValue(path)
        values.append(_filter(value.translate(_CONTROL), filters))
    texts = iter(values)
    return _PLACE.sub(lambda _: next(texts), template)[:TEXT_CHARS_MAX]


def _places(template: str) -> Iterator[str]:
    return (match[1] for match in _PLACE.finditer(template))


def _parts(place: str) -> list[str]:
    return [part.strip() for part in place.split("|")]


def _place_fault(place: str) -> str:
    path, *filters = _parts(place)
    if not _PATH.fullmatch(path):
        return f"`{{{{{place}}}}}` must begin with a dotted path, as in `event.title`"
    for name in filters:
        if name != _ONE_LINE and not _TRUNCATE.fullmatch(name):
            return f"there is no filter `{name}`; there are `oneline` and `trunc(80)`"
    return ""


def _look_up(payload: Json | Mapping[str, Json], names: Sequence[str]) -> str | None:
    value: object = payload
    for name in names:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(name)
        elif isinstance(value, list) and name.isdecimal():
            items = cast("list[object]", value)
            value = items[int(name)] if int(name) < len(items) else None
        else:
            return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _filter(text: str, filters: Sequence[str]) -> str:
    for name in filters:
        if name == _ONE_LINE:
            text = " ".join(text.split())
        elif match := _TRUNCATE.fullmatch(name):
            limit = int(match[1])
            text = text if len(text) <= limit else f"{text[: max(0, limit - 1)]}…"
    return text
