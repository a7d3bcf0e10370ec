"""Characters that nobody sees, but that turn, hide or carry text."""

from typing import Final

_JOINERS: Final = r"\u200c\u200d"
_VISIBLE: Final = rf"[^\x00-\x7f{_JOINERS}]"

INVISIBLE_CHARACTER: Final = (
    r"(?:[\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
    # One that joins parts of an emoji, or parts a Persian word, is seen by what it does.
    rf"|(?<!{_VISIBLE})[{_JOINERS}]|[{_JOINERS}](?!{_VISIBLE}))"
)
"""A pattern for one of them. Control characters are not among them."""
