"""Characters that nobody sees, but that turn, hide or carry text."""

from typing import Final

_JOINS: Final = r"\u200c\u200d"
_SEEN: Final = rf"[^\x00-\x7f{_JOINS}]"

UNSEEN: Final = (
    r"(?:[\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
    # One that joins parts of an emoji, or parts a Persian word, is seen by what it does.
    rf"|(?<!{_SEEN})[{_JOINS}]|[{_JOINS}](?!{_SEEN}))"
)
"""A pattern for one of them. Control characters are not among them."""
