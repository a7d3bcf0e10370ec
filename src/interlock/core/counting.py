"""Counts with their nouns."""


def pluralise(count: int, noun: str) -> str:
    """Return a count with its noun: `1 note`, `2 notes`, `2 passes`, `2 entries`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
