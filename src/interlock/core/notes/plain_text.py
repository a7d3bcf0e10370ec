"""Text without Markdown markup, for a line that quotes it: markup goes, words never do."""

import re
from typing import Final

# The markup at the start of a line. Matching is one step per character: a note may have megabytes
# of anything. It begins with the newline before the line, which is found faster than a line start.
_LINE_START: Final = re.compile(
    r"""
    \n(?:
        [ \t|:=-]++(?=\r?\n|\Z)  # a rule; what parts the head of a table
      | [ \t>]*+(?:\#{1,6}[ \t]++|[-*+][ \t]++(?:\[[ xX]\][ \t]++)?+)?+  # heading, quotation, item
    )
    """,
    re.VERBOSE,
)
_INLINE_MARKS: Final = ("`", "**", "~~", "[[", "]]", "<!--", "-->")


def strip_markdown(text: str) -> str:
    text = _LINE_START.sub("\n", f"\n{text}")[1:]
    for mark in _INLINE_MARKS:
        text = text.replace(mark, "")
    return text
