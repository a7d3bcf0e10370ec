"""How many there are, in words."""


def pluralise(count: int, noun: str) -> str:
    """`1 note`, `2 notes`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
