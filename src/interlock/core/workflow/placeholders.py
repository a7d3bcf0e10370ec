"""Placeholders: the places in a prompt for values of the context, like {{area.name}}."""

import re

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")


def placeholder_paths(text: str) -> tuple[str, ...]:
    """Return the context paths of the placeholders in `text`."""
    return tuple(PLACEHOLDER.findall(text))
