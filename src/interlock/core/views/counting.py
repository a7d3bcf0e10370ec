"""Counts in words."""


def pluralise(count: int, noun: str) -> str:
    """Return a count with its noun: `1 note`, `2 notes`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
