"""Our own rules for Markdown: boxes, the alignment of tables, and comments in notes."""

import re

from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

COMMENT_CHARS_MAX = 2_000  # how far the end of a comment is searched for
_BEGIN, _END = "<!--", "-->"
_INDENT_MAX = 3  # deeper indentation makes it code
_TASK_BOX = re.compile(r"\[([ xX])\](?=\s)")


def task_boxes(state: StateCore) -> None:
    """Replace `[ ]` and `[x]` at the start of a list item by a box."""
    tokens = state.tokens
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type != "list_item_open" or paragraph.type != "paragraph_open":
            continue
        first = inline.children[0] if inline.children else None
        match = _TASK_BOX.match(first.content) if first and first.type == "text" else None
        if first and match and inline.content.startswith(match[0]):
            item.attrJoin("class", "task")
            first.content = first.content[match.end() :]
            box = Token("box", "", 0, meta={"is_done": match[1] != " "})
            inline.children = [box, *(inline.children or [])]


def align_by_class(state: StateCore) -> None:
    """Align the cells of tables by a class: our content policy forbids the attribute `style`."""
    for token in state.tokens:
        if style := token.attrs.pop("style", ""):
            token.attrSet("class", str(style).rpartition(":")[2])


def inline_comment(state: StateInline, silent: bool) -> bool:  # noqa: ARG001, FBT001 (the signature of a rule)
    """Skip a comment within a paragraph."""
    end = _comment_end(state.src, state.pos, state.posMax)
    if end is None:
        return False
    state.pos = end
    return True


def block_comment(state: StateBlock, line: int, last: int, silent: bool) -> bool:  # noqa: FBT001
    """Skip a comment that has its lines to itself; it may contain empty lines."""
    begin = state.bMarks[line] + state.tShift[line]
    if state.sCount[line] - state.blkIndent > _INDENT_MAX:
        return False
    end = _comment_end(state.src, begin, state.eMarks[last - 1])
    if end is None or state.src[end : _line_end(state.src, end)].strip():
        return False
    next_line = line + 1
    while next_line < last and state.bMarks[next_line] < end:
        if not state.isEmpty(next_line) and state.sCount[next_line] < state.blkIndent:
            return False  # the enclosing block ends first
        next_line += 1
    if not silent:
        state.line = next_line
    return True


def _comment_end(text: str, begin: int, last: int) -> int | None:
    """The position behind the comment that begins here, if one does and ends soon enough."""
    if not text.startswith(_BEGIN, begin):
        return None
    end = text.find(_END, begin + len(_BEGIN), min(last, begin + COMMENT_CHARS_MAX))
    return end + len(_END) if end >= 0 else None


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end >= 0 else len(text)
