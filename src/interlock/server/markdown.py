"""Untrusted Markdown as harmless HTML.

This is the one place where text becomes markup. HTML in it stays text, links lead only to the web,
and pictures become links, since loading one would tell its server that somebody looked.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from interlock.core.notes.inline_markup import TARGET_CHARS_MAX, target_of
from interlock.server.formatting import show_on_page

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


CHARS_MAX = 100_000
BRACKETS_MAX = 5_000  # the parser looks for the end of each in all that follows
CELLS_MAX = 20_000  # the parser fills up each row of a table to the width of its head
_SCHEMES = ("http://", "https://", "mailto:")


def markdown(text: str) -> Markup:
    """The text as HTML; a text that is too long is shown as it was typed."""
    text = show_on_page(text)
    if is_too_long(text):
        return Markup("<pre class=plain>{}</pre>").format(text)
    return Markup(_PARSER.render(text))


def note_markdown(text: str, *, title: str, links: Mapping[str, str]) -> Markup:
    """The text of a note, in which `[[names]]` are links.

    Args:
        text: The note without its frontmatter.
        title: The title that the page shows above it; a first heading that repeats it is left out.
        links: For each name the address of its note, empty if there is none yet. A name that is
            not among them stays text.
    """
    text = show_on_page(text)
    if is_too_long(text):
        return Markup("<pre class=plain>{}</pre>").format(text)
    env = {"links": {show_on_page(name): address for name, address in links.items()}}
    tokens = _NOTE_PARSER.parse(text, env)
    if (
        len(tokens) > 1
        and tokens[0].type == "heading_open"
        and tokens[1].content == show_on_page(title)
    ):
        del tokens[:3]
    _nest_headings(tokens)
    return Markup(_NOTE_PARSER.renderer.render(tokens, _NOTE_PARSER.options, env))


def _nest_headings(tokens: Iterable[Token]) -> None:
    """Put the headings below the title of the page, which is its only one of the first level.

    Each is one level below the one that it is in, whatever levels the note leaves out.
    """
    above: list[str] = []
    for token in tokens:
        if token.type == "heading_open":
            above = [*(tag for tag in above if tag < token.tag), token.tag]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(len(above) + 1, 6)}"


def is_too_long(text: str) -> bool:
    """Whether rendering the text would take too long: other pages wait for that."""
    if len(text) > CHARS_MAX or text.count("[") > BRACKETS_MAX:
        return True
    lines = text.split("\n")
    return any(len(line) > CHARS_MAX // 10 for line in lines) or _count_cells(lines) > CELLS_MAX


def _count_cells(lines: Iterable[str]) -> int:
    """An upper bound for the cells of the tables in a text."""
    cells = widest = 0
    for line in lines:
        widest = max(widest, line.count("|")) if line.strip() else 0
        cells += widest
    return cells


def inline_markdown(text: str) -> Markup:
    """An excerpt as inline HTML, without blocks."""
    return Markup(_PARSER.renderInline(show_on_page(text)))


class _Renderer(RendererHTML):
    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:  # noqa: ARG002
        token = tokens[idx]
        address, words = str(token.attrGet("src") or ""), token.content or "picture"
        if not address.startswith(_SCHEMES):
            return f"{escape(words)} ({escape(address)})"
        return f'<a href="{escape(address)}" rel="noreferrer noopener">{escape(words)}</a>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        token = tokens[idx]
        token.attrSet("rel", "noreferrer noopener")
        if not str(token.attrGet("href") or "").startswith(_SCHEMES):
            token.attrSet("href", "#")
        return self.renderToken(tokens, idx, options, env)

    def box(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:  # noqa: ARG002
        if tokens[idx].meta["is_done"]:
            return '<input type="checkbox" disabled checked aria-label="done">'
        return '<input type="checkbox" disabled aria-label="not done">'


class _NoteRenderer(_Renderer):
    def wiki(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:  # noqa: ARG002
        words, address = escape(tokens[idx].content), tokens[idx].meta["address"]
        if address:
            return f'<a href="{escape(address)}">{words}</a>'
        return f'<span class="unwritten" title="Not written yet">{words}</span>'


def _wiki_link_rule(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 (the signature of a rule)
    """Link `[[Name]]` and `[[Name|words]]`; behind `!` too, where the note is not embedded."""
    begin = state.pos + state.src.startswith("![[", state.pos)
    if not state.src.startswith("[[", begin):
        return False
    end = state.src.find("]]", begin + 2, min(state.posMax, begin + 2 * TARGET_CHARS_MAX))
    inside = state.src[begin + 2 : end]
    # If several begin, the last one is the one that ends.
    if end < 0 or "[[" in inside or "\n" in inside or state.src[begin + 2] == "[":
        return False
    address = state.env["links"].get(target_of(inside))
    if address is None:
        return False
    if not silent:
        token = state.push("wiki", "", 0)
        token.content = inside.partition("|")[2].strip() or inside.strip()
        token.meta = {"address": address}
    state.pos = end + 2
    return True


def _build_parser(renderer: type[_Renderer]) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=renderer)
    parser.core.ruler.push("boxes", task_boxes)
    parser.core.ruler.push("alignment", align_by_class)
    return parser.enable(["table", "strikethrough"])


_PARSER = _build_parser(_Renderer)
_NOTE_PARSER = _build_parser(_NoteRenderer)
_NOTE_PARSER.inline.ruler.before("link", "wiki", _wiki_link_rule)
# Only for notes, whose source is one click away: what agents send and get is shown whole.
_NOTE_PARSER.inline.ruler.before("link", "comment", inline_comment)
_NOTE_PARSER.block.ruler.before(
    "paragraph", "comment", block_comment, {"alt": ["paragraph", "reference", "blockquote", "list"]}
)
