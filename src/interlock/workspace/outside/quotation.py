"""A quotation of what a system of others says: one line that cannot control a terminal, cut off."""

from interlock.core import visible_text

CHARACTERS_MAX = 300


def quote(text: str) -> str:
    line = visible_text.make_visible_line(" ".join(text.split()))
    return line if len(line) <= CHARACTERS_MAX else f"{line[:CHARACTERS_MAX]}…"
