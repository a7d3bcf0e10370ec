"""Placeholders: the places in a prompt for values of the context, like {{area.name}}.

`{{notes.STEP}}` stands for the notes of an earlier step; they are in the scope under that name.
"""

import re
from collections.abc import Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow import conditions

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")
NOTES_PREFIX = "notes."


def placeholder_paths(text: str) -> tuple[str, ...]:
    """Return the context paths of the placeholders in `text`."""
    return tuple(PLACEHOLDER.findall(text))


def look_up(scope: Mapping[str, Json], path: str) -> Json:
    """Return the value of a placeholder: of the whole name where there is one, else of the path."""
    return scope[path] if path in scope else conditions.look_up(scope, path)


def fill_placeholders(text: str, scope: Mapping[str, Json]) -> str:
    return PLACEHOLDER.sub(lambda match: display_value(look_up(scope, match[1]), match[1]), text)


def display_value(value: Json, path: str) -> str:
    if value is None:
        return f"(not set: {path})"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
