"""Text without the signs of Markdown, for a line that quotes it: signs go, words never do."""

import re
from typing import Final

# What a line begins with. Every way through it is one step a character: a note may have megabytes
# of anything. It begins with the end of the line before, which is found faster than a beginning.
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
    for sign in _INLINE_MARKS:
        text = text.replace(sign, "")
    return text
