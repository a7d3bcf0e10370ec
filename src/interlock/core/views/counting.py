"""How many there are, in words."""


def counted(count: int, what: str) -> str:
    """`1 note`, `2 notes`."""
    return f"{count} {what}{'' if count == 1 else 's'}"
