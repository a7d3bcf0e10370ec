"""Untrusted Markdown as harmless HTML.

This is the one place where text becomes markup. HTML in it stays text, links lead only to the web,
and pictures become links, since loading one would tell its server that somebody looked.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from interlock.core.notes.inline_markup import TARGET_CHARS_MAX, target_of
from interlock.server.formatting import show_on_page
from interlock.server.markdown_rules import (
    align_by_class,
    block_comment,
    inline_comment,
    task_boxes,
)

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
