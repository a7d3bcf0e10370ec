"""Sentences of notes: the first or the last one, for a line in a list."""

import re

from interlock.core.workflow.operators import clip

SENTENCE_CHARS_MAX = 160

_NO_PROSE = re.compile(r"^(#|```|~~~|\||---|\*\*\*)")
_LIST_MARK = re.compile(r"^(>\s*|[-*+]\s+(\[.\]\s+)?|\d+[.)]\s+)+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LONG = 20_000  # characters, of which the rest is not looked at


def first_sentence(notes: str) -> str:
    """The first sentence of the first paragraph or list entry that is neither heading nor code."""
    first = next(iter(_paragraphs(notes[:_LONG])), "")
    return clip(_SENTENCE_END.split(first)[0], SENTENCE_CHARS_MAX)


def last_sentence(notes: str) -> str:
    """The last sentence of the last paragraph or list entry; headings and code are no sentences."""
    last = next(reversed(_paragraphs(notes[-_LONG:])), "")
    return clip(_SENTENCE_END.split(last)[-1], SENTENCE_CHARS_MAX)


def _paragraphs(notes: str) -> list[str]:
    paragraphs = [""]
    is_code = False
    for line in map(str.strip, notes.splitlines()):
        is_code ^= line.startswith(("```", "~~~"))
        if not line or is_code or _NO_PROSE.match(line):
            paragraphs.append("")
        elif mark := _LIST_MARK.match(line):
            paragraphs.append(line[mark.end() :])
        else:
            paragraphs[-1] = f"{paragraphs[-1]} {line}".strip()
    return [text for text in paragraphs if text]
