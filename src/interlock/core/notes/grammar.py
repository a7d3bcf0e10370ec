"""The grammar of notes: parsing a file into a `Note`, and composing a new note from parts.

The grammar is Basic Memory's, on top of Markdown. Parsing takes three passes over the text:

1. `frontmatter.read` splits it into the frontmatter, with title, type, permalink and tags, and the
   body. Joined again they are the file, byte for byte.
2. `markdown_blocks.blocks` divides the lines of the body into headings, list items and prose, and
   leaves out code blocks and comments.
3. `inline_markup` reads each block: links everywhere, and on the first line of a list item an
   observation (`- [category] text #tag (context)`) or a relation (`- kind [[Target]] (context)`).
   Code spans, comments and escaped characters are masked first.

So nothing in code, comments or frontmatter is taken for an observation or a link. There are no
syntax errors: whatever is not understood is prose. Lines are counted from 1, in the whole file.
"""

from collections.abc import Iterable, Sequence

import msgspec

from interlock.core.canonical import Json
from interlock.core.notes import frontmatter, inline_markup, markdown_blocks
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.note import Frontmatter, Heading, Metadata, Note, NoteLink, Observation

TYPE_DEFAULT = "note"


class ComposedNote(msgspec.Struct, frozen=True):
    front: Frontmatter
    text: str
    """The whole note, which begins with that frontmatter."""


def parse_note(text: str, *, path: str, front: Frontmatter | None = None) -> Note:
    """Parse the note in `text`, which may be anything. `path` names it where it has no title.

    `front`: its frontmatter, where it was read before.
    """
    front, body = (front, text[len(front.text) :]) if front else frontmatter.read(text)
    first_line = len(markdown_blocks.end_offsets(front.text)) if front.text else 1
    observations: list[Observation] = []
    links: list[NoteLink] = []
    headings: list[Heading] = []
    for block in markdown_blocks.blocks(markdown_blocks.split(body)):
        line = block.first + first_line
        texts = block.texts
        if block.kind == "heading":
            headings.append(Heading(block.level, " ".join(texts).strip(), line))
        if block.kind == "item":
            observation, item_links = inline_markup.parse_list_item(texts, line)
            links += item_links
            if observation:
                observations.append(observation)
        else:
            links += inline_markup.parse_links(texts, line)
    return Note(
        front=front,
        body=body,
        title=_text_value(front, "title") or _stem(path),
        type=_text_value(front, "type") or TYPE_DEFAULT,
        tags=_unique_tags(
            [*_parse_tags(front.values.get("tags")), *_observation_tags(observations)]
        ),
        permalink=_text_value(front, "permalink"),
        observations=tuple(observations),
        links=tuple(links),
        headings=tuple(headings),
    )


def compose_note(
    *,
    title: str,
    content: str,
    type: str = "",  # noqa: A002 (the word of the frontmatter)
    tags: Sequence[str] = (),
    metadata: Metadata | None = None,
    permalink: str = "",
) -> ComposedNote | UnwritableFrontmatter:
    """Return a new note. What is not given is taken from frontmatter that `content` begins with.

    Refused where the frontmatter would be too large or too deep to be read back. Frontmatter in
    `content` that cannot be read stays where it is, as text.
    """
    front, body = frontmatter.read(content)
    if front.problem:
        front, body = Frontmatter("", {}), content
    named_values: Metadata = {
        "title": title,
        "type": type or ("" if _text_value(front, "type") else TYPE_DEFAULT),
        "permalink": permalink,
        "tags": [tag for tag in map(_clean_tag, tags) if tag],
    }
    changes = {key: value for key, value in named_values.items() if value}
    changes |= {key: value for key, value in (metadata or {}).items() if key not in named_values}
    result = frontmatter.with_values(
        front, changes, newline=markdown_blocks.newline_of(content) or "\n"
    )
    if isinstance(result, UnwritableFrontmatter):
        return result
    return ComposedNote(result, result.text + body)


def _text_value(front: Frontmatter, key: str) -> str:
    value = front.values.get(key)
    return value if isinstance(value, str) and value.strip() else ""


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[: -len(".md")] if name.lower().endswith(".md") else name


def _parse_tags(value: Json) -> list[str]:
    """Return the tags of a list, or of words with commas between them."""
    if isinstance(value, str):
        value = [*value.split(",")]
    if not isinstance(value, list):
        return []
    return [tag for tag in (_clean_tag(part) for part in value if isinstance(part, str)) if tag]


def _clean_tag(text: str) -> str:
    return text.strip().lstrip("#").strip()


def _observation_tags(observations: Iterable[Observation]) -> list[str]:
    return [tag for observation in observations for tag in observation.tags]


def _unique_tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))
