"""Markdown that somebody else wrote, as HTML that cannot do anything.

The one place where text becomes markup. HTML in it stays text, links lead only to the web, and
pictures are links, since loading one would tell its server that somebody looked.
"""

from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from interlock.server.words import visible

CHARS_MAX = 100_000
_SCHEMES = ("http://", "https://", "mailto:")


def markdown(text: str) -> Markup:
    """What is too long is shown as it was typed."""
    text = visible(text)
    if len(text) > CHARS_MAX or any(len(line) > CHARS_MAX // 10 for line in text.split("\n")):
        return Markup("<pre class=plain>{}</pre>").format(text)
    return Markup(_MARKDOWN.render(text))


def in_line(text: str) -> Markup:
    """An excerpt, within a sentence: without blocks."""
    return Markup(_MARKDOWN.renderInline(visible(text)))


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


_MARKDOWN = MarkdownIt(
    "commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer
).enable(["table", "strikethrough"])
