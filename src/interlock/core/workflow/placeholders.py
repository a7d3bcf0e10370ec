"""Holes: the places in a prompt where a value of the context belongs, like {{area.name}}."""

import re

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")


def placeholder_paths(text: str) -> tuple[str, ...]:
    """The context paths that `text` speaks of."""
    return tuple(PLACEHOLDER.findall(text))
