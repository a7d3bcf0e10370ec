"""Invisible characters that turn, hide or carry text."""

from typing import Final

_JOINERS: Final = r"\u200c\u200d"
_VISIBLE: Final = rf"[^\x00-\x7f{_JOINERS}]"

INVISIBLE_CHARACTER: Final = (
    r"(?:[\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
    # A joiner inside an emoji or a Persian word is seen by its effect.
    rf"|(?<!{_VISIBLE})[{_JOINERS}]|[{_JOINERS}](?!{_VISIBLE}))"
)
"""A pattern for one such character. Control characters are not among them."""
