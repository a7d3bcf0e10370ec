"""Rules for Markdown that we add: boxes of tasks are shown, comments in notes are not."""

import re

from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

COMMENT_CHARS_MAX = 2_000  # each that begins looks so far for its end
_BEGIN, _END = "<!--", "-->"
_INDENT_MAX = 3  # more makes it code
_TASK_BOX = re.compile(r"\[([ xX])\](?=\s)")


def task_boxes(state: StateCore) -> None:
    """`[ ]` and `[x]` at the start of a list's item."""
    tokens = state.tokens
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type != "list_item_open" or paragraph.type != "paragraph_open":
            continue
        first = inline.children[0] if inline.children else None
        found = _TASK_BOX.match(first.content) if first and first.type == "text" else None
        if first and found and inline.content.startswith(found[0]):
            item.attrJoin("class", "task")
            first.content = first.content[found.end() :]
            box = Token("box", "", 0, meta={"is_done": found[1] != " "})
            inline.children = [box, *(inline.children or [])]


def inline_comment(state: StateInline, silent: bool) -> bool:  # noqa: ARG001, FBT001 (so it is called)
    """A comment within a paragraph: nothing comes of it."""
    end = _comment_end(state.src, state.pos, state.posMax)
    if end is None:
        return False
    state.pos = end
    return True


def block_comment(state: StateBlock, line: int, last: int, silent: bool) -> bool:  # noqa: FBT001
    """One that has its lines to itself, and may have empty lines in it."""
    begin = state.bMarks[line] + state.tShift[line]
    if state.sCount[line] - state.blkIndent > _INDENT_MAX:
        return False
    end = _comment_end(state.src, begin, state.eMarks[last - 1])
    if end is None or state.src[end : _line_end(state.src, end)].strip():
        return False
    after = line + 1
    while after < last and state.bMarks[after] < end:
        if not state.isEmpty(after) and state.sCount[after] < state.blkIndent:
            return False  # what it stands in ends first
        after += 1
    if not silent:
        state.line = after
    return True


def _comment_end(text: str, begin: int, last: int) -> int | None:
    """Behind the comment that begins here, if one does and ends soon."""
    if not text.startswith(_BEGIN, begin):
        return None
    end = text.find(_END, begin + len(_BEGIN), min(last, begin + COMMENT_CHARS_MAX))
    return end + len(_END) if end >= 0 else None


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return end if end >= 0 else len(text)
